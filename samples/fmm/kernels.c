/* The fast multipole method, one kernel a step; a name begins with its phase. BLOCK lanes a group.

   The launcher defines ORDER (points an edge of a surface), SURFACE (points of a surface), SIDE (points an edge of the
   FFT grid) = RADIX_A * RADIX_B, SLICES (frequencies a lane of v_multiply), INNER and OUTER (surfaces' sizes in half
   widths), and ROOTS_RE, ROOTS_IM: exp(-2 pi i k / SIDE). Of each box of the tree, `range` holds the first of its
   points and the one after the last, `geometry` centre and half width. A list of boxes for every box is `begin` and
   `items`. Charges carry the factor 1 / (4 pi).
   Only kernels' arguments are RESTRICT: Oclgrind does not know what clang makes of it in an inlined function. */

#define HALF (SIDE / 2 + 1)
#define FREQUENCIES (SIDE * SIDE * HALF)

/* sum + q / |d|; at distance zero, a point itself or its twin, nothing. 3 add, 1 mul, 3 fma, 1 rsqrt. */
DEVICE real attract(real x, real y, real z, real4 source, real sum)
{
    const real dx = x - source.x, dy = y - source.y, dz = z - source.z;
    const real squared = FMA(dx, dx, FMA(dy, dy, dz * dz));
    const real inverse = RSQRT(squared);
    return FMA(source.w, squared > (real)0 ? inverse : (real)0, sum); /* both computed: no branch */
}

/* A point relative to a box: exact near the box, since centres are short binary fractions. */
DEVICE real4 relative(real4 point, real4 box)
{
    return pack4(point.x - box.x, point.y - box.y, point.z - box.z, point.w);
}

/* Row k of a matrix, stored by columns, times a vector. SURFACE fma. */
DEVICE real row(GLOBAL const real *matrix, LOCAL_ARG const real *vector, int k)
{
    GLOBAL const real *column = matrix + k;
    real sum = 0;
    int j;
#ifdef __CUDACC__
#pragma unroll 8 /* unrolled whole it takes 255 registers */
#endif
    for (j = 0; j < SURFACE; ++j, column += SURFACE)
        sum = FMA(*column, vector[j], sum);
    return sum;
}

/* The potential at (x, y, z), relative to a box, of the charges on the surface of that box, staged through `tile`. */
DEVICE real from_surface(LOCAL_ARG real4 *tile, GLOBAL const real4 *surface, real scale,
                         GLOBAL const real *charges, real4 at, int working, real sum)
{
    int first, s;
    for (first = 0; first < SURFACE; first += BLOCK) {
        const int count = min(BLOCK, SURFACE - first);
        BARRIER;
        if (LANE < count) {
            const real4 at_unit = surface[first + LANE];
            tile[LANE] = pack4(scale * at_unit.x, scale * at_unit.y, scale * at_unit.z, charges[first + LANE]);
        }
        BARRIER;
        if (working)
            for (s = 0; s < count; ++s)
                sum = attract(at.x, at.y, at.z, tile[s], sum);
    }
    return sum;
}

/* The potential at (x, y, z), relative to a box, of the points first..last, staged through `tile`. */
DEVICE real from_points(LOCAL_ARG real4 *tile, GLOBAL const real4 *points, int first, int last, real4 box,
                        real4 at, int working, real sum)
{
    int s;
    for (; first < last; first += BLOCK) {
        const int count = min(BLOCK, last - first);
        BARRIER;
        if (LANE < count)
            tile[LANE] = relative(points[first + LANE], box);
        BARRIER;
        if (working)
            for (s = 0; s < count; ++s)
                sum = attract(at.x, at.y, at.z, tile[s], sum);
    }
    return sum;
}

DEVICE real4 scaled(real4 point, real scale)
{
    return pack4(scale * point.x, scale * point.y, scale * point.z, point.w);
}

/* ---- UP: charges on the inner surface that stand for the points of a box, from the leaves to the root ---- */

