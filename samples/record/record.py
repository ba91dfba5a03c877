#!/usr/bin/env python3
"""Record eprof and its samples on this machine's NVIDIA GPU, in one call: `python3 samples/record/record.py`.

Needs Python 3.11 with numpy, NVIDIA's driver, and nvcc (or CuPy); takes what profilers it finds. Reads the GPU, changes
nothing on it. Whatever fails is written down, the rest goes on; the archive comes out in any case.
"""

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import questions  # noqa: E402
from runner import FAILED, OK, Done, Runner, pack, write_json  # noqa: E402

NEEDS = ("jinja2", "msgspec", "numpy", "pandas", "pyarrow", "rich")  # of eprof
MOST_BYTES = 16_000_000
# [FMM] Table IV, least work first: whenever time runs out, the rest is there
INPUTS = {
    "F8": (65536, 64),
    "F7": (65536, 128),
    "F6": (65536, 512),
    "F5": (65536, 1024),
    "F2": (131072, 64),
    "F3": (131072, 256),
    "F4": (131072, 512),
    "F1": (262144, 128),
}
SMALL = {
    "stream": ["N=4194304"],
    "reduce-free": ["N=4194304", "kernel=free"],
    "reduce-conflicts": ["N=4194304", "kernel=conflicts"],
    "gemm-tiled": ["n=512", "kernel=tiled"],
    "gemm-naive": ["n=512", "kernel=naive"],
    "nbody": ["N=16384"],
}
POWER = "timestamp,power.draw,clocks.sm,clocks.mem,temperature.gpu,utilization.gpu,pstate"


