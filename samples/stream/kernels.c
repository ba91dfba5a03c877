/* The triad of STREAM: a = b + 3 c. One fma, two loads, one store an element. */
KERNEL(stream_triad)(int n, GLOBAL const real *RESTRICT b, GLOBAL const real *RESTRICT c, GLOBAL real *RESTRICT a)
{
    const int i = GROUP * BLOCK + LANE;
    if (i < n)
        a[i] = FMA((real)3, c[i], b[i]);
}