/* A group a leaf: its points -> potential on the outer surface -> charges on the inner one. */
KERNEL(up_p2m)(GLOBAL const int *RESTRICT leaves, GLOBAL const int2 *RESTRICT range,
               GLOBAL const real4 *RESTRICT geometry, GLOBAL const real4 *RESTRICT points,
               GLOBAL const real4 *RESTRICT surface, GLOBAL const real *RESTRICT inverse, GLOBAL real *RESTRICT up)
{
    LOCAL real4 tile[BLOCK];
    LOCAL real check[SURFACE], modes[SURFACE];
    const int box = leaves[GROUP];
    const int2 own = range[box];
    const real4 where = geometry[box];
    int first, k;
    for (first = 0; first < SURFACE; first += BLOCK) {
        const int mine = first + LANE;
        const real4 at = scaled(surface[min(mine, SURFACE - 1)], OUTER * where.w);
        const real sum = from_points(tile, points, own.x, own.y, where, at, mine < SURFACE, 0);
        if (mine < SURFACE)
            check[mine] = sum;
    }
    BARRIER;
    for (k = LANE; k < SURFACE; k += BLOCK)
        modes[k] = where.w * row(inverse, check, k);
    BARRIER;
    for (k = LANE; k < SURFACE; k += BLOCK)
        up[box * SURFACE + k] = row(inverse + SURFACE * SURFACE, modes, k);
}

/* A group a parent: the charges of its children, by octant, -> its own. One launch a level. */
KERNEL(up_m2m)(GLOBAL const int *RESTRICT parents, GLOBAL const int *RESTRICT children,
               GLOBAL const real *RESTRICT m2m, GLOBAL real *RESTRICT up)
{
    LOCAL real of_child[SURFACE];
    const int box = parents[GROUP];
    int first, octant, k;
    for (first = 0; first < SURFACE; first += BLOCK) {
        const int mine = first + LANE;
        real sum = 0;
        for (octant = 0; octant < 8; ++octant) {
            const int child = children[8 * box + octant];
            if (child < 0)
                continue;
            BARRIER;
            for (k = LANE; k < SURFACE; k += BLOCK)
                of_child[k] = up[child * SURFACE + k];
            BARRIER;
            if (mine < SURFACE)
                sum += row(m2m + octant * SURFACE * SURFACE, of_child, mine);
        }
        if (mine < SURFACE)
            up[box * SURFACE + mine] = sum;
    }
}

/* ---- U: direct sums over the leaves that touch a leaf ---- */

/* A group a task, up to BLOCK targets of one leaf. It comes first: it stores, W and DOWN add. */
KERNEL(u_p2p)(GLOBAL const int2 *RESTRICT tasks, GLOBAL const int2 *RESTRICT range, GLOBAL const int *RESTRICT begin,
              GLOBAL const int *RESTRICT items, GLOBAL const real4 *RESTRICT points, GLOBAL real *RESTRICT potential)
{
    LOCAL real4 tile[BLOCK];
    const int box = tasks[GROUP].x, target = tasks[GROUP].y + LANE;
    const int working = target < range[box].y;
    const real4 at = points[min(target, range[box].y - 1)];
    const int last = begin[box + 1];
    real sum = 0;
    int m, s, first;
    for (m = begin[box]; m < last; ++m) {
        const int2 theirs = range[items[m]];
        for (first = theirs.x; first < theirs.y; first += BLOCK) {
            const int count = min(BLOCK, theirs.y - first);
            BARRIER;
            if (LANE < count)
                tile[LANE] = copied(points[first + LANE]);
            BARRIER;
            if (working)
                for (s = 0; s < count; ++s)
                    sum = attract(at.x, at.y, at.z, tile[s], sum);
        }
    }
    if (working)
        potential[target] = sum;
}

/* ---- V: inner charges of far boxes of the same size -> inner check potential, a convolution by FFT ---- */

CONSTANT real ROOT_RE[SIDE] = ROOTS_RE;
CONSTANT real ROOT_IM[SIDE] = ROOTS_IM;

DEVICE real2 complex_product(real2 a, real re, real im)
{
    return pack2(FMA(-a.y, im, a.x * re), FMA(a.y, re, a.x * im));
}

/* Fourier transforms of 1 to 4 numbers in place. Additions: 0, 4, 10 with 2 mul and 2 fma, 16. */
DEVICE void butterfly(real2 *v, int radix)
{
    if (radix == 2) {
        const real2 a = v[0], b = v[1];
        v[0] = pack2(a.x + b.x, a.y + b.y);
        v[1] = pack2(a.x - b.x, a.y - b.y);
    }
    if (radix == 3) {
        const real2 a = v[0];
        const real sum_x = v[1].x + v[2].x, sum_y = v[1].y + v[2].y;
        const real turn_x = (real)0.86602540378443864676 * (v[1].y - v[2].y);
        const real turn_y = (real)0.86602540378443864676 * (v[2].x - v[1].x);
        const real mid_x = FMA((real)-0.5, sum_x, a.x), mid_y = FMA((real)-0.5, sum_y, a.y);
        v[0] = pack2(a.x + sum_x, a.y + sum_y);
        v[1] = pack2(mid_x + turn_x, mid_y + turn_y);
        v[2] = pack2(mid_x - turn_x, mid_y - turn_y);
    }
    if (radix == 4) {
        const real even_x = v[0].x + v[2].x, even_y = v[0].y + v[2].y;
        const real half_x = v[0].x - v[2].x, half_y = v[0].y - v[2].y;
        const real odd_x = v[1].x + v[3].x, odd_y = v[1].y + v[3].y;
        const real turn_x = v[1].y - v[3].y, turn_y = v[3].x - v[1].x;
        v[0] = pack2(even_x + odd_x, even_y + odd_y);
        v[1] = pack2(half_x + turn_x, half_y + turn_y);
        v[2] = pack2(even_x - odd_x, even_y - odd_y);
        v[3] = pack2(half_x - turn_x, half_y - turn_y);
    }
}

