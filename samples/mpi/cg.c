/* Conjugate gradients for the Laplacian of an N x N grid, a strip of rows for each process.
 *
 *     ./cg N ITERATIONS
 *
 * Each iteration sends a row to each neighbour and adds up two numbers over all processes. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, processes;
static size_t width, rows; /* of this process's strip */
static double *above, *below;

static double *numbers(size_t count)
{
    double *memory = calloc(count, sizeof *memory);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

/* The rows beside the strip, which stay 0 at the edges of the grid. */
static void exchange(const double *strip)
{
    MPI_Request request[4];
    int requests = 0;
    if (rank > 0) {
        MPI_Irecv(above, width, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, &request[requests++]);
        MPI_Isend(strip, width, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, &request[requests++]);
    }
    if (rank < processes - 1) {
        MPI_Irecv(below, width, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD, &request[requests++]);
        MPI_Isend(strip + (rows - 1) * width, width, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD, &request[requests++]);
    }
    MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
}

static void multiply(const double *x, double *y)
{
    exchange(x);
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < width; column++) {
            size_t at = row * width + column;
            double up = row > 0 ? x[at - width] : above[column];
            double down = row < rows - 1 ? x[at + width] : below[column];
            double left = column > 0 ? x[at - 1] : 0;
            double right = column < width - 1 ? x[at + 1] : 0;
            y[at] = 4 * x[at] - up - down - left - right;
        }
}

static double product(const double *a, const double *b)
{
    double mine = 0, all;
    for (size_t at = 0; at < rows * width; at++)
        mine += a[at] * b[at];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    width = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
    int iterations = argc > 2 ? atoi(argv[2]) : 50;
    rows = width / processes + ((size_t)rank < width % processes);
    if (width < (size_t)processes) {
        fprintf(stderr, "cg: a grid of %zu rows is too small for %d processes.\n", width, processes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t points = rows * width;
    double *x = numbers(points), *residual = numbers(points), *direction = numbers(points), *image = numbers(points);
    above = numbers(width);
    below = numbers(width);
    for (size_t at = 0; at < points; at++)
        residual[at] = direction[at] = 1;

    double begin = MPI_Wtime();
    double square = product(residual, residual), first = square;
    for (int iteration = 0; iteration < iterations; iteration++) {
        multiply(direction, image);
        double step = square / product(direction, image);
        for (size_t at = 0; at < points; at++) {
            x[at] += step * direction[at];
            residual[at] -= step * image[at];
        }
        double next = product(residual, residual);
        for (size_t at = 0; at < points; at++)
            direction[at] = residual[at] + next / square * direction[at];
        square = next;
    }
    double seconds = MPI_Wtime() - begin;
    if (rank == 0)
        printf("cg: N=%zu, %d processes, residual %.6e of the first, %.6f s\n", width, processes, sqrt(square / first), seconds);
    MPI_Finalize();
    return 0;
}
