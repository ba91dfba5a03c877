"""What this machine has, found by looking at files alone."""

import errno
import os
from pathlib import Path

ROOT = Path("/")
_CONTROL = "dev/nvidiactl"
_BOARDS = (_CONTROL, "dev/nvidia0")
_OTHERS = ("dev/nvhost-gpu", "dev/nvgpu", "dev/dxg")
_PARAMETERS = "proc/driver/nvidia/params"
_VERSION = "proc/driver/nvidia/version"


def has_nvidia_device(root: Path = ROOT) -> bool:
    """Whether there is a device file of an NVIDIA GPU (of a Jetson, or of Windows behind WSL, too)."""
    if any((root / name).exists() for name in _OTHERS):
        return True
    return any((root / name).exists() for name in _BOARDS) and not _abandoned(root / _CONTROL)


def _abandoned(path: Path) -> bool:
    """Whether no driver stands behind a device file: NVIDIA's libraries make it for root, driver or not."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except OSError as err:
        return err.errno in (errno.ENXIO, errno.ENODEV)
    return False


def text_of(path: Path) -> str:
    """What a file says; "" where there is none that can be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def driver_version(root: Path = ROOT) -> str | None:
    """The NVIDIA kernel driver's version line; None where none is loaded (or on a Jetson, which has no such file)."""
    text = text_of(root / _VERSION)
    return text.splitlines()[0].removeprefix("NVRM version:").strip() if text else None


def counters_restricted(root: Path = ROOT) -> bool | None:
    """Whether only administrators may read GPU counters; None where the driver does not say."""
    for line in text_of(root / _PARAMETERS).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "RmProfilingAdminOnly":
            return value.strip() != "0"
    return None