/* The transform of SIDE numbers in registers, RADIX_A by RADIX_B (Cooley and Tukey). The loops have constant bounds
   and must be unrolled, or the numbers would be indexed and leave the registers. */
DEVICE void line_fft(real2 *line)
{
    real2 middle[SIDE], v[4];
    int a, b;
#pragma unroll
    for (b = 0; b < RADIX_B; ++b) {
#pragma unroll
        for (a = 0; a < RADIX_A; ++a)
            v[a] = line[RADIX_B * a + b];
        butterfly(v, RADIX_A);
#pragma unroll
        for (a = 0; a < RADIX_A; ++a)
            middle[RADIX_A * b + a] = a * b ? complex_product(v[a], ROOT_RE[a * b], ROOT_IM[a * b]) : v[a];
    }
#pragma unroll
    for (a = 0; a < RADIX_A; ++a) {
#pragma unroll
        for (b = 0; b < RADIX_B; ++b)
            v[b] = middle[RADIX_A * b + a];
        butterfly(v, RADIX_B);
#pragma unroll
        for (b = 0; b < RADIX_B; ++b)
            line[a + RADIX_A * b] = v[b];
    }
}

/* A group a box: charges on the surface -> spectrum of the zero-padded grid. A lane transforms whole lines: along z,
   y, x, of which only those that are not all zero; z keeps half, since the input is real. */
KERNEL(v_fft)(GLOBAL const int *RESTRICT boxes, GLOBAL const int *RESTRICT surface_index,
              GLOBAL const real *RESTRICT up, GLOBAL real2 *RESTRICT spectra)
{
    LOCAL real2 grid[ORDER * SIDE * HALF]; /* x < ORDER, y, z frequency */
    GLOBAL const real *charges = up + boxes[GROUP] * SURFACE;
    GLOBAL real2 *spectrum = spectra + (size_t)GROUP * FREQUENCIES;
    real2 line[SIDE];
    int at, j;
    for (at = LANE; at < ORDER * ORDER; at += BLOCK) {
#pragma unroll
        for (j = 0; j < SIDE; ++j) {
            const int index = j < ORDER ? surface_index[ORDER * at + j] : -1;
            line[j] = pack2(index < 0 ? (real)0 : charges[index], 0);
        }
        line_fft(line);
#pragma unroll
        for (j = 0; j < HALF; ++j)
            grid[(at / ORDER * SIDE + at % ORDER) * HALF + j] = line[j];
    }
    BARRIER;
    for (at = LANE; at < ORDER * HALF; at += BLOCK) {
        LOCAL_ARG real2 *column = grid + at / HALF * SIDE * HALF + at % HALF;
#pragma unroll
        for (j = 0; j < SIDE; ++j)
            line[j] = j < ORDER ? column[j * HALF] : pack2(0, 0);
        line_fft(line);
#pragma unroll
        for (j = 0; j < SIDE; ++j)
            column[j * HALF] = line[j];
    }
    BARRIER;
    for (at = LANE; at < SIDE * HALF; at += BLOCK) {
#pragma unroll
        for (j = 0; j < SIDE; ++j)
            line[j] = j < ORDER ? grid[j * SIDE * HALF + at] : pack2(0, 0);
        line_fft(line);
#pragma unroll
        for (j = 0; j < SIDE; ++j)
            spectrum[j * SIDE * HALF + at] = line[j];
    }
}

#if FREQUENCIES % (BLOCK * SLICES)
#define IN_SPECTRUM(at) ((at) < FREQUENCIES)
#else
#define IN_SPECTRUM(at) 1 /* slices fill the spectrum: nothing to ask in the inner loop */
#endif

