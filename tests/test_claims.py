"""Of processes that want the same loop one compiles it; who died, or takes too long, is not waited for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fairopt.base import dispatchers

#: Another process, which claims the file and says so; then it makes it, or ends.
OTHER = """
import sys, time
from pathlib import Path
from fairopt.base import dispatchers
file = Path(sys.argv[1])
print(dispatchers.wait_or_claim(file), flush=True)
if sys.stdin.readline().strip() == "make":
    file.write_bytes(b"code")
    dispatchers.release(file)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "loop-1-2.nbc"


def other(file: Path) -> subprocess.Popen[str]:
    """Whose turn it is."""
    found = subprocess.Popen([sys.executable, "-c", OTHER, str(file)], text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)  # fmt: skip
    assert found.stdout is not None
    assert found.stdout.readline() == "False\n"
    return found


@pytest.mark.parametrize("ends", ["make", "die"])
def test_the_first_compiles_and_the_others_wait(file: Path, ends: str) -> None:
    """As long as the other lives: a claim ends with its process."""
    first, found = other(file), list[bool]()
    waiting = threading.Thread(target=lambda: found.append(dispatchers.wait_or_claim(file)))
    waiting.start()
    time.sleep(0.3)
    assert not found
    first.communicate(ends)
    waiting.join(10)
    assert found == [ends == "make"]
    dispatchers.release(file)
    assert [path.name for path in file.parent.iterdir()] == [file.name] * (ends == "make")


def test_a_loop_that_calls_itself_does_not_wait_for_itself(file: Path) -> None:
    assert not dispatchers.wait_or_claim(file)
    assert not dispatchers.wait_or_claim(file)
    dispatchers.release(file)
    assert not [*file.parent.iterdir()]


def test_who_takes_too_long_is_not_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatchers, "PATIENCE", 0.4)
    first = other(file)
    assert not dispatchers.wait_or_claim(file)
    first.communicate("die")
    dispatchers.release(file)


def test_where_nobody_may_write_everybody_compiles(tmp_path: Path) -> None:
    assert not dispatchers.wait_or_claim(tmp_path / "none" / "loop-1-2.nbc")
    dispatchers.release(tmp_path / "none" / "loop-1-2.nbc")
