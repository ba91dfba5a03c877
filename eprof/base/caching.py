"""Where eprof keeps what it need not make twice, and whether that place may be trusted."""

import os
import stat
from pathlib import Path
from shlex import quote

STAMPS = "stamps"  # the folder in it that says which files were read


def place() -> Path | None:
    """The folder of the cache: $EPROF_CACHE ("off": none), else `eprof` in $XDG_CACHE_HOME, else in ~/.cache."""
    setting = os.environ.get("EPROF_CACHE")
    if setting is not None:
        return None if setting.lower() in ("", "off", "0", "no") else Path(setting)
    home = os.environ.get("XDG_CACHE_HOME")
    if home and Path(home).is_absolute():
        return Path(home) / "eprof"
    try:
        return Path.home() / ".cache" / "eprof"
    except RuntimeError:
        return None


def refusal(folder: Path) -> str | None:
    """Why a folder is not used as the cache of logs: others than this user can write to it. None if nobody else can."""
    for place in (folder, folder / STAMPS):
        try:
            status = place.stat()
        except (OSError, ValueError):
            continue
        if status.st_uid != os.geteuid():
            return (
                f"the cache {place} belongs to another user, so it is not used; name one of your own with EPROF_CACHE, "
                "or none with EPROF_CACHE=off"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write to the cache {place}, so it is not used; run `chmod -R go-w {quote(str(folder))}`"
    return None
