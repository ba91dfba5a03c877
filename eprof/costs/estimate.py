"""Cost tables for GPUs that nobody measured: a shape of prices that four GPUs share, and constant power.

The shape is `counters/measurements/priors/shape.toml`, which docs/studies/power/transfer.py makes; docs/costs.md says how
far such a table may be off. A table is made as the text of a file, and read like any other.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eprof.base.errors import CostError
from eprof.base.gpus import normal_name
from eprof.base.resources import folder
from eprof.base.text import brief, printable
from eprof.base.toml import Document
from eprof.base.vocabulary import COUNTS, PARTS
from eprof.costs.boards import Board, board, boards
from eprof.costs.file import read
from eprof.costs.table import CostTable
from eprof.counting.counters import capability_of

NAME = "estimated"
