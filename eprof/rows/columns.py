"""Columns of text: of many rows, arrays of pyarrow; of few, lists, as a call of pyarrow takes as long as 50 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.rows.pieces import Array

Column: TypeAlias = "pa.Array | list[str]"
Columns: TypeAlias = Mapping[int, Column]  # by place in a line
Arrays: TypeAlias = Mapping[int, pa.Array]
_FEW = 256


def column(texts: Sequence[str]) -> Column:
    """Texts as the column that is the quickest to work with."""
    return list(texts) if len(texts) <= _FEW else pa.array(texts, pa.string())


@dataclass(frozen=True)
class Coded:
    """A column of names: the different ones, as they come, and for each row the place of its own among them."""

    words: list[str]
    codes: Array


def coded(texts: Column) -> Coded:
    """The same column as numbers."""
    if isinstance(texts, list):
        places: dict[str, int] = {}
        codes = [places.setdefault(text, len(places)) for text in texts]
        return Coded(list(places), np.array(codes, dtype=np.int32))
    array = encoded(texts)
    return Coded(words(array), np.asarray(array.indices.to_numpy(zero_copy_only=False)))


def encoded(texts: pa.Array) -> pa.DictionaryArray:
    """A column of strings, dictionary-encoded."""
    return texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()


def words(texts: pa.Array) -> list[str]:
    """The different strings of a column, as they come."""
    return list(encoded(texts).dictionary.to_numpy(zero_copy_only=False))


def chosen(texts: Column, which: Array) -> Column:
    """The rows where `which` is true."""
    return list(compress(texts, which)) if isinstance(texts, list) else texts.filter(pa.array(which))


def no_blanks(texts: pa.Array) -> bool:
    """Whether every string of a column holds something."""
    texts = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
    shortest = pc.min(pc.binary_length(pc.utf8_ltrim_whitespace(texts))).as_py()  # 6 times as fast as a pattern
    return shortest is None or bool(shortest > 0)
