/* C = A B of n by n matrices, n a multiple of TILE, stored by rows. TILE * TILE = BLOCK lanes make one tile of C, one
   element each. Both forms do n * n * n fma. */

/* Two loads from global memory an fma. */
KERNEL(gemm_naive)(int n, GLOBAL const real *RESTRICT a, GLOBAL const real *RESTRICT b, GLOBAL real *RESTRICT c)
{
    const int tiles = n / TILE;
    const int i = GROUP / tiles * TILE + LANE / TILE, j = GROUP % tiles * TILE + LANE % TILE;
    real sum = 0;
    int k;
    for (k = 0; k < n; ++k)
        sum = FMA(a[i * n + k], b[k * n + j], sum);
    c[i * n + j] = sum;
}

/* Two loads from shared memory an fma, 2 / TILE from global memory. */
KERNEL(gemm_tiled)(int n, GLOBAL const real *RESTRICT a, GLOBAL const real *RESTRICT b, GLOBAL real *RESTRICT c)
{
    LOCAL real tile_a[BLOCK], tile_b[BLOCK];
    const int tiles = n / TILE, y = LANE / TILE, x = LANE % TILE;
    const int i = GROUP / tiles * TILE + y, j = GROUP % tiles * TILE + x;
    real sum = 0;
    int first, k;
    for (first = 0; first < n; first += TILE) {
        BARRIER;
        tile_a[LANE] = a[i * n + first + x];
        tile_b[LANE] = b[(first + y) * n + j];
        BARRIER;
        for (k = 0; k < TILE; ++k)
            sum = FMA(tile_a[y * TILE + k], tile_b[k * TILE + x], sum);
    }
    c[i * n + j] = sum;
}
