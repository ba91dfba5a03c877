"""Where the processor time of a report goes: seconds of each stage, summed over threads.

    python benchmarks/stages.py LOG [LOG ...]

The clocks are those of the threads, so other programs on the machine disturb little.
"""

import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

spent: Counter[str] = Counter()


def clocked(stage: str, work: Callable) -> Callable:
    """The same function, with its thread's time added to a stage."""

    def timed(*arguments: object, **named: object) -> object:
        start = time.thread_time()
        try:
            return work(*arguments, **named)
        finally:
            spent[stage] += time.thread_time() - start

    return timed


class Digest:
    """SHA-256 that is timed."""

    def __init__(self) -> None:
        self._own = hashlib.sha256()
        self.update = clocked("SHA-256", self._own.update)
        self.hexdigest = self._own.hexdigest


def one(path: str) -> None:
    """Report on one log, and print its stages as JSON."""
    import pyarrow.csv  # noqa: F401 - else it is loaded while the log is read

    from eprof.counts import definition_files
    from eprof.logs import stream
    from eprof.logs.stream import Source
    from eprof.profile import api, document
    from eprof.profilers.ncu import reader as ncu
    from eprof.profilers.nvprof import reader as nvprof
    from eprof.profilers.nvprof import sections
    from eprof.show import export

    imported = time.process_time()
    definition_files.names_in_use = clocked("definitions", definition_files.names_in_use)
    stream.Source = lambda *given, **named: Source(*given, **{**named, "_digest": Digest()})
    for module, name, stage in (
        (stream, "_clean", "line ends, encoding"),
        (nvprof, "parse", "splitting fields"),
        (ncu, "many_rows", "splitting fields"),
    ):
        setattr(module, name, clocked(stage, getattr(module, name)))
    for kind, name, stage in (
        *(
            (one, "add", "cells to numbers")
            for one in (sections.SummarySection, sections.WideSection, sections.TraceSection)
        ),
        *(
            (one, "finish", "cells to rows")
            for one in (sections.SummarySection, sections.WideSection, sections.TraceSection)
        ),
        (nvprof.NvprofStore, "tables", "adding up launches"),
        (nvprof.Block, "__init__", "line ends, encoding"),
        (ncu._Reader, "log", "cells to rows"),
    ):
        setattr(kind, name, clocked(stage, getattr(kind, name)))
    profile = api.load(path, cache=False)
    loaded = time.process_time()
    export.to_json(document.document(profile.energy("jetson-tk1")))
    end = time.process_time()
    stages = {"start of Python, imports of numpy and pyarrow": imported, **spent}
    stages["the rest of reading"] = loaded - imported - sum(spent.values())
    stages["counts, energy, document, JSON"] = end - loaded
    print(json.dumps({name: round(value, 3) for name, value in stages.items()}))


def main(paths: list[str]) -> None:
    """A column a log."""
    own = [sys.executable, __file__, "--one"]
    found = {path: json.loads(subprocess.check_output([*own, path])) for path in paths}
    names = list(dict.fromkeys(name for stages in found.values() for name in stages))
    print(f"{'seconds of processor time':80}" + "".join(f"{Path(path).stem:>20}" for path in paths))
    for name in names:
        print(f"{name:80}" + "".join(f"{stages.get(name, 0):20.2f}" for stages in found.values()))
    print(f"{'all':80}" + "".join(f"{sum(stages.values()):20.2f}" for stages in found.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        main(sys.argv[1:])
