"""A small OpenCL program: LAUNCHES launches of `axpy` over N doubles, and one of `scale` over N floats."""

import os
import sys
import time

import numpy as np
import pyopencl as cl

SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void axpy(__global double *y, __global const double *x, double a) {
  int i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
__kernel void scale(__global float *y, float a) { y[get_global_id(0)] *= a; }
"""


def main():
    n, launches, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    axpy, scale = cl.Kernel(program, "axpy"), cl.Kernel(program, "scale")
    x = np.ones(n)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    a, b = (cl.Buffer(context, flags, hostbuf=x) for _ in range(2))
    for i in range(launches):
        sys.stdout.write(f"launch {i}: ")  # a line that Oclgrind's block cuts in two
        sys.stdout.flush()
        axpy(queue, (n,), None, a, b, np.float64(2))
        queue.finish()
        print("done", flush=True)
        time.sleep(pause)
    scale(queue, (n,), None, a, np.float32(2))
    queue.finish()
    sys.exit(int(os.environ.get("PROGRAM_CODE", "0")))


main()
