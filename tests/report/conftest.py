"""The tiny versions of what `fairopt sweep --for tables` computes; tags of a text as a browser sees them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from fairopt.app.cli import main


@pytest.fixture(scope="session")
def store(swept: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        assert main(["sweep", "--for", "tables", "--smoke", "--store", str(swept)]) == 0
    return swept


def tags(text: str) -> list[str]:
    """Those that begin, in order."""
    found: list[str] = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attrs: found.append(tag)  # type: ignore[method-assign]
    reader.feed(text)
    return found
