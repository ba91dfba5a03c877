"""A stand-in for nvidia-smi: answers the one question that eprof asks. STAND_IN_GPU: "NAME, CAPABILITY"."""

import os
import sys

gpu = os.environ.get("STAND_IN_GPU", "Tesla K20c, 3.5")
print(gpu if "compute_cap" in sys.argv[1] else gpu.rpartition(",")[0])
