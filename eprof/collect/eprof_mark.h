/* Marks that a program sets itself, for `eprof run`: C, C++ and Fortran. One header, nothing to link.

   C, C++      eprof_mark_begin("assemble"); ... eprof_mark_end();
   C++         { eprof_mark_scope scope("assemble"); ... }
   Fortran     #include "eprof_mark.h" at the top of one .F90 file; where marks are set `use eprof_mark`, then
               call eprof_mark_begin("assemble") ... call eprof_mark_end(). Compile the header along with it:
               gfortran solver.F90 -x c eprof_mark.h

   Marks may lie in each other; each thread has its own. `eprof run` names the table to write to in EPROF_MARKS, or
   "valgrind": then callgrind, which counts the program, is told. Without it a mark costs a call and a branch. With
   -DEPROF_NVTX, or below nvToolsExt.h, a mark is a range of NVTX, too. */
#ifndef EPROF_MARK_H
#define EPROF_MARK_H

#if defined(__STDC__) || defined(__cplusplus)

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#if defined(__STRICT_ANSI__) && !defined(__cplusplus) /* -std=c99 hides them */
extern int setenv(const char *, const char *, int);
extern long syscall(long, ...);
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifdef EPROF_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

#define EPROF_DEEPEST 64
#define EPROF_LONGEST 200
#define EPROF_MOST 20000 /* beginnings and ends that callgrind is told; it takes 0.1 ms and some kB for each */

/* Weak: however many files include this, the program has one of each. */
#define EPROF_ONE __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

struct eprof_open { double begin_s; char name[EPROF_LONGEST + 1]; };
EPROF_ONE __thread struct eprof_open eprof_open_marks[EPROF_DEEPEST];
EPROF_ONE __thread int eprof_depth;
#define EPROF_COUNTED (-3)
EPROF_ONE int eprof_table = -2; /* -2: not looked for yet; -1: nobody wants marks; EPROF_COUNTED: callgrind does */
EPROF_ONE int eprof_told;
EPROF_ONE char eprof_process[64];

EPROF_ONE double eprof_now_s(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
}

/* Whether marks are wanted. The first call opens the table and notes which process this is. */
EPROF_ONE int eprof_listens(void) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    const char *path, *rank = NULL, *parent;
    char own[24];
    struct stat about;
    size_t each;
    if (eprof_table != -2) return eprof_table != -1;
    path = getenv("EPROF_MARKS");
    if (path == NULL || *path == 0) return (eprof_table = -1) != -1;
    if (strcmp(path, "valgrind") == 0) return (eprof_table = EPROF_COUNTED) != -1;
    for (each = 0; each < sizeof ranks / sizeof *ranks && rank == NULL; each++) rank = getenv(ranks[each]);
    snprintf(own, sizeof own, "%ld", (long)getpid());
    parent = getenv("EPROF_MARKS_PROCESS");
    if (parent == NULL) setenv("EPROF_MARKS_PROCESS", own, 1);
    snprintf(eprof_process, sizeof eprof_process, "%s%.20s%s%s", rank ? "rank " : "", rank ? rank : "",
             parent != NULL && strcmp(parent, own) ? (rank ? " process " : "process ") : "",
             parent != NULL && strcmp(parent, own) ? own : "");
    eprof_table = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (eprof_table < 0) {
        fprintf(stderr, "eprof: %s: marks are lost, it cannot be written.\n", path);
    } else if (fstat(eprof_table, &about) == 0 && about.st_size == 0) {
        static const char header[] = "begin_s,end_s,name,rank\n";
        if (write(eprof_table, header, sizeof header - 1) < 0) eprof_table = -1;
    }
    return eprof_table >= 0;
}

/* A request to valgrind's tool, as valgrind.h makes them: for any other processor these instructions do nothing. */
EPROF_ONE void eprof_request(unsigned long number, const char *text) {
#if defined(__x86_64__) && defined(__GNUC__)
    volatile unsigned long words[6] = {number, (unsigned long)text, 0, 0, 0, 0};
    unsigned long answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "=d"(answer) : "a"(&words[0]), "0"(answer) : "cc", "memory");
