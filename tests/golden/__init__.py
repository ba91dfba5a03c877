"""Golden documents: whole JSON documents of real and made logs, compared field by field.

    python -m tests.golden                      what is different today, field by field (exit code 1 if anything is)
    python -m tests.golden --rewrite            the same, and writes the documents anew: look at `git diff`, then commit
    python -m tests.golden --rewrite fmm tune   only these

A document is one that `eprof` wrote, without what changes from day to day (`TIMELESS`, folders). It is committed; real logs
are not, and their documents are passed over where the logs are not at hand. A new one is a line in `CASES`.
"""

import contextlib
import io
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eprof import cli

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT.parent / "shared" / "data"
DOCUMENTS = HERE / "documents"
FOLDERS = {HERE / "logs": "MADE", ROOT / "samples" / "logs": "SAMPLES", DATA: "DATA", ROOT: "ROOT"}
TIMELESS = {"created_utc": "(a time)", "eprof": "(a version)"}
CLOSE = 1e-12  # relative: what another order of additions may change

FMM = "SAMPLES/invented/tk1-fmm-counters.csv SAMPLES/invented/tk1-fmm-times.csv"
PHASES = "--group u_list=near --group v_list=far"
CASES = {
    "fmm": f"report {FMM} --costs jetson-tk1 --setting 612/528 {PHASES} --what-if pi0=0.5,dram=-20% --what-if race",
    "gemm": "report SAMPLES/simulated/gemm-tiled.txt --costs jetson-tk1",
    "holes": "report MADE/holes.csv MADE/holes-times.csv --costs gtx680 --what-if dram=-50% --what-if cap=70W",
    "two-devices": "report MADE/two-devices.csv --costs gtx980 --time regex:copy=0.25",
    "ncu": "report MADE/ncu.csv --costs v100 --setting 1237/877",
    "titan": "report DATA/nvprof/titan-wide-trace-events-and-metrics.csv --costs gtx680",
    "lavamd": "report DATA/nvprof/gtx760-dev1-metrics-summary-lavamd.csv --costs gtx680 --what-if costs=jetson-tk1",
    "roofline-metrics": "report DATA/ncu/cc80-roofline-metrics-no-preamble.csv",
    "diff": "diff MADE/old.csv+MADE/old-times.csv MADE/new.csv+MADE/new-times.csv --costs gtx680 --fail-above 1000%",
    "diff-clocks": f"diff {FMM.replace(' ', '+')} {FMM.replace(' ', '+')} --costs jetson-tk1 --new-setting 396/924",
    "diff-gemm": "diff SAMPLES/simulated/gemm-naive.txt SAMPLES/simulated/gemm-tiled.txt --costs jetson-tk1",
    "tune": f"tune {FMM} --costs jetson-tk1 --settings 852/924,396/924,180/528 --objective edp",
    "roofline": f"roofline {FMM} --costs gtx580 --costs jetson-tk1 --power-cap gtx580=244 --equal-power",
}


def paths(case: str) -> list[Path]:
    """The logs that a case needs."""
    words = CASES[case].replace("+", " ").split()
    return [Path(_placed(word)) for word in words if word.partition("/")[0] in FOLDERS.values()]


def _placed(text: str) -> str:
    """A text with the names of folders put in the place of `MADE`, `DATA`..."""
    for folder, name in FOLDERS.items():
        text = text.replace(f"{name}/", f"{folder}/")
    return text


def document(case: str) -> Any:
    """What eprof says today. Raises RuntimeError if it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        out, said = Path(folder, "out.json"), io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                cli.main([*map(_placed, CASES[case].split()), "-q", "-o", str(out)])
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"eprof {CASES[case]}\n{said.getvalue()}") from None
        return _timeless(json.loads(out.read_text().replace(str(out), "OUT")))


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: TIMELESS.get(key) or _timeless(value[key]) for key in value}
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    if isinstance(value, str):
        for folder, name in FOLDERS.items():
            value = value.replace(str(folder), name)
    return value


def golden(case: str) -> Any:
    """The document as it was committed; None if there is none yet."""
    file = DOCUMENTS / f"{case}.json"
    return json.loads(file.read_text()) if file.exists() else None


def rewrite(case: str, new: Any) -> None:
    """Commit to this document: a line a field, in a fixed order, so that a diff reads well."""
    DOCUMENTS.mkdir(exist_ok=True)
    text = json.dumps(new, indent=1, sort_keys=True, ensure_ascii=False)
    (DOCUMENTS / f"{case}.json").write_text(f"{text}\n")


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """A line for each field that is not the same, by its path: "kernels[2].energy_j.total: 3.1, now 3.2"."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from differences(old.get(key, _NOTHING), new.get(key, _NOTHING), f"{where}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            both = [side[place] if place < len(side) else _NOTHING for side in (old, new)]
            yield from differences(*both, f"{where}[{place}]")
    elif not _same(old, new):
        yield f"{where}: {_told(old)}, now {_told(new)}"


class _Nothing:
    def __repr__(self) -> str:
        return "not there"


_NOTHING = _Nothing()


def _told(value: Any) -> str:
    return repr(value) if value is _NOTHING else json.dumps(value, ensure_ascii=False)


def _same(old: Any, new: Any) -> bool:
    if _is_number(old) and _is_number(new):
        return math.isclose(old, new, rel_tol=CLOSE)
    return type(old) is type(new) and bool(old == new)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
