"""Starts the processes of a calibration: one that looks at the GPU, and the worker that runs a plan."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eprof.base.errors import CollectError
from eprof.collect import process
from eprof.collect.tools import ask

_WORKER = (sys.executable, "-m", "eprof.collect.cuda.worker")


def probe(device: int) -> dict[str, Any]:
    """What the GPU is, found in a process of its own, for the CUDA driver stays in it.

    Raises CollectError with the driver's reason.
    """
    variables = [f"{key}={value}" for key, value in _additions().items()]
    lines = ask(["env", *variables, *_WORKER, "probe", str(device)]).strip().splitlines()
    for line in lines:
        if line.startswith("{"):
            description: dict[str, Any] = json.loads(line)
            return description
    reason = lines[-1] if lines else "The process that looks at the GPU died."
    raise CollectError(f"There is no GPU to calibrate. {reason}")


def run(plan: Path, log: Path, timeout_s: float, tick: Callable[[], None] | None = None) -> str | None:
    """Start the worker's process on a plan: None if it did all that it could, else why it ended.

    Raises KeyboardInterrupt if a signal stopped it: what it measured is kept.
    """
    command = [*_WORKER, str(plan)]
    environment = {**os.environ, **_additions()}
    with log.open("ab") as file:
        ended = process.run_alone(
            command, file.fileno(), file.fileno(), environment=environment, timeout_s=timeout_s, tick=tick
        )
    if ended.timed_out:
        return f"it was still running after {timeout_s:.0f} s and was stopped"
    if ended.code == 0:
        return None
    if ended.signal:
        return f"it died of signal {ended.signal}"
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {ended.code}"


def _additions() -> dict[str, str]:
    """Environment of the worker's process: devices numbered by place on the bus, and eprof where we found it."""
    home = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), "PYTHONPATH": path}
