"""A second, small implementation of counts and sums, to check eprof against: plain Python, nothing of eprof.

It is written from what counters mean (NVIDIA's documents of nvprof, CUPTI and ncu; the formats as real logs have them), not
from eprof's definitions, and is as plain as can be: every launch is kept, and every sum is a loop.

    readers.py    a log -> its rows, one by one
    totals.py     rows of several logs -> for each device and kernel the total of each counter, as an `Amount`
    meaning.py    totals -> instructions by class and bytes by level
    prices.py     a cost table -> joules

What it does not understand it leaves out; it never guesses in silence. Text tables, reports and databases are not read.
"""

from .meaning import words
from .prices import Prices
from .readers import NotUnderstood, Row, named, names, read
from .totals import Kernel, totals

__all__ = ["Kernel", "NotUnderstood", "Prices", "Row", "named", "names", "read", "totals", "words"]
