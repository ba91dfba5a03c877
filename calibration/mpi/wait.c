/* Lets an MPI program wait without spinning ([S] 6.3): a library that stands between the program and MPI (PMPI).
 *
 *     mpicc -O2 -shared -fPIC wait.c -o libwait.so
 *     mpirun -n 4 env LD_PRELOAD=$PWD/libwait.so EPROF_WAIT_BYTES=32768 ./program
 *
 * Calls that move fewer bytes wait as MPI does. Others ask MPI whether they are done, and sleep in between: an eighth
 * of the time that they have waited already, 5 us at least and 1 ms at most. So a message comes later by an eighth of
 * its wait, or by a short sleep.
 * For sleeps so short the library lowers the timer slack of the thread, and restores it when the wait is over; it
 * changes nothing else, no clock among it. EPROF_WAIT_REPORT=1: each process says at its end how often it slept. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { REMEMBERED = 4096 };
static const double LEAST_S = 5e-6, MOST_S = 1e-3, SHARE = 0.125;

static long long least_bytes = 32768;
static _Thread_local unsigned long waits, sleeps;
static _Thread_local long long moved; /* by one-sided operations since the last fence */

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("EPROF_WAIT_BYTES");
    char *end;
    if (!text)
        return;
    long long bytes = strtoll(text, &end, 10);
    if (end == text || *end || bytes < 0)
        fprintf(stderr, "libwait: EPROF_WAIT_BYTES=%s is no number of bytes; %lld is taken.\n", text, least_bytes);
    else
        least_bytes = bytes;
}

static long long bytes_of(long long count, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return count * size;
}

/* ---- how large a request is: remembered by its handle. A forgotten one waits as MPI does, which does no harm. */

static _Thread_local struct {
    uintptr_t handle;
    long long bytes;
} remembered[REMEMBERED];

static unsigned place_of(MPI_Request request)
{
    return (unsigned)(((uint64_t)(uintptr_t)request * 0x9E3779B97F4A7C15u) >> 52) % REMEMBERED;
}

static int remember(int error, MPI_Request request, int count, MPI_Datatype type)
{
    unsigned place = place_of(request);
    remembered[place].handle = (uintptr_t)request;
    remembered[place].bytes = bytes_of(count, type);
    return error;
}

static long long recalled(MPI_Request request)
{
    unsigned place = place_of(request);
    int is_known = request != MPI_REQUEST_NULL && remembered[place].handle == (uintptr_t)request;
    return is_known ? remembered[place].bytes : 0;
}

/* ---- sleeping */

static void sleep_a_little(double waited_s)
{
    double seconds = SHARE * waited_s;
    seconds = seconds < LEAST_S ? LEAST_S : seconds > MOST_S ? MOST_S : seconds;
    struct timespec pause = {0, (long)(1e9 * seconds)};
    nanosleep(&pause, NULL);
    sleeps++;
}

static int all_done(int count, MPI_Request *requests, MPI_Status *statuses, int *done)
{
    if (count == 1)
        return PMPI_Test(requests, done, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses);
    return PMPI_Testall(count, requests, done, statuses);
}

static int asleep_until(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int done = 0, error = all_done(count, requests, statuses, &done);
    if (done || error != MPI_SUCCESS)
        return error;
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    double begin_s = PMPI_Wtime();
    while (!done && error == MPI_SUCCESS) {
        sleep_a_little(PMPI_Wtime() - begin_s);
        error = all_done(count, requests, statuses, &done);
    }
    if (slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
    waits++;
    return error;
}

static int asleep_until_one(int error, MPI_Request *request, MPI_Status *status)
{
    return error == MPI_SUCCESS ? asleep_until(1, request, status) : error;
}

/* ---- point to point */

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int error = PMPI_Isend(data, count, type, to, tag, comm, request);
    return remember(error, *request, count, type);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int error = PMPI_Irecv(data, count, type, from, tag, comm, request);
    return remember(error, *request, count, type);
}

int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int error = PMPI_Send_init(data, count, type, to, tag, comm, request);
    return remember(error, *request, count, type);
}

int MPI_Recv_init(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    int error = PMPI_Recv_init(data, count, type, from, tag, comm, request);
    return remember(error, *request, count, type);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (recalled(*request) < least_bytes)
        return PMPI_Wait(request, status);
    return asleep_until(1, request, status);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    long long bytes = 0;
    for (int place = 0; place < count; place++)
        bytes += recalled(requests[place]);
    if (bytes < least_bytes)
        return PMPI_Waitall(count, requests, statuses);
    return asleep_until(count, requests, statuses);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    MPI_Request request;
    if (bytes_of(count, type) < least_bytes)
        return PMPI_Send(data, count, type, to, tag, comm);
    return asleep_until_one(PMPI_Isend(data, count, type, to, tag, comm, &request), &request, MPI_STATUS_IGNORE);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    if (bytes_of(count, type) < least_bytes)
        return PMPI_Recv(data, count, type, from, tag, comm, status);
    return asleep_until_one(PMPI_Irecv(data, count, type, from, tag, comm, &request), &request, status);
}

