/* Simulated: rank 1 computes for 5 ms at the full clock, then sends; rank 0 waits, and prints its seconds and joules. */
#include <mpi.h>
#include <simgrid/host.h>
#include <simgrid/plugins/energy.h>
#include <stdio.h>

enum { BYTES = 1 << 20 };
static char data[BYTES];

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = MPI_Wtime(), joules = sg_host_get_consumed_energy(sg_host_self());
    if (rank) {
        smpi_execute_flops(5e-3 * sg_host_get_speed(sg_host_self()));
        MPI_Send(data, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%.12g ", MPI_Wtime() - begin_s);
        printf("%.12g\n", sg_host_get_consumed_energy(sg_host_self()) - joules);
    }
    MPI_Finalize();
    return 0;
}
