/* Lets an MPI program wait without spinning, and at a lower clock ([S] 6.3): a library between the program and MPI.
 *
 *     mpicc -O2 -shared -fPIC -Wl,--as-needed wait.c -o libwait.so -ldl
 *     mpirun -n 4 env LD_PRELOAD=$PWD/libwait.so EPROF_WAIT_BYTES=32768 EPROF_WAIT_MHZ=1900 ./program
 *
 * EPROF_WAIT_BYTES      calls that move fewer bytes wait as MPI does. Others ask MPI whether they are done, and sleep in
 *                       between: an eighth of the time that they have waited already, 5 us at least, 1 ms at most.
 * EPROF_WAIT_US         all other waits, of small messages and of calls whose size nobody knows, sleep once they have
 *                       lasted that long (unset: never).
 * EPROF_WAIT_MHZ        the clock of the core while it sleeps, through cpufreq; EPROF_WAIT_MHZ_BYTES: from so many bytes
 *                       on (those of EPROF_WAIT_BYTES). What was in force comes back before the call returns, and by a
 *                       shell that outlives the process if it is killed.
 * EPROF_WAIT_REPORT=1   each process says at its end how often it slept.
 *
 * MPI copies and adds up while it is asked, so the clock is lowered only after it was asked in vain, and raised as soon
 * as asking takes processor time. The functions are named PMPI_*, too, as Fortran's bindings and other tools call these;
 * MPI's own are those of whatever library the caller is linked with. Nothing is done before the first call of MPI. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef SIMULATED /* linked into a program of smpicc, whose clock is a pstate */
#include <simgrid/host.h>
#endif

#ifndef CORES /* tests have a folder of their own */
#define CORES "/sys/devices/system/cpu"
#endif

enum { REMEMBERED = 4096, SIBLINGS = 8, PENDING = 64 };
static const double LEAST_S = 5e-6, MOST_S = 1e-3, SHARE = 0.125;
static const double WORKS_S = 20e-6; /* asking takes less where nothing has come */

static long long least_bytes = 32768, low_bytes = -1;
static double patient_s = HUGE_VAL, low_mhz;
#ifdef SIMULATED
static double change_s, interrupt_s; /* what a change of the clock and a nap execute */
#endif
static atomic_ulong waits, sleeps, lowered;
static _Thread_local long long moved; /* by one-sided operations that nobody waited for yet */

/* ---- MPI's own functions */