class Recording:
    """The steps, in order, and what they know of the machine."""

    def __init__(self, runner: Runner, wheels: Path | None) -> None:
        self.runner, self.folder, self.wheels = runner, runner.folder, wheels
        self.site = self.folder.parent / "site"
        self.environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(self.site)]), "NO_COLOR": "1"}
        found = {name: shutil.which(name) for name in ("nvidia-smi", "ncu", "nvprof", "nsys")}
        self.tools = {name: path for name, path in found.items() if path}
        sys.path.insert(0, str(ROOT / "samples"))
        from common import driver

        self.nvcc = driver.find_nvcc()
        self.gpus = driver.device_count()
        self.eprof = False
        self.backend = "cuda"
        self.capability = ""

    def all(self) -> None:
        """Every step; what needs something that is missing is skipped with the reason."""
        self.machine()
        watch = self.watch()
        try:
            self.python()
            self.doctor()
            self.programs()
            self.asked()
            self.profiled()
            self.raw_ncu()
            self.others()
            self.inputs()
        finally:
            if watch:
                watch.terminate()
                watch.wait(5)

    def machine(self) -> None:
        """What this machine is, before anything runs."""
        tell = {"python": sys.version, "platform": platform.platform(), "tools": self.tools, "nvcc": self.nvcc}
        if not self.runner.dry:
            write_json(self.folder / "machine.json", {**tell, "gpus": self.gpus, "cores": os.cpu_count()})
        self.tool("nvidia-smi", "nvidia-smi-q", "-q", limit_s=20)
        asked = self.tool(
            "nvidia-smi",
            "nvidia-smi-gpu",
            "--query-gpu=name,compute_cap,driver_version",
            "--format=csv,noheader",
            limit_s=20,
        )
        if asked and asked.status == OK:
            line = (self.folder / "logs" / "nvidia-smi-gpu.out").read_text().strip().splitlines()[:1]
            self.capability = "".join(re.findall(r"\d", line[0].split(",")[1])) if line and "," in line[0] else ""
        if self.nvcc:
            self.runner.run("nvcc-version", [self.nvcc, "--version"], 20)
        for name in ("ncu", "nvprof", "nsys"):
            self.tool(name, f"{name}-version", "--version", limit_s=30)

    def tool(self, tool: str, name: str, *words: str, limit_s: float) -> Done | None:
        """Run a tool if it is here."""
        if tool not in self.tools:
            self.runner.skip(name, f"{tool} was not found")
            return None
        return self.runner.run(name, [self.tools[tool], *words], limit_s)

    def watch(self) -> subprocess.Popen[bytes] | None:
        """Power, clocks and temperature ten times a second for as long as this runs, beside what eprof records."""
        if "nvidia-smi" not in self.tools or self.runner.dry:
            return None
        with (self.folder / "power-nvidia-smi.csv").open("wb") as file:
            command = [self.tools["nvidia-smi"], f"--query-gpu={POWER}", "--format=csv", "-lms", "100"]
            return subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def python(self) -> None:
        """Give eprof what it needs: what this Python has, then wheels that were brought, then a package index."""
        missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
            str(self.site),
        ]
        wheels = sorted(self.wheels.glob("*.whl")) if self.wheels and self.wheels.is_dir() else []
        if missing and wheels:
            self.runner.run("pip-wheels", [*pip, "--no-index", "--no-deps", *wheels], 60)
        elif missing:
            self.runner.run("pip-index", [*pip, *missing], 60)
        ready = self.runner.run(
            "eprof-imports",
            [sys.executable, "-c", f"import {', '.join(NEEDS)}, eprof.cli; print(eprof.__version__)"],
            60,
            self.environment,
        )
        self.eprof = ready.status == OK or self.runner.dry

    def doctor(self) -> None:
        """`eprof doctor`, on any machine. Its exit code is 1 where eprof cannot run, which is an answer too."""
        if self.eprof:
            self.runner.run("doctor", [*self.eprof_words(), "doctor", "--format", "json"], 60, self.environment)
        else:
            self.runner.skip("doctor", "eprof does not import; see eprof-imports")

    def eprof_words(self) -> list[str]:
        """How eprof is called here: from the checkout, without being installed."""
        return [sys.executable, "-m", "eprof"]

    def sample(self, name: str, words: list[str]) -> list[str]:
        """A sample's command line."""
        program = name.partition("-")[0]
        return [sys.executable, str(ROOT / "samples" / program / program), *words, f"backend={self.backend}"]

    def no_gpu(self, *names: str) -> bool:
        """Skip steps where there is no GPU."""
        if self.gpus or self.runner.dry:
            return False
        for name in names:
            self.runner.skip(name, "no NVIDIA GPU: the driver is missing or sees none")
        return True

    def programs(self) -> None:
        """Each program alone, checked against the direct sum or numpy; by the bare driver where CuPy fails."""
        names = [f"run-{name}" for name in ("fmm-4096", *SMALL)]
        if self.no_gpu(*names):
            return
        words = ["N=4096", "Q=64", "precision=double", "--json"]
        first = self.runner.run(names[0], self.sample("fmm", words), 60)
        if first.status != OK and not self.runner.dry:
            self.backend = "driver"
            self.runner.run(f"{names[0]}-driver", self.sample("fmm", words), 60)
        for name, arguments in SMALL.items():
            self.runner.run(f"run-{name}", self.sample(name, [*arguments, "--json"]), 30)

    def profiled(self) -> None:
        """`eprof run` of a small FMM and of the small kernels."""
        for name, words in {"fmm-4096": ["N=4096", "Q=64", "precision=double"], **SMALL}.items():
            self.eprof_run(name, words, 45)

    def inputs(self) -> None:
        """F1 to F8: alone with their error, then under eprof."""
        for name, (n, q) in INPUTS.items():
            words = [f"N={n}", f"Q={q}", "precision=double"]
            if not self.no_gpu(f"run-{name}"):
                self.runner.run(f"run-{name}", self.sample("fmm", [*words, "repeat=3", "--json"]), 40)
            self.eprof_run(name, words, 70)

    def eprof_run(self, name: str, words: list[str], limit_s: float) -> None:
        """Under eprof, into runs/NAME.eprof."""
        step = f"eprof-{name}"
        if self.no_gpu(step):
            return
        if not self.eprof:
            self.runner.skip(step, "eprof does not import; see eprof-imports")
            return
        program = name if name in SMALL else "fmm"
        command = [
            *self.eprof_words(),
            "run",
            "-o",
            str(self.folder / "runs" / f"{name}.eprof"),
            "--timeout",
            f"{limit_s / 2:g}",
        ]
        if not self.runner.dry:
            (self.folder / "runs").mkdir(exist_ok=True)
        self.runner.run(step, [*command, "--", *self.sample(program, words)], limit_s, self.environment)

    def ncu(self, name: str, options: list[str], program: list[str], limit_s: float = 45) -> None:
        """A direct call of ncu that leaves the clocks alone."""
        if self.no_gpu(name):
            return
        if "ncu" not in self.tools and not self.runner.dry:
            self.runner.skip(name, "ncu was not found")
            return
        words = [self.tools.get("ncu", "ncu"), "--clock-control", "none", "--target-processes", "all", *options]
        self.runner.run(name, [*words, *program], limit_s)

    def raw_ncu(self) -> None:
        """Logs in every format for the readers of logs: a report, and from it the long and the wide table."""
        out = self.folder / "ncu"
        if not self.runner.dry:
            out.mkdir(exist_ok=True)
        for name in ("stream", "gemm-tiled", "reduce-conflicts"):
            report = out / f"{name}.ncu-rep"
            program = self.sample(name, ["N=65536"] if name != "gemm-tiled" else ["n=128"])
            self.ncu(f"ncu-rep-{name}", ["--set", "full", "-f", "-o", str(report.with_suffix(""))], program, 60)
            if report.is_file() or self.runner.dry:
                for page in ("details", "raw"):
                    words = ["--import", str(report), "--csv", "--page", page]
                    self.runner.run(f"ncu-{page}-{name}", [self.tools.get("ncu", "ncu"), *words], 40)
        self.ncu(
            "ncu-direct-long-stream",
            ["--csv", "--log-file", str(out / "direct-long.csv")],
            self.sample("stream", ["N=65536"]),
        )
        raw = ["--csv", "--page", "raw", "--log-file", str(out / "direct-raw.csv")]
        self.ncu("ncu-direct-raw-nbody", raw, self.sample("nbody", ["N=1024"]))

    def asked(self) -> None:
        """The microprograms of questions.cu, and ncu's manners."""
        binary = self.folder.parent / "questions"
        if not self.runner.dry:
            write_json(self.folder / "questions.json", {"known": questions.KNOWN, "asked": questions.ASKED})
            shutil.copy(HERE / "questions.cu", self.folder / "questions.cu")
        if not self.nvcc:
            self.runner.skip("questions-compile", "nvcc was not found")
            return
        words = [self.nvcc, f"-arch=sm_{self.capability or '75'}", "-o", str(binary), str(HERE / "questions.cu")]
        if self.runner.run("questions-compile", words, 60).status != OK and not self.runner.dry:
            return
        program = [str(binary)]
        raw = ["--csv", "--page", "raw", "--print-units", "base"]
        self.ncu("ncu-questions", [*raw, "--metrics", ",".join(questions.METRICS)], program)
        self.ncu("ncu-questions-tensor", [*raw, "-k", "tensor_half_to_single", "--metrics", questions.TENSOR], program)
        opcodes = [*raw, "--print-metric-instances", "details", "--metrics", ",".join(questions.OPCODES)]
        self.ncu("ncu-questions-opcodes", opcodes, program)
        self.ncu("ncu-unknown-metric", [*raw, "--metrics", "eprof__no_such_metric.sum"], program, 30)
        self.ncu("ncu-no-kernel", [*raw, "--metrics", questions.METRICS[0]], ["true"], 30)
        self.tool("ncu", "ncu-query-metrics", "--query-metrics", limit_s=40)

    def others(self) -> None:
        """The older and the newer profiler of the same family, where they are."""
        program = self.sample("stream", ["N=65536"])
        if self.no_gpu("nvprof-stream", "nsys-stream"):
            return
        if "nvprof" in self.tools:
            self.runner.run("nvprof-stream", [self.tools["nvprof"], "--csv", "--print-gpu-trace", *program], 40)
        else:
            self.runner.skip("nvprof-stream", "nvprof was not found")
        if "nsys" in self.tools:
            words = ["profile", "--stats=true", "-f", "true", "-o", str(self.folder.parent / "nsys"), *program]
            self.runner.run("nsys-stream", [self.tools["nsys"], *words], 60)
        else:
            self.runner.skip("nsys-stream", "nsys was not found")


