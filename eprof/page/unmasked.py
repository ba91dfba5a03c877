"""What a page shows of names that hold characters which nobody sees: escapes, so that no name can pass for another."""

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson

from eprof.base.text import visible

Document = TypeVar("Document", bound=Mapping[str, Any])
_ASCII = bytes(range(128))


def unmasked(document: Document) -> Document:
    """The document with `visible` texts. Most have no others, which is quickly seen in their JSON."""
    if not _has_unseen(document):
        return document
    shown: Document = _shown(document)
    return shown


def _has_unseen(document: Mapping[str, Any]) -> bool:
    # The counts of a kernel are most of a document, and have our own words only.
    kernels = [{**one, "counts": None} for one in document.get("kernels") or ()]
    try:
        text = orjson.dumps({**document, "kernels": kernels}, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # text that is not Unicode
        return True
    # In JSON, control characters below 32 are escapes.
    if b"\\u00" in text or b"\x7f" in text:
        return True
    foreign = text.translate(None, _ASCII).decode()
    return visible(foreign) != foreign


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return value
