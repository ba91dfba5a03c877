"""Rebuilds this study: `python docs/studies/tuning/make.py [FOLDER]`, from the measurements in FOLDER.

FOLDER: where nvdvfs_counts_*.csv of blackjack2015/NV-DVFS-Benchmark are (default: shared/data/power beside us).
Writes results.json and README.md here, in about two minutes on two cores. No GPU is needed.
"""

import json
import sys
from pathlib import Path

import numpy as np
from msgspec import to_builtins

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from eprof.commands.tune import grids  # noqa: E402
from eprof.commands.tune.document import document  # noqa: E402
from eprof.commands.tune.grids import (  # noqa: E402
    PowerModel,  # noqa: E402
    TimeModel,
    paired,
    predict,
)
from eprof.lab.fitting import Form, cross_validation  # noqa: E402
from eprof.lab.fitting.cross_validation import mean_error_percent, of_form  # noqa: E402
from eprof.lab.measurements import Measurements, read  # noqa: E402
from eprof.lab.measurements.settings import distinct_settings, setting_of_each  # noqa: E402
from eprof.lab.objective import parse  # noqa: E402

HERE = Path(__file__).parent
FOLDER = ROOT.parent / "shared" / "data" / "power"
SETS = {
    "nvdvfs_counts_gtx980_low": "GTX 980, low state, 6 x 6 settings",
    "nvdvfs_counts_gtx980_high": "GTX 980, high state, 5 x 5",
    "nvdvfs_counts_gtx1080ti": "GTX 1080 Ti, 5 x 4",
    "nvdvfs_counts_v100": "V100, 5 core clocks, 1 memory clock",
}
OBJECTIVES = ("energy", "edp", "ed2p")
MANY_SETTINGS = (2, 3, 4, 6, 9, 12, 18, 27, 35)
MANY_KERNELS = (3, 5, 8, 12, 16, 20, 25, 29)
DRAWS = 5
# One start is enough to see a trend; the tables of all data sets use the form as it is.
QUICK = of_form(Form(starts=1))


def main() -> None:
    """Work everything out, then write it down."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    found: dict = {"sets": {}, "seed": 0, "draws": DRAWS}
    for name in SETS:
        measured = read([folder / f"{name}.csv"])
        found["sets"][name] = tuned(measured)
        sys.stderr.write(f"{name}\n")
    low = read([folder / "nvdvfs_counts_gtx980_low.csv"])
    found["settings_curve"] = settings_curve(low)
    found["kernels_curve"] = kernels_curve(low)
    (HERE / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    write()


def tuned(measured: Measurements) -> dict:
    """Table II of [FMM]: the model's pick (fits that have not seen the kernel), race to halt, the measured best."""
    checked = grids.time_check(measured)
    assert checked is not None
    asked = grids.modelled(measured, checked)
    watts, about, _ = grids.predicted(measured, None)
    exact = grids.from_measurements(measured, watts, about)
    guessed, _, _ = grids.predicted(measured, None, tested=asked)
    modelled = grids.from_measurements(measured, guessed, about, modelled_rows=asked)
    pairs = paired(measured.rows.assign(dram_byte=measured.counts()["dram_byte"]), measured.reference)
    default = errors(predict([TimeModel(checked.model.byte_per_cycle)], pairs)[0], pairs)
    signed = errors(checked.pairs["predicted_s"], checked.pairs)
    return {
        "kernels": int(measured.rows["benchmark"].nunique()),
        "settings": len(measured.settings),
        "power_error_percent": about.power_error_percent,
        "objectives": {name: picked(exact, name) for name in OBJECTIVES},
        "modelled_times": {name: picked(modelled, name) for name in OBJECTIVES},
        "time": {
            "exponent": checked.model.exponent,
            "share_of_peak": checked.model.share,
            "byte_per_cycle": checked.model.byte_per_cycle,
            "mean_percent": checked.error.mean_percent,
            "p90_percent": float(np.nanpercentile(np.abs(signed), 90)),
            "max_percent": checked.error.max_percent,
            "default_mean_percent": float(np.nanmean(np.abs(default))),
            "baselines": time_baselines(pairs),
        },
    }


def errors(predicted_s, pairs):  # noqa: ANN001, ANN201
    """Signed errors in per cent of times that were predicted for the rows of `pairs`."""
    return 100 * (predicted_s / pairs["time_s"] - 1)


def time_baselines(pairs) -> dict[str, float]:  # noqa: ANN001
    """Mean error in per cent of simpler ways to carry a time over: all with one clock, half with each, not at all."""
    core, memory = pairs["core_mhz_0"] / pairs["core_mhz"], pairs["memory_mhz_0"] / pairs["memory_mhz"]
    ways = {
        "core clock": core,
        "memory clock": memory,
        "half with each": (core + memory) / 2,
        "unchanged": core * 0 + 1,
    }
    return {
        name: float(100 * (pairs["time_s_0"] * ratio / pairs["time_s"] - 1).abs().mean())
        for name, ratio in ways.items()
    }


def picked(tuning: grids.Tuning, objective: str) -> dict:
    """Mispredictions of model and oracle for one objective."""
    found = document(tuning, parse(objective))
    return {
        **to_builtins(found.energy_lost_percent),
        "program": {name: to_builtins(getattr(found, name)) for name in ("best", "fastest", "measured_best")},
    }