/* ---- collective operations: all processes have the same bytes, so all take the same branch */

static int may_sleep(MPI_Comm comm, long long bytes)
{
    int is_inter = 1;
    PMPI_Comm_test_inter(comm, &is_inter);
    return !is_inter && bytes >= least_bytes;
}

int MPI_Barrier(MPI_Comm comm)
{
    MPI_Request request;
    if (!may_sleep(comm, 0))
        return PMPI_Barrier(comm);
    return asleep_until_one(PMPI_Ibarrier(comm, &request), &request, MPI_STATUS_IGNORE);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    MPI_Request request;
    if (!may_sleep(comm, bytes_of(count, type)))
        return PMPI_Bcast(data, count, type, root, comm);
    return asleep_until_one(PMPI_Ibcast(data, count, type, root, comm, &request), &request, MPI_STATUS_IGNORE);
}

int MPI_Allreduce(const void *data, void *sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    if (!may_sleep(comm, bytes_of(count, type)))
        return PMPI_Allreduce(data, sum, count, type, op, comm);
    return asleep_until_one(PMPI_Iallreduce(data, sum, count, type, op, comm, &request), &request, MPI_STATUS_IGNORE);
}

int MPI_Alltoall(
    const void *data, int count, MPI_Datatype type, void *got, int got_count, MPI_Datatype got_type, MPI_Comm comm)
{
    MPI_Request request;
    if (!may_sleep(comm, bytes_of(got_count, got_type)))
        return PMPI_Alltoall(data, count, type, got, got_count, got_type, comm);
    int error = PMPI_Ialltoall(data, count, type, got, got_count, got_type, comm, &request);
    return asleep_until_one(error, &request, MPI_STATUS_IGNORE);
}

/* ---- one-sided operations. MPI has no fence that can be asked for its end: a barrier that can goes before it, in every
 * process, for each knows only its own bytes; data that moves meanwhile is not waited for a second time. */

int MPI_Put(
    const void *data, int count, MPI_Datatype type, int to, MPI_Aint at, int there, MPI_Datatype type_there, MPI_Win win)
{
    moved += bytes_of(count, type);
    return PMPI_Put(data, count, type, to, at, there, type_there, win);
}

int MPI_Get(void *data, int count, MPI_Datatype type, int from, MPI_Aint at, int there, MPI_Datatype type_there, MPI_Win win)
{
    moved += bytes_of(count, type);
    return PMPI_Get(data, count, type, from, at, there, type_there, win);
}

int MPI_Accumulate(const void *data, int count, MPI_Datatype type, int to, MPI_Aint at, int there,
                   MPI_Datatype type_there, MPI_Op op, MPI_Win win)
{
    moved += bytes_of(count, type);
    return PMPI_Accumulate(data, count, type, to, at, there, type_there, op, win);
}

static int forget_comm(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)extra;
    int error = PMPI_Comm_free(value);
    free(value);
    return error;
}

/* A communicator of the window's processes, made at its first fence and freed with the window; NULL: there is none. */
static MPI_Comm *comm_of(MPI_Win win)
{
    static int key = MPI_KEYVAL_INVALID;
    MPI_Comm *comm = NULL;
    int is_known = 0;
    if (key == MPI_KEYVAL_INVALID)
        PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget_comm, &key, NULL);
    PMPI_Win_get_attr(win, key, &comm, &is_known);
    if (is_known)
        return comm;
    MPI_Group group;
    comm = malloc(sizeof *comm);
    if (!comm || PMPI_Win_get_group(win, &group) != MPI_SUCCESS)
        return NULL;
    PMPI_Comm_create_group(MPI_COMM_WORLD, group, 0, comm);
    PMPI_Group_free(&group);
    PMPI_Win_set_attr(win, key, comm);
    return comm;
}

int MPI_Win_fence(int assertion, MPI_Win win)
{
    MPI_Request request;
    MPI_Comm *comm = comm_of(win);
    if (comm && PMPI_Ibarrier(*comm, &request) == MPI_SUCCESS) {
        if (moved < least_bytes)
            PMPI_Wait(&request, MPI_STATUS_IGNORE);
        else
            asleep_until(1, &request, MPI_STATUSES_IGNORE);
    }
    moved = 0;
    return PMPI_Win_fence(assertion, win);
}

int MPI_Finalize(void)
{
    if (getenv("EPROF_WAIT_REPORT"))
        fprintf(stderr, "libwait: slept in %lu waits, %lu times (from %lld bytes on)\n", waits, sleeps, least_bytes);
    return PMPI_Finalize();
}
