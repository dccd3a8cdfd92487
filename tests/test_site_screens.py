"""Pictures of the site: pages that say an error, or lack what is to be shown, are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import site_screens  # noqa: E402
from chromium import missing  # noqa: E402

PAGE = "<!doctype html><html lang='en'><title>x</title><p>text</p>{}<p style='margin-top: 3000px' id='low'>below</p>"


@pytest.mark.skipif(bool(missing()), reason=missing() or "all there")
def test_what_is_wrong_with_a_page_is_said(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text(PAGE.format("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"))
    (tmp_path / "bad.html").write_text(PAGE.format("<script>missing()</script>"))
    top, low = site_screens.draw(tmp_path, tmp_path / "out", {"a": ("good.html", ""), "b": ("good.html", "#low")})
    assert top.read_bytes() != low.read_bytes()
    assert top.stat().st_size < 120_000
    with pytest.raises(RuntimeError, match=r"bad.html: .*missing is not defined"):
        site_screens.draw(tmp_path, tmp_path / "out", {"a": ("bad.html", "")})
    with pytest.raises(RuntimeError, match=r"good\.html has no #gone"):
        site_screens.draw(tmp_path, tmp_path / "out", {"a": ("good.html", "#gone")})
