"""The ES module and its style sheet, from their parts."""

from __future__ import annotations

from pathlib import Path

_PLACE = Path(__file__).with_name("static")
_PARTS = ("words.js", "draw.js", "tables.js", "asker.js", "explorer.js")


def module() -> str:
    """The module in the form of anywidget: a default export with `render`."""
    return _joined(*_PARTS) + "\nexport default { render };\n"


def program() -> str:
    """The same for a page of its own, with the model that the page's host provides."""
    return _joined(*_PARTS, "hosts.js")


def style() -> str:
    """The style sheet."""
    return _joined("explorer.css")


def _joined(*names: str) -> str:
    return "\n".join((_PLACE / name).read_text(encoding="utf-8") for name in names)
