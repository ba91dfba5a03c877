/* All pairs: the potential 1 / r of N charges at the charges. The launcher defines BLOCK. Both forms do the same
   arithmetic, N * N times: 3 add, 1 mul, 3 fma, 1 rsqrt. */

/* As in ../fmm/kernels.c: sum + q / |d|, nothing at distance zero. */
DEVICE real attract(real x, real y, real z, real4 source, real sum)
{
    const real dx = x - source.x, dy = y - source.y, dz = z - source.z;
    const real squared = FMA(dx, dx, FMA(dy, dy, dz * dz));
    const real inverse = RSQRT(squared);
    return FMA(source.w, squared > (real)0 ? inverse : (real)0, sum);
}

/* Every source is read from global memory by every lane: the caches must help. */
KERNEL(nbody_naive)(int n, GLOBAL const real4 *RESTRICT points, GLOBAL real *RESTRICT potential)
{
    const int target = GROUP * BLOCK + LANE;
    real sum = 0;
    int s;
    if (target < n) {
        const real4 at = points[target];
        for (s = 0; s < n; ++s)
            sum = attract(at.x, at.y, at.z, points[s], sum);
        potential[target] = sum;
    }
}

/* A group reads BLOCK sources at a time into shared memory. */
KERNEL(nbody_tiled)(int n, GLOBAL const real4 *RESTRICT points, GLOBAL real *RESTRICT potential)
{
    LOCAL real4 tile[BLOCK];
    const int target = GROUP * BLOCK + LANE;
    const real4 at = points[min(target, n - 1)];
    real sum = 0;
    int first, s;
    for (first = 0; first < n; first += BLOCK) {
        const int count = min(BLOCK, n - first);
        BARRIER;
        if (LANE < count)
            tile[LANE] = copied(points[first + LANE]);
        BARRIER;
        if (target < n)
            for (s = 0; s < count; ++s)
                sum = attract(at.x, at.y, at.z, tile[s], sum);
    }
    if (target < n)
        potential[target] = sum;
}
