"""The kernel-independent translations [Ying, Biros, Zorin 2004], for boxes of half width 1 and the kernel 1/r.

A box is stood for by charges on the surface of a cube around it. Up: charges at INNER, chosen so that they give the
right potential on the check surface at OUTER. Down: charges at OUTER that give the right potential at INNER. The
kernel is homogeneous (K(a x) = K(x) / a), so one set of matrices serves all levels: an inverse is multiplied by the
half width, a potential divided by it, and the products of both, M2M and L2L, do not change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmm.tree import BITS, OFFSETS

INNER, OUTER = 1.05, 2.95

# order -> points an edge of the FFT grid, as first and second factor: at least 2 order - 1, for a linear convolution
FFT = {2: (4, 1), 3: (2, 3), 4: (2, 4), 5: (3, 3), 6: (3, 4), 7: (4, 4), 8: (4, 4)}

CUTOFF = {"single": 1e-7, "double": 1e-14}  # singular values below this part of the largest are noise

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Operators:
    """Matrices are stored transposed, (from, to): neighbouring threads, which make neighbouring results, read runs."""

    surface: Floats  # (surface points, 3), on the cube of half width 1
    surface_index: NDArray[np.int64]  # (order^3,): the number of a grid point on the surface, or -1 inside
    up: Floats  # (2, s, s): outer check potential -> inner charges, in two steps
    down: Floats  # (2, s, s): inner check potential -> outer charges
    m2m: Floats  # (8, s, s): a child's charges -> its parent's
    l2l: Floats  # (8, s, s): a parent's charges -> its child's
    m2l: NDArray[np.complex128]  # (343, frequencies): spectrum of the kernel for each offset, zero where boxes touch


def grid(order: int) -> NDArray[np.int64]:
    """(order^3, 3): the integer coordinates of the cube's lattice, z fastest."""
    return np.stack(np.meshgrid(*[np.arange(order)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def on_surface(order: int) -> NDArray[np.bool_]:
    """Which points of the lattice lie on its surface: 6 (order - 1)^2 + 2 of them."""
    return ((grid(order) == 0) | (grid(order) == order - 1)).any(axis=1)


def kernel(targets: Floats, sources: Floats) -> Floats:
    """1 / |t - s|; zero for coincident points. The factor 1 / (4 pi) is in the charges."""
    distance = np.linalg.norm(targets[:, None, :] - sources[None, :, :], axis=2)
    return np.divide(1.0, distance, out=np.zeros_like(distance), where=distance > 0)


def regularised_inverse(matrix: Floats, cutoff: float) -> tuple[Floats, Floats]:
    """Two factors of the pseudo-inverse, without the singular values below `cutoff` times the largest.

    Applied one after the other they are backward stable. Their product is not: rounding its large elements disturbs
    the charges in directions that the potential feels, and single precision would end at 1e-4.
    """
    left, values, right = np.linalg.svd(matrix)
    inverse = np.where(values > cutoff * values[0], 1 / values, 0.0)
    return right.T, inverse[:, None] * left.T


def operators(order: int, precision: str) -> Operators:
    """All translations of one order."""
    shell = on_surface(order)
    surface = grid(order)[shell] * (2 / (order - 1)) - 1
    outwards = kernel(OUTER * surface, INNER * surface)
    up, down = (regularised_inverse(matrix, CUTOFF[precision]) for matrix in (outwards, outwards.T))
    child = [0.5 * (2 * bits - 1) for bits in BITS]
    m2m = [up[0] @ (up[1] @ kernel(OUTER * surface, at + 0.5 * INNER * surface)) for at in child]
    l2l = [0.5 * down[0] @ (down[1] @ kernel(at + 0.5 * INNER * surface, OUTER * surface)) for at in child]
    return Operators(
        surface=surface,
        surface_index=np.where(shell, np.cumsum(shell) - 1, -1),
        up=np.stack([up[1].T, up[0].T]),
        down=np.stack([down[1].T, down[0].T]),
        m2m=np.stack([matrix.T for matrix in m2m]),
        l2l=np.stack([matrix.T for matrix in l2l]),
        m2l=m2l_spectra(order),
    )


def m2l_spectra(order: int) -> NDArray[np.complex128]:
    """The kernel between the lattices of two boxes depends on the lattice points' difference alone: a convolution.

    Includes the 1 / n^3 of the inverse transform.
    """
    n = int(np.prod(FFT[order]))
    steps = np.arange(n)
    steps = np.where(steps < order, steps, steps - n) * (2 * INNER / (order - 1))
    spectra = np.zeros((343, n, n, n // 2 + 1), dtype=np.complex128)
    for row, offset in enumerate(OFFSETS):
        if np.abs(offset).max() > 1:
            x, y, z = (2.0 * offset[axis] + steps for axis in range(3))
            distance = np.sqrt(x[:, None, None] ** 2 + y[None, :, None] ** 2 + z[None, None, :] ** 2)
            spectra[row] = np.fft.rfftn(1 / distance) / n**3
    return spectra.reshape(343, -1)
