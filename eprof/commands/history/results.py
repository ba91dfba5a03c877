"""The results in a folder: reports in JSON (`eprof.profile/1`) and run directories."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from eprof.base.errors import LogError
from eprof.logs import runs
from eprof.profile import api, saved, schema
from eprof.profile.api import profiles
from eprof.profile.document import document
from eprof.profile.profile import Energy, Profile

RUN, REPORT = "run", "report"
Price = Callable[[Profile], Energy]


class Result(Struct, frozen=True):
    """One run: its priced profile, and when it was. time_from: `RUN`, or `REPORT` where only that time is known."""

    path: str
    report: schema.Profile
    time_utc: str
    time_from: str

    @property
    def is_run(self) -> bool:
        """Whether a result in the folder is a run directory."""
        return Path(self.path).is_dir()


def read(folders: Sequence[str | Path], price: Price) -> list[Result]:
    """The results in a history's folders, by time. price: for run directories; a report has its prices.

    Raises LogError: a folder without any, or a report that cannot be read.
    """
    results: list[Result] = []
    for folder in map(Path, folders):
        if not folder.exists():
            raise LogError(f"{folder}: there is no such folder; name one with reports in JSON or run directories.")
        here = list(_results(folder, price))
        if not here:
            raise LogError(
                f"{folder}: holds no run directory and no report in JSON; `eprof run -o {folder}/NAME.eprof` and "
                f"`eprof report LOG -o {folder}/NAME.json` put them there."
            )
        results += here
    # A report of a run directory that is here, too, is the same run.
    of_runs = set().union(*(_logs(result) for result in results if result.is_run))
    results = [result for result in results if result.is_run or not _logs(result) <= of_runs]
    return sorted(results, key=lambda result: (result.time_utc, result.path))


def _logs(result: Result) -> set[tuple[object, ...]]:
    """What tells the logs of a run, wherever they lie: commit, name of the run directory, hash."""
    inputs = result.report.inputs
    return {(result.report.commit, Path(log.path).parent.parent.name, log.sha256) for log in inputs}


def _results(folder: Path, price: Price) -> Iterator[Result]:
    """The results in a folder, run directories and reports in JSON; it may be one itself, or a file."""
    for path in [folder] if folder.is_file() or runs.is_run(folder) else sorted(folder.iterdir()):
        if path.is_dir() and runs.is_run(path):
            for profile in profiles(path, api.load):
                report = document(price(profile))
                started_utc = profile.run.started_utc if profile.run else None
                time_from = REPORT if started_utc is None else RUN
                yield Result(str(path), report, started_utc or report.created_utc, time_from)
        elif path.suffix == ".json" and path.is_file() and (saved_report := saved.read(path)):
            yield Result(str(path), saved_report, saved_report.created_utc, REPORT)
