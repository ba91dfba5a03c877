"""A stand-in for nvidia-smi: answers the questions that eprof asks. STAND_IN_GPU: "NAME, CAPABILITY"."""

import os
import sys

gpu = os.environ.get("STAND_IN_GPU", "Tesla K20c, 3.5")
if "clocks" in sys.argv[1]:
    print("705, 2600, 758, 2600")
else:
    print(gpu if "compute_cap" in sys.argv[1] else gpu.rpartition(",")[0])