def lost_percent(measured: Measurements, watts) -> float:  # noqa: ANN001
    """Mean energy lost over all kernels if each runs where `watts` and the measured times say least energy."""
    found = document(grids.from_measurements(measured, watts, PowerModel(kind="refit")), parse("energy"))
    return float(found.energy_lost_percent.model.all_mean_percent)


def settings_curve(measured: Measurements) -> list[dict]:
    """Training on some settings only, drawn at random with the reference among them; tested on all others."""
    known = distinct_settings(measured.rows)
    return [settings_point(measured, known, several) for several in MANY_SETTINGS]


def settings_point(measured: Measurements, known: list, several: int) -> dict:
    """The error on all other settings after training on `several` drawn at random."""
    means = []
    for draw in range(DRAWS):
        order = [known[at] for at in np.random.default_rng(draw).permutation(len(known))]
        order.remove(measured.reference)
        keep = {measured.reference, *order[: several - 1]}
        inside = np.array([one in keep for one in setting_of_each(measured.rows)])
        fold = cross_validation.Fold(f"{several} settings", np.flatnonzero(inside), np.flatnonzero(~inside))
        predicted = cross_validation.one_fold(QUICK, measured, fold)
        means.append(mean_error_percent(measured.power_w[fold.test], predicted))
    sys.stderr.write(f"{several} settings: {np.mean(means):.2f} %\n")
    return summary(several, means)


def kernels_curve(measured: Measurements) -> list[dict]:
    """Training on some kernels only, drawn at random; tested on all others, at every setting."""
    return [kernels_point(measured, several) for several in MANY_KERNELS]


def kernels_point(measured: Measurements, several: int) -> dict:
    """The error on all other kernels, and the energy they lose, after training on `several` drawn at random."""
    names = measured.rows["benchmark"].unique()
    means, lost = [], []
    for draw in range(DRAWS if several < len(names) - 1 else len(names)):
        order = np.random.default_rng(draw).permutation(names) if several < len(names) - 1 else np.roll(names, -draw)
        inside = measured.rows["benchmark"].isin(order[:several]).to_numpy()
        fold = cross_validation.Fold(f"{several} kernels", np.flatnonzero(inside), np.flatnonzero(~inside))
        predicted = cross_validation.one_fold(QUICK, measured, fold)
        means.append(mean_error_percent(measured.power_w[fold.test], predicted))
        lost.append(lost_percent(measured.take(fold.test), predicted))
    sys.stderr.write(f"{several} kernels: {np.mean(means):.2f} %\n")
    return {**summary(several, means), "energy_lost_percent": float(np.mean(lost))}


def summary(several: int, means: list) -> dict:
    """Mean, least and largest over the draws."""
    return {
        "n": several,
        "mean_percent": float(np.mean(means)),
        "min": float(np.min(means)),
        "max": float(np.max(means)),
    }


def write() -> None:
    """README.md from results.json and the text in words.md."""
    found = json.loads((HERE / "results.json").read_text())
    text = (HERE / "words.md").read_text()
    for name, table in (
        ("TABLE2", table_two(found, "objectives")),
        ("MODELLED", table_two(found, "modelled_times")),
        ("TIME", table_time(found)),
        ("SETTINGS", table_curve(found["settings_curve"], "settings", ())),
        ("KERNELS", table_curve(found["kernels_curve"], "kernels", ("energy_lost_percent",))),
    ):
        text = text.replace(f"<!-- {name} -->", table)
    (HERE / "README.md").write_text(text)


def table_two(found: dict, key: str) -> str:
    """Rows: data set and objective; columns as in [FMM] Table II."""
    picks = [f"{who} wrong | lost mean / min / max % | over all %" for who in ("model", "fastest")]
    lines = [f"| data | objective | kernels | {' | '.join(picks)} |", "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, one in found["sets"].items():
        for objective, lost in one[key].items():
            cells = [SETS[name], objective, str(one["kernels"])]
            for who in ("model", "oracle"):
                them = lost[who]
                cells += [str(them["wrong"]), spread(them), f"{them['all_mean_percent']:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def spread(lost: dict) -> str:
    """Mean, least and largest loss."""
    return " / ".join(f"{lost[name]:.2f}" for name in ("mean_percent", "min_percent", "max_percent"))


def table_time(found: dict) -> str:
    """Errors of the time model on kernels that it has not seen, and of simpler ways."""
    names = list(next(iter(found["sets"].values()))["time"]["baselines"])
    heads = ["data", "p", "share of peak", "mean %", "90 % within", "worst %", "with p = 3, 85 %", *names]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, one in found["sets"].items():
        time = one["time"]
        numbers = [time["mean_percent"], time["p90_percent"], time["max_percent"], time["default_mean_percent"]]
        cells = [SETS[name], f"{time['exponent']:g}", f"{time['share_of_peak']:g}"]
        cells += [f"{number:.1f}" for number in [*numbers, *time["baselines"].values()]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_curve(points: list[dict], what: str, more: tuple[str, ...]) -> str:
    """A learning curve as a table."""
    heads = [f"trained on {what}", "error mean %", "least", "largest", *(("energy lost %",) if more else ())]
    lines = ["| " + " | ".join(heads) + " |", "|---:|" + "---:|" * (len(heads) - 1)]
    for one in points:
        cells = [str(one["n"]), *(f"{one[name]:.1f}" for name in ("mean_percent", "min", "max"))]
        cells += [f"{one[name]:.2f}" for name in more]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        main()