#else
    (void)number, (void)text;
#endif
}

#if defined(__linux__)
extern char __libc_single_threaded __attribute__((weak)); /* of glibc: whether no thread was started yet */
#endif

/* Have callgrind write down what all threads did up to here, and then which mark of this thread begins or ends:
   "eprof THREAD + NAME". What formats it is counted and written down, too, so no printf does. */
EPROF_ONE void eprof_tell(char sign, const char *name) {
    char text[EPROF_LONGEST + 40] = "eprof ", digits[24];
    size_t length = 6, number = 0;
    long thread = 0;
    if (eprof_told > EPROF_MOST) return;
    if (eprof_told++ == EPROF_MOST) sign = '!';
#if defined(__linux__)
    thread = syscall(SYS_gettid);
    if (!&__libc_single_threaded || !__libc_single_threaded)
        eprof_request(0x1202, "dump eprof"); /* VG_USERREQ__GDB_MONITOR_COMMAND */
#endif
    do digits[number++] = (char)('0' + thread % 10); while ((thread /= 10) > 0);
    while (number) text[length++] = digits[--number];
    text[length++] = ' ', text[length++] = sign, text[length++] = ' ';
    strcpy(text + length, name);
    eprof_request(0x43540003, text); /* VG_USERREQ__DUMP_STATS_AT */
}

/* One row in one piece, as other threads and ranks write, too. */
EPROF_ONE void eprof_write(struct eprof_open *mark, int ends) {
    char row[EPROF_LONGEST + 192], end[32] = "", thread[40] = "";
    int length;
    if (eprof_table == EPROF_COUNTED) {
        eprof_tell(ends ? '-' : '+', mark->name);
        return;
    }
    if (ends) snprintf(end, sizeof end, "%.6f", eprof_now_s());
    else mark->begin_s = eprof_now_s();
#if defined(__linux__)
    if (syscall(SYS_gettid) != getpid())
        snprintf(thread, sizeof thread, "%sthread %ld", *eprof_process ? " " : "", (long)syscall(SYS_gettid));
#endif
    length = snprintf(row, sizeof row, "%.6f,%s,\"%s\",%s%s\n", mark->begin_s, end, mark->name, eprof_process, thread);
    if (write(eprof_table, row, (size_t)length) < 0) eprof_table = -1;
}

EPROF_ONE void eprof_mark_begin(const char *name) {
#ifdef NVTX_VERSION
    nvtxRangePushA(name);
#endif
    if (!eprof_listens()) return;
    if (eprof_depth < EPROF_DEEPEST) {
        struct eprof_open *mark = &eprof_open_marks[eprof_depth];
        size_t place;
        for (place = 0; place < EPROF_LONGEST && name[place]; place++) {
            mark->name[place] = name[place] == '"' ? '\'' : name[place];
            if ((unsigned char)name[place] < ' ') mark->name[place] = ' ';
        }
        mark->name[place] = 0;
        eprof_write(mark, 0);
    }
    eprof_depth++;
}

EPROF_ONE void eprof_mark_end(void) {
#ifdef NVTX_VERSION
    nvtxRangePop();
#endif
    if (!eprof_listens() || eprof_depth == 0) return;
    if (--eprof_depth < EPROF_DEEPEST) eprof_write(&eprof_open_marks[eprof_depth], 1);
}

#ifdef __cplusplus
}
struct eprof_mark_scope {
    explicit eprof_mark_scope(const char *name) { eprof_mark_begin(name); }
    ~eprof_mark_scope() { eprof_mark_end(); }
    eprof_mark_scope(const eprof_mark_scope &) = delete;
};
#endif

#else
module eprof_mark
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char
    implicit none
    private
    public :: eprof_mark_begin, eprof_mark_end
    interface
        subroutine begin_in_c(name) bind(c, name="eprof_mark_begin")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine eprof_mark_end() bind(c, name="eprof_mark_end")
        end subroutine
    end interface
contains
    subroutine eprof_mark_begin(name)
        character(len=*), intent(in) :: name
        call begin_in_c(trim(name) // c_null_char)
    end subroutine
end module
#endif
#endif
