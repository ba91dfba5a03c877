"""Runs one kernel of kernels.cl on an OpenCL device, for `eprof run` to count: `run.py NAME N`."""

import sys
from pathlib import Path

import pyopencl as cl

# Of each kernel: bytes of its buffers, its last argument, groups, items of a group; n is the size.
SHAPES = {
    "vector_add": lambda n: ((4 * n,) * 3, None, n // 256, 256),
    "silu": lambda n: ((4 * n,) * 2, n, 8192, 256),
    "rms_norm": lambda n: ((4 * n * n, 4 * n, 4 * n * n), n, n, 256),
    "fill": lambda n: ((2 * n * n,), None, n * n // 256, 256),
    "gemm_naive": lambda n: ((4 * n * n,) * 3, n, (n // 32) ** 2, 1024),
    "sgemm_shared": lambda n: ((4 * n * n,) * 3, n, (n // 32) ** 2, 1024),
    "sgemm_1d": lambda n: ((4 * n * n,) * 3, n, (n // 64) ** 2, 512),
    "sgemm_2d": lambda n: ((4 * n * n,) * 3, n, (n // 128) ** 2, 256),
    "sgemm_2d_vectors": lambda n: ((4 * n * n,) * 3, n, (n // 128) ** 2, 256),
}


def main(name: str, size: int) -> None:
    """One launch of a kernel on the first device that there is."""
    import numpy as np

    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, Path(__file__).with_name("kernels.cl").read_text()).build()
    buffers, last, groups, items = SHAPES[name](size)
    arguments = [cl.Buffer(context, cl.mem_flags.READ_WRITE, bytes_) for bytes_ in buffers]
    arguments += [] if last is None else [np.int32(last)]
    getattr(program, name)(queue, (groups * items,), (items,), *arguments)
    queue.finish()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
