/* The shift benchmark ([S] 6.4.2): each process puts to, gets from or accumulates into every other one in turn, and a
 * fence ends each operation.
 *
 *     shift OPERATIONS SIZES ROUNDS REPEATS COUNTERS                  ROUNDS: so many, or as many as fill a time ("0.05s")
 *     shift OPERATIONS SIZES ROUNDS REPEATS - INTERRUPT_S CHANGE_S    simulated (-DSIMULATED): costs in s, "-" for none
 *
 * COUNTERS: files with microjoules, each with the range at which it wraps ("FILE=RANGE"), or "-". One process of each
 * node reads them, so that no joule is counted twice. For each operation and size, REPEATS lines:
 *
 *     eprof-comm OPERATION BYTES OPERATIONS TIME_S PROCESSOR_S ENERGY_J
 *
 * OPERATIONS are of one process; processor time and energy of all together; -1: not known. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef SIMULATED
#include <simgrid/host.h>
#include <simgrid/plugins/energy.h>
#endif

enum { COUNTERS = 64, BLOCK = 1024, TRIALS = 3 };

static int rank, processes, reader; /* reader: this process reads the counters of its node */
static int counters;
static char *counter[COUNTERS];
static double range[COUNTERS];
static double interrupt_s = -1, change_s = -1;
static char *memory, *source;
static MPI_Win window;

