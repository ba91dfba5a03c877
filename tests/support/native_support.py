"""Kernels run both ways on the simulated device, interpreted and natively: `python tests/support/native_support.py 200`.

That compares 200 random kernels, and with `builtins` behind it every built-in function, and says what differs.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import builtin_kernels
import random_kernels

from eprof.profilers.oclgrind import native
from eprof.profilers.oclgrind.collector import COLLECTOR

HERE = Path(__file__).resolve().parent


def device(folder, natively):
    """The environment of a program that runs on the simulated device."""
    driver = Path(str(COLLECTOR.find().path))
    (folder / "icd").mkdir(exist_ok=True)
    (folder / "icd" / "oclgrind.icd").write_text(f"{driver}\n")
    environment = {
        "OCL_ICD_VENDORS": str(folder / "icd"),
        "OCL_ICD_FILENAMES": str(driver),
        "OCLGRIND_INST_COUNTS": "1",
    }
    environment |= {"PYOPENCL_COMPILER_OUTPUT": "0", "LC_ALL": "C", "PYTHONWARNINGS": "ignore"}
    return os.environ | environment | (native.environment(driver, True, folder) if natively else {})


def run(folder, cases, natively):
    """(What each case left and the lines of its counts, by name; what was said.)"""
    path = folder / f"cases-{natively}.json"
    path.write_text(json.dumps(cases))
    command = [sys.executable, str(HERE / "opencl_cases.py"), str(path)]
    done = subprocess.run(
        command,
        env=device(folder, natively),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results, lines = {}, []
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(\S+)((?: [0-9a-f]{16})+)", line):
            results[match[1]] = match[2], sorted(lines)
            lines = []
        else:
            lines.append(line)
    return results, done.stderr


def differences(folder, cases):
    """What the two ways do not agree on, by the name of the case, what the native one said, and what Oclgrind gets wrong.

    Oclgrind is wrong where LLVM makes whole numbers of odd widths (a `switch` on n % 8). Not optimised, the kernel has
    none: then both ways must agree on counts and data, and the optimised kernel, run natively, on the data.
    """
    found, data, said = _compared(folder, cases)
    odd = [case | {"options": "-cl-opt-disable"} for case in cases if case["name"] in found]
    if not odd:
        return found, said, []
    plainly, plain_data, _ = _compared(folder, odd)
    wrong = [
        case["name"] for case in odd if case["name"] not in plainly and data[case["name"]] == plain_data[case["name"]]
    ]
    return {name: what for name, what in found.items() if name not in wrong}, said, wrong


def _compared(folder, cases):
    interpreted, _ = run(folder, cases, False)
    natively, said = run(folder, cases, True)
    assert interpreted.keys() == natively.keys() == {case["name"] for case in cases}
    found = {}
    for name, (data, counts) in interpreted.items():
        if (data, counts) != natively[name]:
            found[name] = sorted(set(counts) ^ set(natively[name][1])) or "data"
    return found, {name: data for name, (data, _) in natively.items()}, said


def batched(cases, size=40):
    """Cases whose kernels are put together into programs of many: one build each."""
    found = []
    for start in range(0, len(cases), size):
        part = cases[start : start + size]
        names = [f"k{place}" for place in range(len(part))]
        source = "\n".join(
            case["source"].replace("void k(", f"void {name}(") for case, name in zip(part, names, strict=True)
        )
        found += [case | {"source": source, "kernel": name} for case, name in zip(part, names, strict=True)]
    return found


def main():
    import tempfile

    cases = [random_kernels.case(seed) for seed in range(int(sys.argv[1]))]
    if "builtins" in sys.argv:
        cases += batched(builtin_kernels.cases())
    with tempfile.TemporaryDirectory() as folder:
        found, said, wrong = differences(Path(folder), cases)
    print(
        said, f"{len(cases)} kernels, {len(found)} differ; Oclgrind is wrong in {len(wrong)}", *found.items(), sep="\n"
    )


if __name__ == "__main__":
    main()
