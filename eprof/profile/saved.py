"""Reports in JSON that come back, `eprof.profile/1`: checked before anything is made of them."""

import math
from pathlib import Path

import msgspec
from msgspec.structs import astuple

from eprof.base.errors import LogError
from eprof.base.marks import from_names
from eprof.base.resources import log_content
from eprof.profile import schema

_MOST = 1e15
_MOST_BYTES = 256 << 20


class _Kind(msgspec.Struct):
    schema: str = ""


def read(path: Path) -> schema.Profile | None:
    """The report in a file of JSON; None for a document of another kind.

    Raises LogError: it is damaged, or has numbers, marks or places that no report has.
    """
    content = log_content(str(path), _MOST_BYTES)
    try:
        if msgspec.json.decode(content, type=_Kind).schema != schema.PROFILE:
            return None
        profile = msgspec.json.decode(content, type=schema.Profile)
        _check(profile)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError) as err:
        raise LogError(f"{path}: is no report in JSON ({err}); make it again, or move it away.") from err
    return profile


def _check(profile: schema.Profile) -> None:
    """Raises ValueError, KeyError."""
    joules = [profile.energy_j, *(kernel.energy_j for kernel in profile.kernels)]
    numbers = [number for each in joules for number in astuple(each)]
    numbers += [profile.time_s, *(kernel.time_s for kernel in profile.kernels)]
    numbers += [profile.costs.constant_power_w] if profile.costs else []
    numbers += [profile.ranks.number - 1, profile.ranks.time_s.max] if profile.ranks else []
    wrong = [number for number in numbers if number is not None and not (0 <= number < _MOST and math.isfinite(number))]
    if wrong:
        raise ValueError(f"{wrong[0]:g} is no energy, time or power from 0 to {_MOST:g}")
    for marks in (profile.time_marks, *astuple(profile.energy_marks)):
        from_names(marks)
    places = [place for group in profile.groups or () for place in group.kernels]
    if not all(0 <= place < len(profile.kernels) for place in places):
        raise ValueError("a group has kernels that are not there")
