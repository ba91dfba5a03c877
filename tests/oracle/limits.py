"""What power limits leave of energies, kernel by kernel and device by device. After docs/model.md, "Power limits"."""

import math


def factors(works, times, launches, devices, limits, constant_w, total_s=None):
    """The factor on the work (J) of each kernel: none may draw more than its board, nor may all of a device together.

    times: s, NaN where not known in full. limits: device -> W. Launches below 10 ms may draw three times the limit.
    """
    found = []
    for work, time, number, device in zip(works, times, launches, devices, strict=True):
        allowed = math.inf
        if time > 0:
            allowed = (limits[device] * (1 if time / number >= 0.01 else 3) - constant_w) * time
        found.append(min(1.0, max(allowed, 0.0) / work) if work > 0 else 1.0)
    for device in set(devices):
        own = [at for at, name in enumerate(devices) if name == device and (total_s is not None or times[at] >= 0)]
        seconds = total_s if total_s is not None else math.fsum(times[at] for at in own)
        work = math.fsum(works[at] * found[at] for at in own)
        if seconds > 0 and work > 0:
            share = min(1.0, max((limits[device] - constant_w) * seconds, 0.0) / work)
            for at in own:
                found[at] *= share
    return found
