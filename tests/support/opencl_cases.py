"""Runs OpenCL kernels on the simulated device and writes what they left in their buffers: `python opencl_cases.py CASES.json`.

A case: name, source, kernel, global, local, arguments (buffers, local memory, scalars) and perhaps options, offset, launches
and show, which prints the buffers. Each prints a line of the digests of its buffers, behind the counts that Oclgrind prints.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np


def contents(kind, size, seed):
    """What a buffer holds at first: small numbers, with the odd ones where sums and quotients differ."""
    random = np.random.default_rng(seed)
    if kind in ("float32", "float64"):
        values = random.normal(0, 3, size)
        values[::7] = random.choice(
            [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 1e-30, 1e30, np.inf, -np.inf, np.nan], len(values[::7])
        )
        return values.astype(kind)
    information = np.iinfo(kind)
    values = random.integers(max(information.min, -50), min(information.max, 50), size).astype(kind)
    odd = np.array([information.min, information.max, 0, 1, information.max // 2], dtype=kind)
    values[::5] = random.choice(odd, len(values[::5]))
    return values


PROGRAMS = {}


def run(case, context, queue, cl):
    key = case["source"], case.get("options", "")
    if key not in PROGRAMS:
        PROGRAMS[key] = cl.Program(context, key[0]).build(key[1], cache_dir=False)
    kernel = cl.Kernel(PROGRAMS[key], case["kernel"])
    buffers, arguments = [], []
    flags = cl.mem_flags
    for argument in case["arguments"]:
        if argument["is"] == "buffer":
            data = contents(argument["type"], argument["size"], argument["seed"])
            buffers.append((cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=data), data))
            arguments.append(buffers[-1][0])
        elif argument["is"] == "local":
            arguments.append(cl.LocalMemory(argument["size"]))
        else:
            arguments.append(np.dtype(argument["type"]).type(argument["value"]))
    for _ in range(case.get("launches", 1)):
        offset = case.get("offset")
        kernel.set_args(*arguments)
        cl.enqueue_nd_range_kernel(queue, kernel, case["global"], case["local"], offset)
    digests = []
    for buffer, data in buffers:
        cl.enqueue_copy(queue, data, buffer)
        if data.dtype.kind == "f":
            data[np.isnan(data)] = np.nan
        digests.append(hashlib.sha256(data.tobytes()).hexdigest()[:16])
        if case.get("show"):
            print(list(data), flush=True)
    print(case["name"], *digests, flush=True)


def main():
    import pyopencl as cl

    context = cl.Context(cl.get_platforms()[0].get_devices())
    queue = cl.CommandQueue(context)
    for case in json.loads(Path(sys.argv[1]).read_text()):
        try:
            run(case, context, queue, cl)
        except cl.Error as err:
            print(case["name"], "failed:", str(err)[:300], flush=True)


if __name__ == "__main__":
    main()
