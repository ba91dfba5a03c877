"""What changed between two priced profiles, and why: parts that add up, speedup and greenup, the model's reading.

`side` puts each side's repeats on one grid of kernels and words, `changes` splits the difference cell by cell,
`difference` is the result, `document` its plain data (docs/diff.md). The types are to be imported from here.
"""

from eprof.compare.difference import Difference, compare
from eprof.compare.welch import Test, welch

__all__ = ["Difference", "Test", "compare", "welch"]