/* A group BLOCK * SLICES frequencies of one target, SLICES a lane: the sum over its list of kernel times charges. 4 fma
   an item and frequency. Groups with the same frequencies of neighbouring targets follow each other, so that sources
   are found in cache. */
KERNEL(v_multiply)(int targets, GLOBAL const int *RESTRICT begin, GLOBAL const int2 *RESTRICT items,
                   GLOBAL const real2 *RESTRICT m2l, GLOBAL const real2 *RESTRICT spectra,
                   GLOBAL real2 *RESTRICT products)
{
    const int target = GROUP % targets, first = GROUP / targets * BLOCK * SLICES + LANE;
    const int last = begin[target + 1];
    real re[SLICES], im[SLICES];
    int m, j;
#pragma unroll
    for (j = 0; j < SLICES; ++j)
        re[j] = im[j] = 0;
    for (m = begin[target]; m < last; ++m) {
        const int2 item = items[m]; /* which spectrum, which offset */
        GLOBAL const real2 *charges = spectra + (size_t)item.x * FREQUENCIES + first;
        GLOBAL const real2 *factors = m2l + (size_t)item.y * FREQUENCIES + first;
#pragma unroll
        for (j = 0; j < SLICES; ++j)
            if (IN_SPECTRUM(first + j * BLOCK)) {
                const real2 charge = charges[j * BLOCK], factor = factors[j * BLOCK];
                re[j] = FMA(charge.x, factor.x, FMA(-charge.y, factor.y, re[j]));
                im[j] = FMA(charge.x, factor.y, FMA(charge.y, factor.x, im[j]));
            }
    }
#pragma unroll
    for (j = 0; j < SLICES; ++j)
        if (IN_SPECTRUM(first + j * BLOCK))
            products[(size_t)target * FREQUENCIES + first + j * BLOCK] = pack2(re[j], im[j]);
}

/* A group a target: the way back, x, y, z, of which only what reaches the surface. Real and imaginary part change
   places going in and out, which turns the transform into its inverse. Stores: X adds. */
KERNEL(v_ifft)(GLOBAL const int *RESTRICT boxes, GLOBAL const int *RESTRICT surface_index,
               GLOBAL const real4 *RESTRICT geometry, GLOBAL const real2 *RESTRICT products, GLOBAL real *RESTRICT check)
{
    LOCAL real2 grid[ORDER * SIDE * HALF];
    const int box = boxes[GROUP];
    const real scale = 1 / geometry[box].w;
    GLOBAL const real2 *spectrum = products + (size_t)GROUP * FREQUENCIES;
    real2 line[SIDE];
    int at, j;
    for (at = LANE; at < SIDE * HALF; at += BLOCK) {
#pragma unroll
        for (j = 0; j < SIDE; ++j) {
            const real2 value = spectrum[j * SIDE * HALF + at];
            line[j] = pack2(value.y, value.x);
        }
        line_fft(line);
#pragma unroll
        for (j = 0; j < ORDER; ++j)
            grid[j * SIDE * HALF + at] = line[j];
    }
    BARRIER;
    for (at = LANE; at < ORDER * HALF; at += BLOCK) {
        LOCAL_ARG real2 *column = grid + at / HALF * SIDE * HALF + at % HALF;
#pragma unroll
        for (j = 0; j < SIDE; ++j)
            line[j] = column[j * HALF];
        line_fft(line);
#pragma unroll
        for (j = 0; j < ORDER; ++j)
            column[j * HALF] = line[j];
    }
    BARRIER;
    for (at = LANE; at < ORDER * ORDER; at += BLOCK) {
        LOCAL_ARG real2 *row_of_grid = grid + (at / ORDER * SIDE + at % ORDER) * HALF;
#pragma unroll
        for (j = 0; j < SIDE; ++j) {
            const real2 value = row_of_grid[j < HALF ? j : SIDE - j];
            line[j] = pack2(j < HALF ? value.x : -value.x, value.y); /* conjugate; the parts have changed places */
        }
        line_fft(line);
#pragma unroll
        for (j = 0; j < ORDER; ++j) {
            const int index = surface_index[ORDER * at + j];
            if (index >= 0)
                check[box * SURFACE + index] = scale * line[j].y;
        }
    }
}

/* ---- W: inner charges of smaller boxes -> points of a leaf ---- */

