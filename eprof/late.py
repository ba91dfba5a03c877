"""Pandas, loaded when it is first used: loading takes about as long as parsing 50 MB of log, and can be done meanwhile.

The readers of logs take it from here. `begin` loads it, and what else is needed after reading, in a thread of its own
while the first blocks are parsed; parsing is native code that does not wait for Python.
"""

import importlib
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _Late(ModuleType):
    """A module that is loaded when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import pandas as pandas
else:
    pandas = _Late("pandas")

# How often threads take turns while one of them loads modules; with Python's own 5 ms the others would wait for long.
_TURN_S = 2e-4
_threads: list[threading.Thread] = []
_trouble: list[Exception] = []


def begin(*modules: str) -> threading.Thread | None:
    """Start to load modules, in order, in a thread; None if they are loaded already.

    Nothing is raised here: who imports one of them waits for it, and gets the error.
    """
    missing = [name for name in modules if name not in sys.modules]
    if not missing:
        return None
    thread = threading.Thread(target=_load, args=(missing,), name="eprof-late")
    thread.start()
    _threads.append(thread)
    return thread


def trouble() -> list[Exception]:
    """What came in the way of loading, such as too little memory: errors elsewhere may follow from it."""
    while _threads:
        _threads.pop().join()
    return _trouble


def _load(modules: list[str]) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_S))
    try:
        for name in modules:
            importlib.import_module(name)
    except Exception as err:  # noqa: BLE001 - who imports it meets the same, or what follows from it
        _trouble.append(err)
    finally:
        sys.setswitchinterval(before)
