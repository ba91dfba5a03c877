/* What EP, FT and CG compute and send, without doing it: SimGrid is told the flops. All counts are known in closed form.
 *
 *     ./skeletons ep|ft|cg n ITERATIONS
 *
 * ep: 100 n flops, one sum.  ft: 5 n log2 n flops, 16 n / p^2 bytes between all pairs.  cg: 400 n flops, 8 n / p bytes to
 * the next process, two sums. */
#include <math.h>
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, processes;

static void sum(void)
{
    double mine = 1, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void ep(double n, int iterations)
{
    for (int iteration = 0; iteration < iterations; iteration++) {
        smpi_execute_flops(100 * n / processes);
        sum();
    }
}

static void ft(double n, int iterations)
{
    size_t block = 16 * n / processes / processes;
    char *from = SMPI_SHARED_MALLOC(block * processes), *to = SMPI_SHARED_MALLOC(block * processes);
    for (int iteration = 0; iteration < iterations; iteration++) {
        smpi_execute_flops(5 * n * log2(n) / processes);
        if (processes > 1)
            MPI_Alltoall(from, block, MPI_CHAR, to, block, MPI_CHAR, MPI_COMM_WORLD);
    }
}

static void cg(double n, int iterations)
{
    size_t part = 8 * n / processes;
    int next = (rank + 1) % processes, before = (rank + processes - 1) % processes;
    char *from = SMPI_SHARED_MALLOC(part + 1), *to = SMPI_SHARED_MALLOC(part + 1);
    for (int iteration = 0; iteration < iterations; iteration++) {
        smpi_execute_flops(400 * n / processes);
        if (processes > 1)
            MPI_Sendrecv(from, part, MPI_CHAR, next, 0, to, part, MPI_CHAR, before, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        sum();
        sum();
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    const char *kernel = argc > 3 ? argv[1] : "";
    void (*run)(double, int) = !strcmp(kernel, "ep") ? ep : !strcmp(kernel, "ft") ? ft : !strcmp(kernel, "cg") ? cg : NULL;
    if (!run) {
        fprintf(stderr, "skeletons: say ep, ft or cg, n and the number of iterations.\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run(atof(argv[2]), atoi(argv[3]));
    MPI_Finalize();
    return 0;
}