static void stop(const char *why, const char *what)
{
    fprintf(stderr, "shift: %s%s\n", why, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* ---- joules */

static void read_counters(double *microjoules)
{
    for (int place = 0; place < counters; place++) {
        FILE *file = fopen(counter[place], "r");
        if (!file || fscanf(file, "%lf", &microjoules[place]) != 1)
            stop("no joules can be read from ", counter[place]);
        fclose(file);
    }
}

static double between(const double *before, const double *after)
{
    double joules = 0;
    for (int place = 0; place < counters; place++) {
        double step = after[place] - before[place];
        joules += 1e-6 * (step < 0 ? step + range[place] : step);
    }
    return joules;
}

static void find_counters(char *words)
{
    for (char *word = strtok(words, ","); word && strcmp(word, "-") && counters < COUNTERS; word = strtok(NULL, ",")) {
        char *wrap = strrchr(word, '=');
        if (!wrap)
            stop("a counter without its range: ", word);
        *wrap = 0;
        counter[counters] = word;
        range[counters++] = atof(wrap + 1);
    }
    MPI_Comm node;
    int place;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &place);
    MPI_Comm_free(&node);
    reader = counters && place == 0;
}

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* ---- what a simulation has instead: costs are executed, joules are the host's */

static void work(double seconds)
{
#ifdef SIMULATED
    if (seconds > 0)
        smpi_execute_flops(seconds * sg_host_get_speed(sg_host_self()));
#else
    (void)seconds;
#endif
}

static void clock_state(int state)
{
#ifdef SIMULATED
    if (change_s < 0)
        return;
    if (state)
        work(change_s);
    sg_host_set_pstate(sg_host_self(), state);
    if (!state)
        work(change_s);
#else
    (void)state;
#endif
}

/* ---- the pattern */

static void begin_transfer(const char *operation, int bytes, int other, MPI_Datatype strided)
{
    int numbers = bytes < 8 ? 1 : bytes / 8;
    if (!strcmp(operation, "put"))
        MPI_Put(source, bytes, MPI_CHAR, other, 0, bytes, MPI_CHAR, window);
    else if (!strcmp(operation, "get"))
        MPI_Get(source, bytes, MPI_CHAR, other, 0, bytes, MPI_CHAR, window);
    else if (!strcmp(operation, "accumulate"))
        MPI_Accumulate(source, numbers, MPI_DOUBLE, other, 0, numbers, MPI_DOUBLE, MPI_SUM, window);
    else
        MPI_Put(source, 1, strided, other, 0, 1, strided, window);
}

static void shift(const char *operation, int bytes, long rounds, MPI_Datatype strided)
{
    for (long round = 0; round < rounds; round++)
        for (int step = 1; step < processes; step++) {
            clock_state(1);
            begin_transfer(operation, bytes, (rank + step) % processes, strided);
            MPI_Win_fence(0, window);
            work(interrupt_s);
            clock_state(0);
        }
}

/* The least of some trials, s: in others a process may have lost its core to another program. */
static double trial(const char *operation, int bytes, long rounds, MPI_Datatype strided)
{
    double least = 1e9;
    for (int number = 0; number < TRIALS; number++) {
        double begin = MPI_Wtime();
        shift(operation, bytes, rounds, strided);
        double time_s = MPI_Wtime() - begin;
        least = time_s < least ? time_s : least;
    }
    return least;
}

/* As many rounds as the user says, or as many as fill a time: rank 0 tries until they do. */
static long rounds_of(const char *words, const char *operation, int bytes, MPI_Datatype strided)
{
    char *unit;
    double number = strtod(words, &unit);
    if (*unit != 's')
        return (long)number;
    long rounds = 1;
    for (int is_filled = 0; !is_filled; rounds *= 2) {
        is_filled = trial(operation, bytes, rounds, strided) > number / 4;
        MPI_Bcast(&is_filled, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return 2 * rounds; /* four times those that filled a quarter */
}

static void measure(const char *operation, int bytes, long rounds, MPI_Datatype strided)
{
    double before[COUNTERS], after[COUNTERS], mine[2], all[2], time_s, longest;
    shift(operation, bytes, 1, strided); /* processes then begin as far apart as they end */
    if (reader)
        read_counters(before);
#ifdef SIMULATED
    double joules = sg_host_get_consumed_energy(sg_host_self());
#endif
    double processor = processor_s(), begin = MPI_Wtime();
    shift(operation, bytes, rounds, strided);
    time_s = MPI_Wtime() - begin;
    mine[0] = processor_s() - processor;
    mine[1] = 0;
    if (reader) {
        read_counters(after);
        mine[1] = between(before, after);
    }
#ifdef SIMULATED
    mine[1] = sg_host_get_consumed_energy(sg_host_self()) - joules;
#endif
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&time_s, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank)
        return;
#ifdef SIMULATED
    all[0] = -1;
#else
    if (!counters)
        all[1] = -1;
#endif
    printf("eprof-comm %s %d %ld %.9g %.9g %.9g\n", operation, bytes, rounds * (processes - 1), longest, all[0], all[1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (argc < 6 || processes < 2)
        stop("shift OPERATIONS SIZES ROUNDS REPEATS COUNTERS, on two processes or more", "");
    find_counters(argv[5]);
    if (argc > 7) {
        interrupt_s = strcmp(argv[6], "-") ? atof(argv[6]) : -1;
        change_s = strcmp(argv[7], "-") ? atof(argv[7]) : -1;
    }
    for (char *left = NULL, *size = strtok_r(argv[2], ",", &left); size; size = strtok_r(NULL, ",", &left)) {
        int bytes = atoi(size);
        int block = bytes < BLOCK ? bytes : BLOCK;
        MPI_Datatype strided;
        MPI_Type_vector(bytes / block, block, 2 * block, MPI_CHAR, &strided);
        MPI_Type_commit(&strided);
        MPI_Win_allocate(2 * (MPI_Aint)bytes + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        source = calloc(2, (size_t)bytes + 8);
        if (!source)
            stop("no memory for messages of ", size);
        memset(memory, 0, 2 * (size_t)bytes + 8);
        MPI_Win_fence(0, window);
        char *names = strdup(argv[1]), *rest = NULL;
        for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
            long rounds = rounds_of(argv[3], name, bytes, strided);
            for (int repeat = 0; repeat < atoi(argv[4]); repeat++)
                measure(name, bytes, rounds, strided);
        }
        free(names);
        free(source);
        MPI_Win_free(&window);
        MPI_Type_free(&strided);
    }
    MPI_Finalize();
    return 0;
}
