"""Of processes that want the same loop one compiles it; who died, or takes too long, is not waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fairopt import _numba


def dead() -> int:
    """The number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_the_first_compiles_and_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "loop-1-2.nbc"
    assert not _numba.kept_or_claimed(file)
    assert [path.name for path in tmp_path.iterdir()] == ["loop-1-2.claim"]
    monkeypatch.setattr(_numba.os, "getpid", lambda: os.getppid())  # as another process would see it
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(_numba.kept_or_claimed(file)))
    waiting.start()
    time.sleep(0.3)
    assert not found
    file.write_bytes(b"code")
    _numba.given_up(file)
    waiting.join(10)
    assert found == [True]
    assert _numba.kept_or_claimed(file)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("owner", ["dead", "own", "no number"])
def test_a_claim_of_nobody_does_not_count(owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_numba, "PATIENCE", 0.4 if owner == "no number" else 60.0)
    text = {"dead": str(dead()), "own": str(os.getpid()), "no number": "x"}[owner]
    (tmp_path / "loop-1-2.claim").write_text(text)
    begun = time.monotonic()
    assert not _numba.kept_or_claimed(tmp_path / "loop-1-2.nbc")
    assert time.monotonic() - begun < 20
    assert not [*tmp_path.iterdir()]


def test_a_claim_that_ends_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process keeps its file and gives up its claim between two looks: nothing is compiled again."""
    file = tmp_path / "loop-1-2.nbc"
    (tmp_path / "loop-1-2.claim").write_text(str(os.getppid()))

    def just_now(claim: Path) -> bool:
        file.write_bytes(b"code")
        claim.unlink()
        return False

    monkeypatch.setattr(_numba, "_counts", just_now)
    assert _numba.kept_or_claimed(file)


def test_who_takes_too_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_numba, "PATIENCE", 0.4)
    (tmp_path / "loop-1-2.claim").write_text(str(os.getppid()))
    assert not _numba.kept_or_claimed(tmp_path / "loop-1-2.nbc")


def test_where_nobody_may_write_everybody_compiles(tmp_path: Path) -> None:
    assert not _numba.kept_or_claimed(tmp_path / "none" / "loop-1-2.nbc")
    _numba.given_up(tmp_path / "none" / "loop-1-2.nbc")