KERNEL(w_m2p)(GLOBAL const int2 *RESTRICT tasks, GLOBAL const int2 *RESTRICT range, GLOBAL const int *RESTRICT begin,
              GLOBAL const int *RESTRICT items, GLOBAL const real4 *RESTRICT geometry,
              GLOBAL const real4 *RESTRICT surface, GLOBAL const real *RESTRICT up,
              GLOBAL const real4 *RESTRICT points, GLOBAL real *RESTRICT potential)
{
    LOCAL real4 tile[BLOCK];
    const int box = tasks[GROUP].x, target = tasks[GROUP].y + LANE;
    const int working = target < range[box].y;
    const real4 at = points[min(target, range[box].y - 1)];
    const int last = begin[box + 1];
    real sum = 0;
    int m;
    for (m = begin[box]; m < last; ++m) {
        const int other = items[m];
        const real4 where = geometry[other];
        sum = from_surface(tile, surface, INNER * where.w, up + other * SURFACE, relative(at, where), working, sum);
    }
    if (working)
        potential[target] += sum;
}

/* ---- X: points of larger leaves -> inner check potential of a box ---- */

/* A group BLOCK points of the check surface of one box. */
KERNEL(x_p2l)(int targets, GLOBAL const int *RESTRICT boxes, GLOBAL const int2 *RESTRICT range,
              GLOBAL const int *RESTRICT begin, GLOBAL const int *RESTRICT items,
              GLOBAL const real4 *RESTRICT geometry, GLOBAL const real4 *RESTRICT surface,
              GLOBAL const real4 *RESTRICT points, GLOBAL real *RESTRICT check)
{
    LOCAL real4 tile[BLOCK];
    const int box = boxes[GROUP % targets], mine = GROUP / targets * BLOCK + LANE;
    const real4 where = geometry[box];
    const real4 at = scaled(surface[min(mine, SURFACE - 1)], INNER * where.w);
    const int last = begin[box + 1];
    real sum = 0;
    int m;
    for (m = begin[box]; m < last; ++m) {
        const int2 theirs = range[items[m]];
        sum = from_points(tile, points, theirs.x, theirs.y, where, at, mine < SURFACE, sum);
    }
    if (mine < SURFACE)
        check[box * SURFACE + mine] += sum;
}

/* ---- DOWN: charges on the outer surface that stand for all that is far from a box, from the root to the leaves ---- */

/* A group a box: its check potential and the charges of its parent, if that has any, -> its charges. One launch a
   level. */
KERNEL(down_l2l)(GLOBAL const int *RESTRICT boxes, GLOBAL const int2 *RESTRICT parent_octant,
                 GLOBAL const real4 *RESTRICT geometry, GLOBAL const real *RESTRICT check,
                 GLOBAL const real *RESTRICT inverse, GLOBAL const real *RESTRICT l2l, GLOBAL real *RESTRICT down)
{
    LOCAL real own[SURFACE], modes[SURFACE], of_parent[SURFACE];
    const int box = boxes[GROUP];
    const int2 from = parent_octant[box]; /* parent -1: has no charges */
    const real width = geometry[box].w;
    int k;
    for (k = LANE; k < SURFACE; k += BLOCK) {
        own[k] = check[box * SURFACE + k];
        if (from.x >= 0)
            of_parent[k] = down[from.x * SURFACE + k];
    }
    BARRIER;
    for (k = LANE; k < SURFACE; k += BLOCK)
        modes[k] = width * row(inverse, own, k);
    BARRIER;
    for (k = LANE; k < SURFACE; k += BLOCK) {
        real sum = row(inverse + SURFACE * SURFACE, modes, k);
        if (from.x >= 0)
            sum += row(l2l + from.y * SURFACE * SURFACE, of_parent, k);
        down[box * SURFACE + k] = sum;
    }
}

/* A group a task, up to BLOCK targets of one leaf: the charges of its outer surface -> its points. */
KERNEL(down_l2p)(GLOBAL const int2 *RESTRICT tasks, GLOBAL const int2 *RESTRICT range,
                 GLOBAL const real4 *RESTRICT geometry, GLOBAL const real4 *RESTRICT surface,
                 GLOBAL const real *RESTRICT down, GLOBAL const real4 *RESTRICT points,
                 GLOBAL real *RESTRICT potential)
{
    LOCAL real4 tile[BLOCK];
    const int box = tasks[GROUP].x, target = tasks[GROUP].y + LANE;
    const int working = target < range[box].y;
    const real4 where = geometry[box];
    const real4 at = relative(points[min(target, range[box].y - 1)], where);
    const real sum = from_surface(tile, surface, OUTER * where.w, down + box * SURFACE, at, working, 0);
    if (working)
        potential[target] += sum;
}
