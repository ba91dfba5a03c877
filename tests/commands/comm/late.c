/* Rank 1 is late for every operation; rank 0 waits for it. Prints "right" where all data are, and the timer slack. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { NUMBERS = 10000 };
static int rank, wrong;
static double mine[2 * NUMBERS], theirs[2 * NUMBERS];

static void fill(double value)
{
    for (int place = 0; place < 2 * NUMBERS; place++)
        mine[place] = value + rank, theirs[place] = -1;
    if (rank)
        usleep(20000);
}

static void expect(const char *what, double value)
{
    for (int place = 0; place < NUMBERS; place++)
        if (theirs[place] != value) {
            wrong = 1;
            printf("wrong: %s\n", what);
            return;
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int other = 1 - rank;
    MPI_Request requests[2];
    MPI_Status status;
    int count;

    fill(10);
    if (rank)
        MPI_Send(mine, NUMBERS, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    else {
        MPI_Recv(theirs, 2 * NUMBERS, MPI_DOUBLE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        wrong |= count != NUMBERS || status.MPI_SOURCE != 1 || status.MPI_TAG != 1;
        expect("MPI_Recv", 11);
    }

    fill(20);
    MPI_Irecv(theirs, NUMBERS, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(mine, NUMBERS, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect("MPI_Waitall", 20 + other);
    wrong |= requests[1] != MPI_REQUEST_NULL;

    fill(30);
    MPI_Allreduce(mine, theirs, NUMBERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect("MPI_Allreduce", 61);

    fill(40);
    MPI_Alltoall(mine, NUMBERS, MPI_DOUBLE, theirs, NUMBERS, MPI_DOUBLE, MPI_COMM_WORLD);
    expect("MPI_Alltoall", 40);

    fill(50);
    memcpy(theirs, mine, sizeof mine);
    MPI_Bcast(theirs, NUMBERS, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    expect("MPI_Bcast", 51);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Win window;
    MPI_Win_create(theirs, sizeof theirs, sizeof *theirs, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    fill(60);
    MPI_Win_fence(0, window);
    MPI_Put(mine, NUMBERS, MPI_DOUBLE, other, 0, NUMBERS, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    expect("MPI_Put", 60 + other);
    MPI_Win_fence(0, window); /* read before the other one writes again */
    MPI_Accumulate(mine, NUMBERS, MPI_DOUBLE, other, 0, NUMBERS, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    expect("MPI_Accumulate", 2 * (60 + other));
    MPI_Win_free(&window);

    if (!wrong)
        printf("right %d\n", prctl(PR_GET_TIMERSLACK));
    MPI_Finalize();
    return wrong;
}
