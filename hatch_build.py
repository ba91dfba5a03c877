"""The README as the package index shows it: links to files of the checkout lead to the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Pictures lead to the raw file, all else to the page of the file."""
        repository = metadata["urls"]["Repository"]
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{repository}/raw/main/", text)
        text = re.sub(r"(\]\()(?!https?:|#)", rf"\1{repository}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
