/* Rank 1 is late for every operation; rank 0 waits for it. Prints "right" where all data are, and the timer slack. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { N = 5000 };
static int rank, other, wrong;
static double mine[2 * N], theirs[2 * N];
static const int counts[] = {N, N}, places[] = {0, N}, bytes[] = {0, N * 8};
static const MPI_Aint far[] = {0, N * 8};
static MPI_Datatype types[2];
static MPI_Comm all;
#define MINE mine, N, MPI_DOUBLE
#define THEIRS theirs, N, MPI_DOUBLE
#define MINE_V mine, counts, places, MPI_DOUBLE
#define THEIRS_V theirs, counts, places, MPI_DOUBLE

static void fill(double value)
{
    for (int place = 0; place < 2 * N; place++)
        mine[place] = value + rank, theirs[place] = -1;
    if (rank)
        usleep(2000);
}

static void expect(const char *what, int from, double value)
{
    for (int place = from; place < from + N; place++)
        if (theirs[place] != value) {
            wrong = 1;
            printf("wrong: %s: %g, not %g\n", what, theirs[place], value);
            return;
        }
}

/* One operation: its data are what `half` of the buffer should hold, unless this rank gets none. */
#define DOES(number, gets, half, value, ...)                                                                           \
    do {                                                                                                               \
        fill(number);                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        if (gets)                                                                                                      \
            expect(#__VA_ARGS__, (half) * N, value);                                                                   \
    } while (0)
#define BOTH(number, ...)                                                                                              \
    DOES(number, 1, 0, number, __VA_ARGS__);                                                                           \
    DOES(number, 1, 1, number + 1, __VA_ARGS__)

static void point_to_point(void)
{
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Message message;
    int count, place, number = 0;
    DOES(1, !rank, 0, 2, if (rank) MPI_Send(MINE, 0, 1, all); else {
        MPI_Recv(theirs, 2 * N, MPI_DOUBLE, 1, MPI_ANY_TAG, all, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        wrong |= count != N || status.MPI_SOURCE != 1 || status.MPI_TAG != 1;
    });
    DOES(2, !rank, 0, 3, if (rank) MPI_Ssend(MINE, 0, 1, all); else {
        MPI_Probe(1, 1, all, &status);
        MPI_Mprobe(1, 1, all, &message, &status);
        MPI_Mrecv(THEIRS, &message, &status);
    });
#define EXCHANGE MPI_Irecv(THEIRS, other, 2, all, &requests[0]); MPI_Isend(MINE, other, 2, all, &requests[1])
    DOES(3, 1, 0, 3 + other, EXCHANGE; MPI_Wait(requests, &status); MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    wrong |= requests[1] != MPI_REQUEST_NULL || status.MPI_SOURCE != other;
    DOES(4, 1, 0, 4 + other, EXCHANGE; for (int each = 0; each < 2; each++) MPI_Waitany(2, requests, &place, &status));
    DOES(5, 1, 0, 5 + other, int some[2]; EXCHANGE; for (int done = 0; done < 2; done += number)
        MPI_Waitsome(2, requests, &number, some, MPI_STATUSES_IGNORE));
    DOES(6, 1, 0, 6 + other, MPI_Sendrecv(MINE, other, 30 + rank, THEIRS, other, 30 + other, all, &status));
    wrong |= status.MPI_SOURCE != other || status.MPI_TAG != 30 + other;
    DOES(7, 1, 0, 7 + other, memcpy(theirs, mine, sizeof mine);
         MPI_Sendrecv_replace(THEIRS, other, 3, other, 3, all, MPI_STATUS_IGNORE));
    MPI_Recv_init(THEIRS, other, 4, all, &requests[0]);
    MPI_Send_init(MINE, other, 4, all, &requests[1]);
    DOES(8, 1, 0, 8 + other, MPI_Startall(2, requests); MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void collective(void)
{
    MPI_Request request;
    MPI_Barrier(all);
    DOES(10, 1, 0, 11, memcpy(theirs, mine, sizeof mine); MPI_Bcast(THEIRS, 1, all));
    DOES(11, 1, 0, 23, MPI_Allreduce(mine, THEIRS, MPI_SUM, all));
    DOES(12, !rank, 0, 25, MPI_Reduce(mine, THEIRS, MPI_SUM, 0, all));
    DOES(13, 1, 0, rank ? 27 : 13, MPI_Scan(mine, THEIRS, MPI_SUM, all));
    DOES(14, rank, 0, 14, MPI_Exscan(mine, THEIRS, MPI_SUM, all));
    DOES(15, 1, 0, 31, MPI_Reduce_scatter(mine, theirs, counts, MPI_DOUBLE, MPI_SUM, all));
    DOES(16, 1, 0, 33, MPI_Reduce_scatter_block(mine, THEIRS, MPI_SUM, all));
    DOES(17, !rank, 1, 18, MPI_Gather(MINE, THEIRS, 0, all));
    DOES(18, !rank, 0, 18, if (!rank) memcpy(theirs, mine, sizeof mine);
         MPI_Gather(rank ? mine : MPI_IN_PLACE, N, MPI_DOUBLE, THEIRS, 0, all));
    DOES(19, !rank, 1, 20, MPI_Gatherv(MINE, THEIRS_V, 0, all));
    DOES(20, 1, 0, 21, MPI_Scatter(MINE, THEIRS, 1, all));
    DOES(21, 1, 0, 22, MPI_Scatterv(MINE_V, THEIRS, 1, all));
    BOTH(22, MPI_Allgather(MINE, THEIRS, all));
    BOTH(23, MPI_Allgatherv(MINE, THEIRS_V, all));
    BOTH(24, MPI_Alltoall(MINE, THEIRS, all));
    BOTH(25, MPI_Alltoallv(MINE_V, THEIRS_V, all));
    BOTH(26, MPI_Alltoallw(mine, counts, bytes, types, theirs, counts, bytes, types, all));
    BOTH(27, MPI_Ialltoall(MINE, THEIRS, all, &request); MPI_Wait(&request, MPI_STATUS_IGNORE));
    int grid[] = {2}, round[] = {1};
    MPI_Comm ring;
    MPI_Cart_create(all, 1, grid, round, 0, &ring);
    DOES(28, 1, 0, 28 + other, MPI_Neighbor_allgather(MINE, THEIRS, ring));
    DOES(29, 1, 1, 29 + other, MPI_Neighbor_alltoall(MINE, THEIRS, ring));
    DOES(30, 1, 1, 30 + other, MPI_Neighbor_allgatherv(MINE, THEIRS_V, ring));
    DOES(31, 1, 1, 31 + other, MPI_Neighbor_alltoallv(MINE_V, THEIRS_V, ring));
    DOES(32, 1, 1, 32 + other, MPI_Neighbor_alltoallw(mine, counts, far, types, theirs, counts, far, types, ring));
    MPI_Comm_free(&ring);
}

static void one_sided(void)
{
#define THERE other, 0, N, MPI_DOUBLE
    MPI_Win window;
    MPI_Group group, others;
    double *shared, got[N];
    MPI_Win_allocate(2 * N * sizeof *shared, sizeof *shared, MPI_INFO_NULL, all, &shared, &window);
    MPI_Comm_group(all, &group);
    MPI_Group_incl(group, 1, &other, &others);
#define OPENS fill(40); memcpy(shared, theirs, sizeof theirs); MPI_Win_fence(0, window)
#define SHOWS(what, value) memcpy(theirs, shared, sizeof theirs); expect(what, 0, value); MPI_Barrier(all)
    OPENS;
    MPI_Put(MINE, THERE, window);
    MPI_Win_fence(0, window);
    SHOWS("fence", 40 + other);
    MPI_Win_fence(0, window);
    MPI_Accumulate(MINE, THERE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    SHOWS("accumulate", 2 * (40 + other));
    OPENS;
    MPI_Win_post(others, 0, window);
    MPI_Win_start(others, 0, window);
    MPI_Put(MINE, THERE, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    SHOWS("PSCW", 40 + other);
    OPENS;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window);
    MPI_Put(MINE, THERE, window);
    MPI_Win_flush(other, window);
    MPI_Get(got, N, MPI_DOUBLE, THERE, window);
    MPI_Win_unlock(other, window);
    wrong |= got[N - 1] != 40 + rank;
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    SHOWS("unlock", 40 + other);
    MPI_Win_unlock(rank, window);
    OPENS;
    MPI_Win_lock_all(0, window);
    MPI_Put(MINE, THERE, window);
    MPI_Win_flush_local_all(window);
    MPI_Win_flush_all(window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(all);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    SHOWS("unlock all", 40 + other);
    MPI_Win_unlock(rank, window);
    MPI_Group_free(&others);
    MPI_Group_free(&group);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    all = MPI_COMM_WORLD;
    MPI_Comm_rank(all, &rank);
    other = 1 - rank;
    types[0] = types[1] = MPI_DOUBLE;
    point_to_point();
    collective();
    one_sided();
    if (!wrong)
        printf("right %d\n", prctl(PR_GET_TIMERSLACK));
    fflush(stdout);
    MPI_Finalize();
    return wrong;
}