def results(folder: Path) -> list[dict[str, object]]:
    """What the programs said of themselves, from their JSON."""
    found: list[dict[str, object]] = []
    for path in sorted((folder / "logs").glob("run-*.out")):
        try:
            told = json.loads(path.read_text())
        except ValueError:
            continue
        if not isinstance(told, dict):
            continue
        seconds = sum(told.get("kernel_s", {}).values())
        words = {name: told.get(name) for name in ("device", "relative_error", "passed", "phase_s")}
        found.append({"run": path.stem.removeprefix("run-"), "kernels_s": seconds, **words})
    return found


def page(summary: dict[str, object], ran: list[dict[str, object]], gpu: str) -> str:
    """The summary for people."""
    counts = summary["counts"]
    assert isinstance(counts, dict)
    lines = [
        f"# eprof recorded on {gpu}",
        "",
        f"{summary['seconds']} s: " + ", ".join(f"{n} {s}" for s, n in counts.items()),
        "",
    ]
    if ran:
        lines += ["| run | kernels, ms | relative error | passed |", "|---|---:|---:|---|"]
        for one in ran:
            error = one["relative_error"]
            told = f"{error:.2e}" if isinstance(error, float) else ""
            lines.append(f"| {one['run']} | {float(str(one['kernels_s'])) * 1e3:.4g} | {told} | {one['passed']} |")
    else:
        lines.append("No program ran on a GPU.")
    lines += ["", "| step | status | s | why |", "|---|---|---:|---|"]
    steps = summary["steps"]
    assert isinstance(steps, list)
    for one in steps:
        why = str(one["why"]).replace("|", "\\|")
        lines.append(f"| {one['name']} | {one['status']} | {one['seconds']} | {why} |")
    return "\n".join(lines) + "\n"


