/* The sum of BLOCK elements a group, by a tree in shared memory. Both forms do the same BLOCK - 1 additions with the
   same bytes; they differ in which shared memory banks the lanes of a warp touch. One load, one store to shared memory
   an element; two loads, one store an addition; the last lane's load of the sum, and one store a group. */

/* The lanes' elements are 2 * step apart: at step 16 all 32 lanes of a warp want the same bank. */
KERNEL(reduce_conflicts)(int n, GLOBAL const real *RESTRICT input, GLOBAL real *RESTRICT sums)
{
    LOCAL real part[BLOCK];
    const int i = GROUP * BLOCK + LANE;
    int step;
    part[LANE] = i < n ? input[i] : (real)0;
    for (step = 1; step < BLOCK; step *= 2) {
        BARRIER;
        if (LANE < BLOCK / 2 / step)
            part[2 * step * LANE] += part[2 * step * LANE + step];
    }
    if (LANE == 0)
        sums[GROUP] = part[0];
}

/* Neighbouring lanes, neighbouring banks. */
KERNEL(reduce_free)(int n, GLOBAL const real *RESTRICT input, GLOBAL real *RESTRICT sums)
{
    LOCAL real part[BLOCK];
    const int i = GROUP * BLOCK + LANE;
    int step;
    part[LANE] = i < n ? input[i] : (real)0;
    for (step = BLOCK / 2; step > 0; step /= 2) {
        BARRIER;
        if (LANE < step)
            part[LANE] += part[LANE + step];
    }
    if (LANE == 0)
        sums[GROUP] = part[0];
}
