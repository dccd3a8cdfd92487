"""The README's code runs and prints what stands below it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent / "tools" / "readme.py"


def test_readme_prints_what_it_says() -> None:
    spec = importlib.util.spec_from_file_location("readme_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.README.read_text(encoding="utf-8")
    assert tool.render(text) == text, "run: python tools/readme.py"
    # The check can fail: a wrong output and a wrong table are put right.
    assert tool.render(text.replace("DRF: 2 users", "DRF: 3 users")) == text
