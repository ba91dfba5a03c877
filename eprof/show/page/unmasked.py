"""What a page shows of names that hold characters which nobody sees: escapes, so that no name can pass for another."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from eprof.base.text import visible

Document = TypeVar("Document", bound=Mapping[str, Any] | msgspec.Struct)
_ASCII = bytes(range(128))


def unmasked(document: Document) -> Document:
    """The document for a page, with `visible` texts: no character that nobody sees.

    Most have no others, which is quickly seen in their JSON.
    """
    if not _has_unseen(document):
        return document
    shown = _shown(msgspec.to_builtins(document))
    made: Document = msgspec.convert(shown, type(document)) if isinstance(document, msgspec.Struct) else shown
    return made


def _has_unseen(document: Mapping[str, Any] | msgspec.Struct) -> bool:
    try:
        text = msgspec.json.encode(document)
    except UnicodeEncodeError:
        return True
    # In JSON, control characters below 32 are escapes.
    if b"\\u00" in text or b"\x7f" in text:
        return True
    if text.isascii():
        return False
    foreign = text.translate(None, _ASCII).decode()
    return visible(foreign) != foreign


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value
