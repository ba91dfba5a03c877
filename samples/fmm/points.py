"""Point sets with a seed, all in the unit cube."""

import numpy as np
from numpy.typing import NDArray


def uniform(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Evenly in the cube: a tree of nearly one level."""
    return rng.random((count, 3))


def sphere(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Evenly on the largest sphere in the cube: most boxes of the octree are empty."""
    direction = rng.standard_normal((count, 3))
    return 0.5 + 0.5 * direction / np.linalg.norm(direction, axis=1, keepdims=True)


def clustered(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Sixteen Gaussian clouds, 1e-4 to 1e-1 wide, wrapped into the cube: a deep tree with long W and X lists."""
    centres, widths = rng.random((16, 3)), np.geomspace(1e-4, 1e-1, 16)
    cloud = rng.integers(16, size=count)
    return (centres[cloud] + widths[cloud, None] * rng.standard_normal((count, 3))) % 1.0


DISTRIBUTIONS = {"uniform": uniform, "sphere": sphere, "clustered": clustered}