def gpu_name(folder: Path) -> str:
    """What nvidia-smi calls the first GPU."""
    path = folder / "logs" / "nvidia-smi-gpu.out"
    line = path.read_text().strip().splitlines()[:1] if path.is_file() else []
    return line[0].split(",")[0].strip() if line and "," in line[0] else "no GPU"


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="folder for the archive; default: $OUT, else ./recorded")
    parser.add_argument("--seconds", type=float, default=460, help="time for everything (default 460)")
    parser.add_argument(
        "--wheels", type=Path, default=ROOT / ".whl", help="folder of wheels for a machine without network"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Exit code 0 if the archive was written, however the steps ended; 1 if it could not be."""
    asked = arguments(words)
    with tempfile.TemporaryDirectory(prefix="eprof-record-") as place:
        folder = Path(place) / "record"
        runner = Runner(folder, asked.seconds, asked.dry_run)
        signal.signal(signal.SIGTERM, interrupted)
        try:
            Recording(runner, asked.wheels).all()
        except KeyboardInterrupt:
            runner.note(Done("record", FAILED, why="it was interrupted; what follows was not run"))
        except Exception as err:  # a mistake in a step must not cost the steps before it
            runner.note(Done("record", FAILED, why=f"{type(err).__name__}: {err}"))
            traceback.print_exc()
        if asked.dry_run:
            return 0
        return finish(runner, folder, asked.output or Path(os.environ.get("OUT") or "recorded"))


def interrupted(_number: int, _frame: object) -> None:
    """End as Ctrl-C does: with an archive of what there is."""
    raise KeyboardInterrupt


def finish(runner: Runner, folder: Path, output: Path) -> int:
    """Summary and archive, side by side."""
    gpu = gpu_name(folder)
    ran = results(folder)
    summary = {"schema": "eprof.record/1", "gpu": gpu, **runner.summary(), "results": ran}
    write_json(folder / "summary.json", summary)
    (folder / "summary.md").write_text(page(summary, ran, gpu))
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    try:
        output.mkdir(parents=True, exist_ok=True)
        archive = output / f"eprof-record-{slug}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz"
        dropped = pack(folder, archive, MOST_BYTES)
        write_json(folder / "summary.json", {**summary, "archive": archive.name, "left_out": dropped})
        for name in ("summary.json", "summary.md"):
            shutil.copy(folder / name, output / name)
    except OSError as err:
        print(f"record: {err}", file=sys.stderr)
        return 1
    print(f"{archive} ({archive.stat().st_size} bytes)" + (f"; left out: {', '.join(dropped)}" if dropped else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
