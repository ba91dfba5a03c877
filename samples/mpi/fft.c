/* A Fourier transform of n complex numbers, n a power of 4, by rows of a sqrt(n) x sqrt(n) matrix that is transposed
 * between all processes (the six-step algorithm).
 *
 *     ./fft n REPETITIONS
 *
 * Each transform moves all numbers three times between all pairs of processes. It is checked with a wave, whose transform
 * is one number. */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, processes;
static size_t side, rows; /* of the matrix; of this process's part of it */
static double complex *matrix, *packed;
static const double TURN = 6.283185307179586;

static double complex *numbers(size_t count)
{
    double complex *memory = calloc(count, sizeof *memory);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

/* One row, in place. */
static void transform(double complex *row)
{
    for (size_t at = 1, other = 0; at < side; at++) {
        size_t bit = side >> 1;
        for (; other & bit; bit >>= 1)
            other ^= bit;
        other ^= bit;
        if (at < other) {
            double complex swapped = row[at];
            row[at] = row[other];
            row[other] = swapped;
        }
    }
    for (size_t half = 1; half < side; half *= 2)
        for (size_t offset = 0; offset < half; offset++) {
            double complex root = cexp(-I * TURN / 2 * offset / half);
            for (size_t at = offset; at < side; at += 2 * half) {
                double complex odd = root * row[at + half];
                row[at + half] = row[at] - odd;
                row[at] += odd;
            }
        }
}

static void transpose(void)
{
    for (int process = 0; process < processes; process++)
        for (size_t column = 0; column < rows; column++)
            for (size_t row = 0; row < rows; row++)
                packed[(process * rows + column) * rows + row] = matrix[row * side + process * rows + column];
    int block = 2 * rows * rows;
    MPI_Alltoall(packed, block, MPI_DOUBLE, matrix, block, MPI_DOUBLE, MPI_COMM_WORLD);
    for (size_t row = 0; row < rows; row++)
        for (int process = 0; process < processes; process++)
            for (size_t column = 0; column < rows; column++)
                packed[row * side + process * rows + column] = matrix[(process * rows + row) * rows + column];
    double complex *made = packed;
    packed = matrix;
    matrix = made;
}

static void fourier(void)
{
    transpose();
    for (size_t row = 0; row < rows; row++) {
        transform(matrix + row * side);
        for (size_t column = 0; column < side; column++)
            matrix[row * side + column] *= cexp(-I * TURN * (rank * rows + row) * column / (side * side));
    }
    transpose();
    for (size_t row = 0; row < rows; row++)
        transform(matrix + row * side);
    transpose();
}

/* The largest error of the transform of a wave: n at its frequency, 0 elsewhere. */
static double error(size_t frequency)
{
    double mine = 0, all;
    for (size_t at = 0; at < rows * side; at++) {
        double wanted = rank * rows * side + at == frequency ? (double)(side * side) : 0;
        mine = fmax(mine, cabs(matrix[at] - wanted));
    }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all / (side * side);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    size_t points = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 16;
    int repetitions = argc > 2 ? atoi(argv[2]) : 1;
    for (side = 1; side * side < points; side *= 2)
        ;
    rows = side / processes;
    if (side * side != points || rows * processes != side) {
        fprintf(stderr, "fft: n must be a power of 4, and its root a multiple of the %d processes.\n", processes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    matrix = numbers(rows * side);
    packed = numbers(rows * side);
    size_t frequency = points / 3;

    double seconds = 0, worst = 0;
    for (int repetition = 0; repetition < repetitions; repetition++) {
        for (size_t at = 0; at < rows * side; at++)
            matrix[at] = cexp(I * TURN * fmod((double)frequency * (rank * rows * side + at), points) / points);
        double begin = MPI_Wtime();
        fourier();
        seconds += MPI_Wtime() - begin;
        worst = fmax(worst, error(frequency));
    }
    if (rank == 0)
        printf("fft: n=%zu, %d processes, error %.1e, %.6f s\n", points, processes, worst, seconds);
    MPI_Finalize();
    return worst > 1e-9;
}
