"""Boards and their power limits: what data sheets say of a GPU (`counters/boards.toml`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from eprof.base.gpus import normal_name
from eprof.base.resources import folder
from eprof.base.toml import Document

_MEMORY_SIZE = re.compile(r"[ -]\d+ ?gb$")


@dataclass(frozen=True)
class Board:
    """A board by its data sheet. name: as the driver prints it. memory: "gddr" or "hbm". limit_w: its power limit, W."""

    name: str
    memory: str
    limit_w: float


def board(device_name: str) -> Board | None:
    """The board that a log calls `device_name`, or a user for short ("RTX 4090"); None: not listed, or not one alone."""
    name = normal_name(device_name)
    exact = boards().get(name) or boards().get(_MEMORY_SIZE.sub("", name))
    if exact is not None:
        return exact
    words = set(_words(name))
    extra = {key: len(_words(key)) - len(words) for key in boards() if words and words <= set(_words(key))}
    nearest = [key for key, number in extra.items() if number == min(extra.values())]
    return boards()[nearest[0]] if len(nearest) == 1 else None


def power_limit_w(device_name: str) -> float | None:
    """The power limit in W of the board that a log calls `device_name`; None if it is not known."""
    listed = board(device_name)
    return None if listed is None else listed.limit_w


@lru_cache(maxsize=1)
def boards() -> Mapping[str, Board]:
    """All boards, by their names for matching."""
    document = Document.read(folder("counters") / "boards.toml")
    listed = [
        Board(str(name), memory, float(limit_w))
        for memory, names_by_limit in document.data.items()
        for limit_w, names in names_by_limit.items()
        for name in names
    ]
    return {normal_name(each.name): each for each in listed}


def _words(name: str) -> list[str]:
    return name.replace("-", " ").split()