#ifdef SIMULATED
#define OWN(name) PMPI_##name
#define BOTH(name)
#else
/* Behind this library in the program; else, where a program loaded MPI for itself, in what the caller is linked with. */
static void *own(const char *name, void *caller)
{
    Dl_info about;
    void *function = dlsym(RTLD_NEXT, name);
    if (!function && dladdr(caller, &about) && about.dli_fname) {
        void *object = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        function = object ? dlsym(object, name) : NULL;
    }
    if (!function) {
        fprintf(stderr, "libwait: the program has no %s; is its MPI linked statically?\n", name);
        _exit(1);
    }
    return function;
}
#define OWN(name)                                                                                                      \
    (*({                                                                                                               \
        static __typeof__(&PMPI_##name) function;                                                                      \
        if (!function)                                                                                                 \
            function = own("PMPI_" #name, last_caller);                                                                \
        function;                                                                                                      \
    }))
#ifdef OPEN_MPI /* whose handles are addresses of its data */
#define DATUM(name)                                                                                                    \
    ({                                                                                                                 \
        static void *datum;                                                                                            \
        if (!datum && !(datum = dlsym(RTLD_DEFAULT, #name))) /* a copy in the program goes first */                    \
            datum = own(#name, last_caller);                                                                           \
        datum;                                                                                                         \
    })
#undef MPI_COMM_WORLD
#undef MPI_PACKED
#undef MPI_REQUEST_NULL
#define MPI_COMM_WORLD ((MPI_Comm)DATUM(ompi_mpi_comm_world))
#define MPI_PACKED ((MPI_Datatype)DATUM(ompi_mpi_packed))
#define MPI_REQUEST_NULL ((MPI_Request)DATUM(ompi_request_null))
#endif
#define BOTH(name) __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)));
static _Thread_local void *last_caller;
#endif

/* ---- what the user wants */

/* One process a node speaks. */
static void say(const char *format, const char *what)
{
    const char *const places[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (unsigned each = 0; each < sizeof places / sizeof *places; each++) {
        const char *place = getenv(places[each]);
        if (place && strcmp(place, "0"))
            return;
    }
    fprintf(stderr, "libwait: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
}

static void read_number(const char *name, double most, double *number)
{
    const char *text = getenv(name);
    char *end, told[200];
    if (!text)
        return;
    double value = strtod(text, &end);
    if (end != text && !*end && value >= 0 && value <= most) {
        *number = value;
        return;
    }
    snprintf(told, sizeof told, "%s=%.60s is no number from 0 on; ", name, text);
    say("%sit is left out.", told);
}

/* What every call does first: the first one reads the environment, and ends a program of another MPI, whose handles are
 * of another size. */
static void prepare(void)
{
    static atomic_int is_ready;
    if (is_ready)
        return;
#ifndef SIMULATED
    char version[8192] = ""; /* as long as any MPI takes */
    int length, is_open = 0;
    OWN(Get_library_version)(version, &length);
    version[strcspn(version, ",\n")] = 0;
#ifdef OPEN_MPI
    is_open = 1;
#endif
    if (is_open != (strstr(version, "Open MPI") != NULL)) {
        say("it was compiled for another MPI than %s; write it again with the mpicc of that one.", version);
        _exit(1);
    }
#endif
    double bytes = (double)least_bytes, fewer = -1, us = -1;
    read_number("EPROF_WAIT_BYTES", 9e15, &bytes);
    read_number("EPROF_WAIT_MHZ_BYTES", 9e15, &fewer);
    read_number("EPROF_WAIT_US", 1e12, &us);
    read_number("EPROF_WAIT_MHZ", 1e5, &low_mhz);
#ifdef SIMULATED
    read_number("EPROF_WAIT_CHANGE_S", 1, &change_s);
    read_number("EPROF_WAIT_INTERRUPT_S", 1, &interrupt_s);
#endif
    least_bytes = (long long)bytes;
    low_bytes = fewer < 0 ? least_bytes : (long long)fewer;
    patient_s = us < 0 ? HUGE_VAL : 1e-6 * us;
    is_ready = 1;
}

/* How long a wait may spin. HUGE_VAL: it waits as MPI does, in MPI's own call. */
static double patience_s(long long bytes)
{
    return bytes >= least_bytes ? 0 : patient_s;
}

static long long bytes_of(long long count, MPI_Datatype type)
{
    int size = 0;
    OWN(Type_size)(type, &size);
    return count * size;
}

static long long bytes_of_all(const int *counts, MPI_Comm comm, MPI_Datatype type)
{
    long long total = 0;
    int processes = 0;
    OWN(Comm_size)(comm, &processes);
    for (int place = 0; place < processes; place++)
        total += counts[place];
    return bytes_of(total, type);
}

/* ---- the clock */

#ifdef SIMULATED
static void work(double seconds)
{
    if (seconds > 0)
        smpi_execute_flops(seconds * sg_host_get_speed(sg_host_self()));
}

static int may_lower(void)
{
    return low_mhz > 0;
}

static void set_clock(int is_low)
{
    if (is_low)
        work(change_s);
    sg_host_set_pstate(sg_host_self(), is_low ? (int)sg_host_get_nb_pstates(sg_host_self()) - 1 : 0);
    if (!is_low)
        work(change_s);
}
#else
static struct {
    int file;
    char high[24], low[24]; /* kHz */
} siblings[SIBLINGS];
static int cores; /* -1: they cannot be set */
static atomic_int low_waits; /* threads that wait at the lower clock: the last one raises it */

static int read_text(char *text, int room, int core, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, CORES "/cpu%d/%s", core, name);
    FILE *file = fopen(path, "r");
    int got = file ? (int)fread(text, 1, (size_t)room - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = 0;
    return got;
}

/* "0-3,8" or "0 1 8" */
static void read_cores(cpu_set_t *set, int core, const char *name)
{
    char text[4000], *left = text;
    CPU_ZERO(set);
    read_text(text, sizeof text, core, name);
    while (*left) {
        char *end;
        long first = strtol(left, &end, 10), last = first;
        if (end == left)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (; first <= last && first < CPU_SETSIZE; first++)
            CPU_SET((int)first, set);
        left = end + strspn(end, ", \n");
    }
}

static int is_within(const cpu_set_t *some, const cpu_set_t *all)
{
    cpu_set_t both;
    CPU_AND(&both, some, all);
    return CPU_EQUAL(&both, some);
}

/* A shell that gives the clock back when this process has ended, however that came: then its pipe is closed. At a good
 * end it is told to leave it alone. Its own parent ends at once, so the program gets no child that it does not know. */
static int guard = -1;

static void start_guard(char **words)
{
    int ends[2], status;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t about;
    pid_t process;
    if (pipe2(ends, O_CLOEXEC))
        return;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&about);
    posix_spawnattr_setflags(&about, POSIX_SPAWN_SETSID);
    char *nothing[] = {NULL}; /* this library is not to be loaded there */
    if (posix_spawn(&process, "/bin/sh", &files, &about, words, nothing) == 0) {
        waitpid(process, &status, 0);
        guard = ends[1];
    } else
        close(ends[1]);
    close(ends[0]);
    posix_spawnattr_destroy(&about);
    posix_spawn_file_actions_destroy(&files);
}

/* Whether the clock of this thread's core may be lowered. The first call finds its files. */
static int may_lower(void)
{
    static atomic_flag looked = ATOMIC_FLAG_INIT;
    if (low_mhz <= 0 || atomic_flag_test_and_set(&looked))
        return cores > 0;
    cpu_set_t mine, together;
    const char *why = NULL;
    static char files[SIBLINGS][400];
    char text[40];
    char *words[4 + 2 * SIBLINGS + 1] = {
        "sh", "-c",
        "exec 3<&0; (read word <&3; [ \"$word\" ] || while [ $# -gt 1 ]; do echo $1 >$2; shift 2; done) &", "sh"};
    int found = 0, length = 4;
    sched_getaffinity(0, sizeof mine, &mine);
    int first = sched_getcpu();
    read_cores(&together, first, "topology/thread_siblings_list");
    CPU_SET(first, &together);
    if (!is_within(&mine, &together))
        why = "this process is not bound to one core, where another would run at its clock (mpirun --bind-to core)";
    for (int core = 0; core < CPU_SETSIZE && !why; core++) {
        if (!CPU_ISSET(core, &mine) || found == SIBLINGS)
            continue;
        read_cores(&together, core, "cpufreq/affected_cpus");
        if (!is_within(&together, &mine))
            why = "the cores of this processor have one clock together";
        snprintf(files[found], sizeof files[found], CORES "/cpu%d/cpufreq/scaling_max_freq", core);
        int got = read_text(siblings[found].high, sizeof siblings->high, core, "cpufreq/scaling_max_freq");
        read_text(text, sizeof text, core, "cpufreq/cpuinfo_min_freq");
        siblings[found].file = open(files[found], O_WRONLY | O_CLOEXEC);
        if (!got)
            why = "this machine lets nobody set its clock (no cpufreq in /sys)";
        else if (siblings[found].file < 0)
            why = "only root may set the clock of this machine";
        siblings[found].high[strcspn(siblings[found].high, "\n")] = 0;
        double khz = fmax(1e3 * low_mhz, atof(text));
        snprintf(siblings[found].low, sizeof siblings->low, "%.0f", khz);
        if (!why && khz >= atof(siblings[found].high))
            why = "its core is no faster anyway";
        words[length++] = siblings[found].high;
        words[length++] = files[found++];
    }
    if (why)
        say("EPROF_WAIT_MHZ: %s; its clock is left alone.", why);
    else
        start_guard(words);
    cores = !why && guard >= 0 ? found : -1;
    return cores > 0;
}

static void set_clock(int is_low)
{
    if (atomic_fetch_add(&low_waits, is_low ? 1 : -1) != (is_low ? 0 : 1))
        return;
    for (int core = 0; core < cores; core++) {
        const char *khz = is_low ? siblings[core].low : siblings[core].high;
        if (pwrite(siblings[core].file, khz, strlen(khz), 0) < 0 && is_low) {
            say("%s: its clock cannot be set, and is left alone.", "EPROF_WAIT_MHZ");
            cores = -1;
        }
    }
}
#endif

/* ---- sleeping */

struct wait {
    long long bytes;
    double patience_s, begin_s, asked_s;
    int slack_ns, is_low, has_slept;
};

static double processor_s(void)
{
    struct timespec now = {0, 0};
#ifndef SIMULATED
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void change_clock(struct wait *wait, int is_low)
{
    if (wait->is_low == is_low)
        return;
    set_clock(is_low);
    lowered += is_low;
    wait->is_low = is_low;
}

/* MPI was asked in vain: sleep, at the lower clock; or do not, where asking did work of MPI's. */
static void nap(struct wait *wait)
{
    double waited_s = OWN(Wtime)() - wait->begin_s;
    if (waited_s < wait->patience_s)
        return;
    int works = wait->has_slept && processor_s() - wait->asked_s > WORKS_S;
    if (works)
        wait->begin_s = OWN(Wtime)();
    if (!wait->has_slept) {
        wait->slack_ns = prctl(PR_GET_TIMERSLACK);
        prctl(PR_SET_TIMERSLACK, 1UL);
        wait->has_slept = 1;
        waits++;
    }
    if (wait->is_low || (wait->bytes >= low_bytes && may_lower()))
        change_clock(wait, !works);
    if (!works) {
        double seconds = SHARE * waited_s;
        seconds = seconds < LEAST_S ? LEAST_S : seconds > MOST_S ? MOST_S : seconds;
        struct timespec pause = {0, (long)(1e9 * seconds)};
        nanosleep(&pause, NULL);
        sleeps++;
#ifdef SIMULATED
        work(interrupt_s);
#endif
    }
    wait->asked_s = processor_s();
}

static void end_wait(struct wait *wait)
{
    change_clock(wait, 0);
    if (wait->has_slept && wait->slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)wait->slack_ns);
}

/* Ask until what is asked sets `done`; its error. */
#define ASLEEP(moves, ask)                                                                                             \
    ({                                                                                                                 \
        long long some_bytes = (moves);                                                                                \
        int done = 0, error = (ask);                                                                                   \
        if (!done && error == MPI_SUCCESS) {                                                                           \
            struct wait wait = {some_bytes, patience_s(some_bytes), OWN(Wtime)(), 0, 0, 0, 0};                         \
            do {                                                                                                       \
                nap(&wait);                                                                                            \
                error = (ask);                                                                                         \
            } while (!done && error == MPI_SUCCESS);                                                                   \
            end_wait(&wait);                                                                                           \
        }                                                                                                              \
        error;                                                                                                         \
    })

/* MPI has nothing to ask: it polls, at the lower clock. */
#define POLLING(moves, call)                                                                                           \
    ({                                                                                                                 \
        struct wait wait = {0, 0, 0, 0, 0, 0, 0};                                                                      \
        if ((moves) >= low_bytes && may_lower())                                                                       \
            change_clock(&wait, 1);                                                                                    \
        int error = (call);                                                                                            \
        end_wait(&wait);                                                                                               \
        error;                                                                                                         \
    })

#define UNLESS_PATIENT(moves, call)                                                                                    \
    do {                                                                                                               \
        if (patience_s(moves) == HUGE_VAL)                                                                             \
            return (call);                                                                                             \
    } while (0)

#ifdef SIMULATED
#define CALL prepare()
#else
#define CALL last_caller = __builtin_return_address(0), prepare()
#endif
#define FUNCTION(name, ...)                                                                                            \
    BOTH(name)                                                                                                         \
    int MPI_##name(__VA_ARGS__)

/* ---- how large a request is: remembered by its handle. Of a forgotten one nobody knows the size. */

static struct {
    _Atomic uintptr_t handle;
    _Atomic long long bytes;
} remembered[REMEMBERED];

static unsigned place_of(MPI_Request request)
{
    return (unsigned)(((uint64_t)(uintptr_t)request * 0x9E3779B97F4A7C15u) >> 52) % REMEMBERED;
}

static int remember(int error, MPI_Request *request, long long bytes)
{
    if (error != MPI_SUCCESS)
        return error;
    unsigned place = place_of(*request);
    atomic_store(&remembered[place].handle, (uintptr_t)*request);
    atomic_store(&remembered[place].bytes, bytes);
    return error;
}

static long long recalled(MPI_Request request)
{
    unsigned place = place_of(request);
    int is_known = request != MPI_REQUEST_NULL && atomic_load(&remembered[place].handle) == (uintptr_t)request;
    return is_known ? atomic_load(&remembered[place].bytes) : 0;
}

static int wait_for(int error, MPI_Request *request, MPI_Status *status, long long bytes)
{
    if (error != MPI_SUCCESS)
        return error;
    if (patience_s(bytes) == HUGE_VAL)
        return OWN(Wait)(request, status);
    return ASLEEP(bytes, OWN(Test)(request, &done, status));
}

/* ---- point to point */

#define P(...) __VA_ARGS__
#define STARTS(name, bytes, params, ...)                                                                               \
    FUNCTION(name, P params, MPI_Request *request)                                                                     \
    {                                                                                                                  \
        CALL;                                                                                                          \
        return remember(OWN(name)(__VA_ARGS__, request), request, bytes);                                              \
    }
#define SENDING const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm
#define SENDS(name, start)                                                                                             \
    STARTS(start, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)                                  \
    FUNCTION(name, SENDING)                                                                                            \
    {                                                                                                                  \
        CALL;                                                                                                          \
        MPI_Request request;                                                                                           \
        long long bytes = bytes_of(count, type);                                                                       \
        UNLESS_PATIENT(bytes, OWN(name)(data, count, type, to, tag, comm));                                            \
        return wait_for(                                                                                               \
            OWN(start)(data, count, type, to, tag, comm, &request), &request, MPI_STATUS_IGNORE, bytes);               \
    }

SENDS(Send, Isend)
SENDS(Ssend, Issend)
SENDS(Rsend, Irsend)
STARTS(Ibsend, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)
STARTS(Send_init, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)
STARTS(Ssend_init, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)
STARTS(Rsend_init, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)
STARTS(Bsend_init, bytes_of(count, type), (SENDING), data, count, type, to, tag, comm)
#define RECEIVING void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm
STARTS(Irecv, bytes_of(count, type), (RECEIVING), data, count, type, from, tag, comm)
STARTS(Recv_init, bytes_of(count, type), (RECEIVING), data, count, type, from, tag, comm)
STARTS(Imrecv, bytes_of(count, type), (void *data, int count, MPI_Datatype type, MPI_Message *message), data, count, type, message)

FUNCTION(Recv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    CALL;
    MPI_Request request;
    long long bytes = bytes_of(count, type);
    UNLESS_PATIENT(bytes, OWN(Recv)(data, count, type, from, tag, comm, status));
    return wait_for(OWN(Irecv)(data, count, type, from, tag, comm, &request), &request, status, bytes);
}

FUNCTION(Mrecv, void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    CALL;
    MPI_Request request;
    long long bytes = bytes_of(count, type);
    UNLESS_PATIENT(bytes, OWN(Mrecv)(data, count, type, message, status));
    return wait_for(OWN(Imrecv)(data, count, type, message, &request), &request, status, bytes);
}

FUNCTION(Probe, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    CALL;
    UNLESS_PATIENT(0, OWN(Probe)(from, tag, comm, status));
    return ASLEEP(0, OWN(Iprobe)(from, tag, comm, &done, status));
}

FUNCTION(Mprobe, int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    CALL;
    UNLESS_PATIENT(0, OWN(Mprobe)(from, tag, comm, message, status));
    return ASLEEP(0, OWN(Improbe)(from, tag, comm, &done, message, status));
}

/* Both ways at once; the status is that of the receipt. */
static int both(int error, MPI_Request *requests, MPI_Status *status, long long bytes)
{
    MPI_Status statuses[2];
    if (error != MPI_SUCCESS)
        return error;
    error = ASLEEP(bytes, OWN(Testall)(2, requests, &done, statuses));
    if (status != MPI_STATUS_IGNORE)
        *status = statuses[0];
    return error;
}

FUNCTION(Sendrecv, const void *data, int count, MPI_Datatype type, int to, int tag, void *got, int got_count,
         MPI_Datatype got_type, int from, int got_tag, MPI_Comm comm, MPI_Status *status)
{
    CALL;
    MPI_Request requests[2];
    long long sent = bytes_of(count, type), bytes = bytes_of(got_count, got_type);
    bytes = sent > bytes ? sent : bytes;
    UNLESS_PATIENT(
        bytes, OWN(Sendrecv)(data, count, type, to, tag, got, got_count, got_type, from, got_tag, comm, status));
    int error = OWN(Irecv)(got, got_count, got_type, from, got_tag, comm, &requests[0]);
    if (error == MPI_SUCCESS)
        error = OWN(Isend)(data, count, type, to, tag, comm, &requests[1]);
    return both(error, requests, status, bytes);
}

FUNCTION(Sendrecv_replace, void *data, int count, MPI_Datatype type, int to, int tag, int from, int got_tag,
         MPI_Comm comm, MPI_Status *status)
{
    CALL;
    MPI_Request requests[2];
    long long bytes = bytes_of(count, type);
    int room = 0, packed = 0;
    char *copy = NULL;
    if (patience_s(bytes) < HUGE_VAL && OWN(Pack_size)(count, type, comm, &room) == MPI_SUCCESS)
        copy = malloc((size_t)room + 1);
    if (!copy)
        return OWN(Sendrecv_replace)(data, count, type, to, tag, from, got_tag, comm, status);
    int error = OWN(Pack)(data, count, type, copy, room, &packed, comm);
    if (error == MPI_SUCCESS)
        error = OWN(Irecv)(data, count, type, from, got_tag, comm, &requests[0]);
    if (error == MPI_SUCCESS)
        error = OWN(Isend)(copy, packed, MPI_PACKED, to, tag, comm, &requests[1]);
    error = both(error, requests, status, bytes);
    free(copy);
    return error;
}

/* ---- requests */

FUNCTION(Wait, MPI_Request *request, MPI_Status *status)
{
    CALL;
    return wait_for(MPI_SUCCESS, request, status, recalled(*request));
}

FUNCTION(Waitall, int count, MPI_Request *requests, MPI_Status *statuses)
{
    CALL;
    long long bytes = 0;
    for (int place = 0; place < count; place++)
        bytes += recalled(requests[place]);
    UNLESS_PATIENT(bytes, OWN(Waitall)(count, requests, statuses));
    return ASLEEP(bytes, OWN(Testall)(count, requests, &done, statuses));
}

/* The first of them ends the wait: the smallest one's size. */
static long long least_of(int count, const MPI_Request *requests)
{
    long long least = -1;
    for (int place = 0; place < count; place++)
        if (requests[place] != MPI_REQUEST_NULL && (least < 0 || recalled(requests[place]) < least))
            least = recalled(requests[place]);
    return least < 0 ? 0 : least;
}

FUNCTION(Waitany, int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    CALL;
    long long bytes = least_of(count, requests);
    UNLESS_PATIENT(bytes, OWN(Waitany)(count, requests, index, status));
    return ASLEEP(bytes, OWN(Testany)(count, requests, index, &done, status));
}

FUNCTION(Waitsome, int count, MPI_Request *requests, int *number, int *places, MPI_Status *statuses)
{
    CALL;
    long long bytes = least_of(count, requests);
    UNLESS_PATIENT(bytes, OWN(Waitsome)(count, requests, number, places, statuses));
    return ASLEEP(bytes, ({
        int asked = OWN(Testsome)(count, requests, number, places, statuses);
        done = *number != 0; /* MPI_UNDEFINED: there was none to wait for */
        asked;
    }));
}

/* ---- collective operations. Those that begin with MPI's non-blocking form must do so in every process: where all have
 * the same bytes, all take the same branch; where each knows its own alone (UNEVEN), all begin so, and sleep or not. */

static int is_within_one_group(MPI_Comm comm)
{
    int is_inter = 1;
    OWN(Comm_test_inter)(comm, &is_inter);
    return !is_inter;
}

#define COLLECTIVE(is_even, name, start, moves, params, ...)                                                           \
    STARTS(start, moves, params, __VA_ARGS__)                                                                          \
    FUNCTION(name, P params)                                                                                           \
    {                                                                                                                  \
        CALL;                                                                                                          \
        MPI_Request request;                                                                                           \
        if (!is_within_one_group(comm))                                                                                \
            return OWN(name)(__VA_ARGS__);                                                                             \
        long long bytes = (moves);                                                                                     \
        if (is_even)                                                                                                   \
            UNLESS_PATIENT(bytes, OWN(name)(__VA_ARGS__));                                                             \
        return wait_for(OWN(start)(__VA_ARGS__, &request), &request, MPI_STATUS_IGNORE, bytes);                        \
    }
#define EVEN(...) COLLECTIVE(1, __VA_ARGS__)
#define UNEVEN(...) COLLECTIVE(0, __VA_ARGS__)
#define DATA const void *data, int count, MPI_Datatype type
#define GOT void *got, int got_count, MPI_Datatype got_type
#define COUNTS const void *data, const int *counts, const int *places, MPI_Datatype type
#define GOT_COUNTS void *got, const int *got_counts, const int *got_places, MPI_Datatype got_type
#define OURS (data == MPI_IN_PLACE ? bytes_of(got_count, got_type) : bytes_of(count, type))

FUNCTION(Ibarrier, MPI_Comm comm, MPI_Request *request)
{
    CALL;
    return remember(OWN(Ibarrier)(comm, request), request, 0);
}

FUNCTION(Barrier, MPI_Comm comm)
{
    CALL;
    MPI_Request request;
    if (!is_within_one_group(comm))
        return OWN(Barrier)(comm);
    UNLESS_PATIENT(0, OWN(Barrier)(comm));
    return wait_for(OWN(Ibarrier)(comm, &request), &request, MPI_STATUS_IGNORE, 0);
}

EVEN(Bcast, Ibcast, bytes_of(count, type), (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
     data, count, type, root, comm)
EVEN(Reduce, Ireduce, bytes_of(count, type),
     (const void *data, void *got, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     data, got, count, type, op, root, comm)
EVEN(Allreduce, Iallreduce, bytes_of(count, type),
     (const void *data, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     data, got, count, type, op, comm)
EVEN(Scan, Iscan, bytes_of(count, type),
     (const void *data, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     data, got, count, type, op, comm)
EVEN(Exscan, Iexscan, bytes_of(count, type),
     (const void *data, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     data, got, count, type, op, comm)
EVEN(Reduce_scatter_block, Ireduce_scatter_block, bytes_of(count, type),
     (const void *data, void *got, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     data, got, count, type, op, comm)
EVEN(Reduce_scatter, Ireduce_scatter, bytes_of_all(counts, comm, type),
     (const void *data, void *got, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     data, got, counts, type, op, comm)
EVEN(Gather, Igather, OURS, (DATA, GOT, int root, MPI_Comm comm),
     data, count, type, got, got_count, got_type, root, comm)
EVEN(Scatter, Iscatter, got == MPI_IN_PLACE ? bytes_of(count, type) : bytes_of(got_count, got_type),
     (DATA, GOT, int root, MPI_Comm comm), data, count, type, got, got_count, got_type, root, comm)
EVEN(Allgather, Iallgather, bytes_of(got_count, got_type), (DATA, GOT, MPI_Comm comm),
     data, count, type, got, got_count, got_type, comm)
EVEN(Alltoall, Ialltoall, bytes_of(got_count, got_type), (DATA, GOT, MPI_Comm comm),
     data, count, type, got, got_count, got_type, comm)
EVEN(Allgatherv, Iallgatherv, bytes_of_all(got_counts, comm, got_type), (DATA, GOT_COUNTS, MPI_Comm comm),
     data, count, type, got, got_counts, got_places, got_type, comm)
UNEVEN(Gatherv, Igatherv, data == MPI_IN_PLACE ? bytes_of_all(got_counts, comm, got_type) : bytes_of(count, type),
       (DATA, GOT_COUNTS, int root, MPI_Comm comm),
       data, count, type, got, got_counts, got_places, got_type, root, comm)
UNEVEN(Scatterv, Iscatterv, got == MPI_IN_PLACE ? bytes_of_all(counts, comm, type) : bytes_of(got_count, got_type),
       (COUNTS, GOT, int root, MPI_Comm comm),
       data, counts, places, type, got, got_count, got_type, root, comm)
UNEVEN(Alltoallv, Ialltoallv, bytes_of_all(got_counts, comm, got_type), (COUNTS, GOT_COUNTS, MPI_Comm comm),
       data, counts, places, type, got, got_counts, got_places, got_type, comm)
UNEVEN(Neighbor_allgather, Ineighbor_allgather, bytes_of(got_count, got_type), (DATA, GOT, MPI_Comm comm),
       data, count, type, got, got_count, got_type, comm)
UNEVEN(Neighbor_alltoall, Ineighbor_alltoall, bytes_of(got_count, got_type), (DATA, GOT, MPI_Comm comm),
       data, count, type, got, got_count, got_type, comm)
UNEVEN(Neighbor_allgatherv, Ineighbor_allgatherv, bytes_of(count, type), (DATA, GOT_COUNTS, MPI_Comm comm),
       data, count, type, got, got_counts, got_places, got_type, comm)
UNEVEN(Neighbor_alltoallv, Ineighbor_alltoallv, 0, (COUNTS, GOT_COUNTS, MPI_Comm comm),
       data, counts, places, type, got, got_counts, got_places, got_type, comm)
UNEVEN(Alltoallw, Ialltoallw, 0,
       (const void *data, const int *counts, const int *places, const MPI_Datatype *types, void *got,
         const int *got_counts, const int *got_places, const MPI_Datatype *got_types, MPI_Comm comm),
       data, counts, places, types, got, got_counts, got_places, got_types, comm)
UNEVEN(Neighbor_alltoallw, Ineighbor_alltoallw, 0,
       (const void *data, const int *counts, const MPI_Aint *places, const MPI_Datatype *types, void *got,
         const int *got_counts, const MPI_Aint *got_places, const MPI_Datatype *got_types, MPI_Comm comm),
       data, counts, places, types, got, got_counts, got_places, got_types, comm)

/* ---- one-sided operations. Below a lock, large ones are begun as MPI's operations with requests, which can be asked;
 * what is left for a flush or an unlock polls. */

static _Thread_local struct {
    MPI_Win window;
    MPI_Request request;
} pending[PENDING];
static _Thread_local int pendings, locks;

#define ONE_SIDED(name, with_request, moves, params, ...)                                                              \
    STARTS(with_request, moves, params, __VA_ARGS__)                                                                   \
    FUNCTION(name, P params)                                                                                           \
    {                                                                                                                  \
        CALL;                                                                                                          \
        long long bytes = (moves);                                                                                     \
        moved += bytes;                                                                                                \
        if (!locks || pendings == PENDING || bytes < least_bytes)                                                      \
            return OWN(name)(__VA_ARGS__);                                                                             \
        pending[pendings].window = window;                                                                             \
        return OWN(with_request)(__VA_ARGS__, &pending[pendings++].request);                                           \
    }
#define THERE int at_rank, MPI_Aint at, int there, MPI_Datatype type_there
#define TO_THERE at_rank, at, there, type_there
ONE_SIDED(Put, Rput, bytes_of(count, type), (DATA, THERE, MPI_Win window), data, count, type, TO_THERE, window)
ONE_SIDED(Get, Rget, bytes_of(count, type), (void *data, int count, MPI_Datatype type, THERE, MPI_Win window),
          data, count, type, TO_THERE, window)
ONE_SIDED(Accumulate, Raccumulate, bytes_of(count, type), (DATA, THERE, MPI_Op op, MPI_Win window),
          data, count, type, TO_THERE, op, window)
ONE_SIDED(Get_accumulate, Rget_accumulate, bytes_of(got_count, got_type), (DATA, GOT, THERE, MPI_Op op, MPI_Win window),
          data, count, type, got, got_count, got_type, TO_THERE, op, window)

/* Sleep until the window's large operations are done here; the bytes that were moved. */
static long long settled(MPI_Win window)
{
    long long bytes = moved;
    int left = 0;
    for (int place = 0; place < pendings; place++) {
        if (pending[place].window == window)
            ASLEEP(bytes, OWN(Test)(&pending[place].request, &done, MPI_STATUS_IGNORE));
        else
            pending[left++] = pending[place];
    }
    pendings = left;
    moved = 0;
    return bytes;
}

#define SETTLES(name, params, ...)                                                                                     \
    FUNCTION(name, P params)                                                                                           \
    {                                                                                                                  \
        CALL;                                                                                                          \
        long long bytes = settled(window);                                                                             \
        return POLLING(bytes, OWN(name)(__VA_ARGS__));                                                                 \
    }
SETTLES(Win_flush, (int rank, MPI_Win window), rank, window)
SETTLES(Win_flush_local, (int rank, MPI_Win window), rank, window)
SETTLES(Win_flush_all, (MPI_Win window), window)
SETTLES(Win_flush_local_all, (MPI_Win window), window)
SETTLES(Win_complete, (MPI_Win window), window)

FUNCTION(Win_lock, int kind, int rank, int assertion, MPI_Win window)
{
    CALL;
    locks++;
    return POLLING(0, OWN(Win_lock)(kind, rank, assertion, window));
}

FUNCTION(Win_lock_all, int assertion, MPI_Win window)
{
    CALL;
    locks++;
    return POLLING(0, OWN(Win_lock_all)(assertion, window));
}

FUNCTION(Win_unlock, int rank, MPI_Win window)
{
    CALL;
    locks--;
    long long bytes = settled(window);
    return POLLING(bytes, OWN(Win_unlock)(rank, window));
}

FUNCTION(Win_unlock_all, MPI_Win window)
{
    CALL;
    locks--;
    long long bytes = settled(window);
    return POLLING(bytes, OWN(Win_unlock_all)(window));
}

FUNCTION(Win_start, MPI_Group group, int assertion, MPI_Win window)
{
    CALL;
    return POLLING(0, OWN(Win_start)(group, assertion, window));
}

FUNCTION(Win_wait, MPI_Win window)
{
    CALL;
    UNLESS_PATIENT(0, OWN(Win_wait)(window));
    return ASLEEP(0, OWN(Win_test)(window, &done));
}

static int copy_none(MPI_Win window, int key, void *extra, void *value, void *copy, int *is_copied)
{
    (void)window, (void)key, (void)extra, (void)value, (void)copy;
    *is_copied = 0;
    return MPI_SUCCESS;
}

static int forget_comm(MPI_Win window, int key, void *value, void *extra)
{
    (void)window, (void)key, (void)extra;
    int error = OWN(Comm_free)(value);
    free(value);
    return error;
}

/* A communicator of the window's processes, made at its first fence and freed with the window; NULL: there is none. */
static MPI_Comm *comm_of(MPI_Win window)
{
    static int key = MPI_KEYVAL_INVALID;
    MPI_Comm *comm = NULL;
    int is_known = 0;
    if (key == MPI_KEYVAL_INVALID)
        OWN(Win_create_keyval)(copy_none, forget_comm, &key, NULL);
    OWN(Win_get_attr)(window, key, &comm, &is_known);
    if (is_known)
        return comm;
    MPI_Group group;
    comm = malloc(sizeof *comm);
    if (!comm || OWN(Win_get_group)(window, &group) != MPI_SUCCESS)
        return NULL;
    OWN(Comm_create_group)(MPI_COMM_WORLD, group, 0, comm);
    OWN(Group_free)(&group);
    OWN(Win_set_attr)(window, key, comm);
    return comm;
}

/* MPI has no fence that can be asked for its end: a barrier that can goes before it, in every process, for each knows
 * only its own bytes; data that moves meanwhile is not waited for a second time. */
FUNCTION(Win_fence, int assertion, MPI_Win window)
{
    CALL;
    MPI_Request request;
    MPI_Comm *comm = comm_of(window);
    if (comm)
        wait_for(OWN(Ibarrier)(*comm, &request), &request, MPI_STATUS_IGNORE, moved);
    moved = 0;
    return OWN(Win_fence)(assertion, window);
}

FUNCTION(Finalize, void)
{
    CALL;
    if (getenv("EPROF_WAIT_REPORT"))
        fprintf(stderr, "libwait: slept in %lu waits, %lu times (from %lld bytes on); lowered its clock %lu times\n",
                waits, sleeps, least_bytes, lowered);
#ifndef SIMULATED
    if (guard >= 0 && write(guard, "well\n", 5) == 5)
        close(guard);
#endif
    return OWN(Finalize)();
}
