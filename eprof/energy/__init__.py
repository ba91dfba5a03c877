"""Attribution: counts times costs; the clocks that a program ran at, and the time at others.

`from eprof.energy import attribute` is documented for users (docs/costs.md).
"""

from eprof.energy.attribution import Split, attribute

__all__ = ["Split", "attribute"]
