"""eprof's `read` and `combine` beside a bare `pandas.read_csv` of the same rows, each in a process of its own.

    python benchmarks/read.py [FOLDER]

pandas gets one clean table: the same rows without the lines around them. Prints seconds (best of three, imports not
counted), their ratio, and the most memory that each process held.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generate import write_all, write_ncu

OURS = """
import resource, sys, time, json
import pandas, pyarrow.csv, pyarrow.compute, eprof.logs.reading, eprof.logs.combining
from eprof.logs import read, combine
def once():
    start = time.perf_counter()
    launches = combine([read(sys.argv[1])])
    return time.perf_counter() - start
print(json.dumps([once(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
PANDAS = """
import resource, sys, time, json
import pandas, pyarrow
start = time.perf_counter()
table = pandas.read_csv(sys.argv[1])
print(json.dumps([time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def bare(path: Path) -> Path:
    """The rows of a log below one header, nothing else."""
    clean = path.with_suffix(".bare")
    if clean.exists():
        return clean
    if path.name.startswith("ncu_"):
        return bare_ncu(path, clean)
    with path.open() as log, clean.open("w") as out:
        header = ""
        for line in log:
            if line.startswith(('"Device"', '"Start"')):
                out.write("" if header else line)
                header = line
            elif line.startswith('"Tesla') or (header.startswith('"Start"') and line[0].isdigit()):
                out.write(line)
    return clean


def bare_ncu(path: Path, clean: Path) -> Path:
    """The header and the rows of a log of ncu, without the lines before them and the row of units."""
    with path.open() as log, clean.open("w") as out:
        out.writelines(line for line in log if line.startswith('"') and not line.startswith('"",'))
    return clean


def measure(code: str, path: Path) -> tuple[float, float]:
    """Seconds (best of three) and MB (most of three) of running `code` on a file."""
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", code, str(path)])) for _ in range(3)]
    return min(run[0] for run in runs), max(run[1] for run in runs)


def main(folder: Path) -> None:
    """Print a line for each file."""
    print(f"{'file':10} {'MB':>6} {'eprof s':>9} {'pandas s':>9} {'ratio':>6} {'eprof MB':>9} {'pandas MB':>10}")
    for name, path in {**write_ncu(folder), **write_all(folder)}.items():
        ours, own_mb = measure(OURS, path)
        theirs, pandas_mb = measure(PANDAS, bare(path))
        size = path.stat().st_size / 1e6
        print(f"{name:10} {size:6.0f} {ours:9.2f} {theirs:9.2f} {ours / theirs:6.2f} {own_mb:9.0f} {pandas_mb:10.0f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".bench"))
