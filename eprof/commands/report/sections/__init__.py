"""The sections of a report's page, and what each hands to it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Section(Struct, frozen=True):
    """One card: its anchor, its name in the row of links, its heading, its template in `reports/` and what goes there.

    `data` goes, as JSON, to the script.
    """

    anchor: str
    link: str
    heading: str
    template: str
    content: Mapping[str, Any]
    data: Mapping[str, str] = field(default_factory=dict)
