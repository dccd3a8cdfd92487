"""Compiled loops: made at their first call, kept by content, compiled again when what they call has changed."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from processes import ROOT, python

import fairopt as fo
from fairopt.base.loops import Loop, bundle, compiled

CALLER = """
from fairopt.base.loops import compiled
from callee import twice
STEP = 1.0

@compiled
def total(values):
    found = 0.0
    for value in values:
        found += twice(value) + STEP
    return found
"""
CALLEE = """
from fairopt.base.loops import compiled

@compiled
def twice(value):
    return 2.0 * value
"""
ASK = """
import json, sys
import numpy as np
from caller import total
from fairopt.base import loops as _loops
_loops.SMALL = -1
value = total(np.ones(3))
from fairopt.base import dispatchers
print(json.dumps([value, dispatchers.COMPILED]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE)
    return tmp_path


def ask(folder: Path, code: str = ASK, **more: str) -> tuple[float, list[str], str]:
    """In a new process: the value, the loops that were compiled for it, and what was said meanwhile."""
    mine = {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "NUMBA_CACHE_DIR": str(folder / "kept")}
    env = os.environ | mine | {"PYTHONDONTWRITEBYTECODE": "1"} | more  # Python's own cache goes by dates
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    value, names = json.loads(done.stdout)
    return value, names, done.stderr


def change(path: Path, old: str, new: str) -> None:
    """As many characters, and no time has passed: what a cache by dates would not see."""
    text, then = path.read_text(), path.stat()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))


def test_what_is_compiled_is_kept_until_something_changes(folder: Path) -> None:
    at_once = "from fairopt.base import dispatchers\ndispatchers.MESSAGE_AFTER = 0.0\n" + ASK
    value, names, said = ask(folder, at_once)
    assert (value, names) == (9.0, ["callee.twice", "caller.total"])
    assert "compiling, once" in said
    # The same code in other lines, with another docstring; loading is not said.
    (folder / "callee.py").write_text(CALLEE.replace("    return", '    """Of a number."""\n\n    return'))
    assert ask(folder, at_once) == (9.0, [], "")
    change(folder / "callee.py", "2.0", "3.0")
    assert ask(folder)[:2] == (12.0, ["callee.twice", "caller.total"])
    change(folder / "caller.py", "STEP = 1.0", "STEP = 2.0")
    assert ask(folder)[:2] == (15.0, ["caller.total"])
    kept = [path.name for path in (folder / "kept").rglob("*.nbc")]
    assert len(kept) == 2, kept  # files of other content are gone


WRITTEN = """
import json, sys
import numpy as np
from caller import total
from fairopt.base import loops as _loops
for values in {asked}:
    value = total(values)
numba = sys.modules.get("fairopt.base.dispatchers")
print(json.dumps([value, [] if numba is None else numba.COMPILED]))
"""


def test_small_calls_run_as_they_are_written_until_that_costs_more(folder: Path) -> None:
    both = ["callee.twice", "caller.total"]
    assert ask(folder, WRITTEN.format(asked="[np.ones(_loops.SMALL), np.ones(3)]"))[:2] == (9.0, [])
    often = "(np.ones(3) for _ in iter(lambda: 'dispatcher' in vars(total), True))"
    assert ask(folder, WRITTEN.format(asked=often))[:2] == (9.0, both)
    (folder / "kept").rename(folder / "gone")
    assert ask(folder, WRITTEN.format(asked="[np.ones(3), np.ones(_loops.SMALL + 1)]"))[1] == both


def test_a_damaged_file_is_compiled_again(folder: Path) -> None:
    """One that is cut off, has a flipped bit or holds what another has; machine code is not run to find out."""

    def flip(path: Path, where: float) -> None:
        data = bytearray(path.read_bytes())
        data[int(where * (len(data) - 1))] ^= 1
        path.write_bytes(data)

    both = ASK.replace("total(np.ones(3))", "sum(total(np.ones(3, kind)) for kind in ('f4', 'f8'))")
    loops = ask(folder, both)[1]
    callee, callee_of_other, caller, other = sorted((folder / "kept").rglob("*.nbc"))
    callee.write_bytes(callee.read_bytes()[:100])
    flip(callee_of_other, 0.0)
    flip(caller, 0.5)
    flip(other, 1.0)
    assert ask(folder, both)[:2] == (18.0, loops)
    caller.write_bytes(other.read_bytes())
    assert ask(folder, both)[:2] == (18.0, ["caller.total"])


@pytest.mark.long
def test_no_folder_to_write_to(folder: Path) -> None:
    """Then every process compiles for itself."""
    (folder / "kept").write_text("a file")
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": str(folder / "kept")}
    for _ in range(2):
        assert ask(folder, **nowhere)[:2] == (9.0, ["callee.twice", "caller.total"])


#: A loop that is too large to be copied, below one that is copied, below one that is called from Python.
LARGE = """
from fairopt.base.loops import compiled

@compiled
def large(values):
    found = 0.0
""" + "".join(f"    for value in values:\n        found += value * {k}.0 - found / 8.0\n" for k in range(12)) + """
    return found

@compiled
def one_more(values):
    return large(values) + 1.0
"""  # fmt: skip
ASK_LARGE = """
import json, sys
import numpy as np
import called
from fairopt.base import loops as _loops
from fairopt.base.loops import compiled
_loops.SMALL = -1
@compiled
def asked(values):
    return called.one_more(values) * 2.0
value = asked(np.ones(3))
from fairopt.base import dispatchers
for made in getattr(asked.dispatcher, "overloads", {}).values():  # it refers to the large one, and to nothing else
    assert [one.loop for one in made.library.apart] == ["called.large"]
print(json.dumps([value, dispatchers.COMPILED]))
"""


@pytest.mark.long
def test_a_large_loop_has_code_of_its_own(folder: Path) -> None:
    (folder / "called.py").write_text(LARGE)
    (folder / "asks.py").write_text(ASK_LARGE)
    code = "import asks"

    def kept() -> dict[str, Path]:
        return {path.name.split("-")[0]: path for path in (folder / "kept").rglob("*.nbc")}

    value, names, _ = ask(folder, code)
    assert names == ["called.large", "called.one_more", "asks.asked"]
    assert ask(folder, code, NUMBA_DISABLE_JIT="1")[0] == pytest.approx(value, rel=1e-12)
    assert ask(folder, code)[:2] == (value, [])
    kept()["called.large"].write_bytes(b"damaged")
    kept()["called.one_more"].unlink()
    assert ask(folder, code)[:2] == (value, ["called.large"])
    change(folder / "called.py", "found += value * 7.0", "found += value * 8.0")
    assert ask(folder, code)[1] == ["called.large", "called.one_more", "asks.asked"]


def every_loop() -> dict[str, Loop]:
    found: dict[str, Loop] = {}
    for module in pkgutil.walk_packages(fo.__path__, "fairopt."):
        if not module.name.endswith("__main__"):
            found |= loops(module.name)
    return found


def loops(module: str) -> dict[str, Loop]:
    values = vars(importlib.import_module(module)).values()
    return {f"{value.__module__}.{value.__qualname__}": value for value in values if isinstance(value, Loop)}


def test_contents_are_the_same_in_every_process() -> None:
    here = {name: loop.content for name, loop in every_loop().items()}  # of another seed
    modules = sorted({name.rpartition(".")[0] for name in here})
    code = (
        "import sys, json; sys.path.insert(0, 'tests')\n"
        "from test_loops import loops\n"
        f"print(json.dumps({{name: loop.content for one in {modules} for name, loop in loops(one).items()}}))"
    )
    assert json.loads(python("-c", code, folder=ROOT, PYTHONHASHSEED="1")) == here
    assert len({*here.values()}) == len(here) > 50


def test_options_and_constants_are_content() -> None:
    def content(options: str, code: str) -> str:
        space: dict[str, Any] = {"compiled": compiled, "A": 1.0}
        exec(f"@compiled{options}\ndef f(x):\n    return {code}", space)
        return str(space["f"].content)

    others = [("", "x / 4.0 + A"), ("", "x / 3.0 - A"), ("(fastmath={'nnan', 'nsz'})", "x / 3.0 + A")]
    assert content("", "x / 3.0 + A") not in {content(*other) for other in others}


@pytest.mark.long
def test_a_loop_of_a_module_and_one_that_calls_itself(folder: Path) -> None:
    """`callee.twice` is noticed like `twice`."""
    source = CALLER.replace("from callee import twice", "import callee").replace("twice(", "callee.twice(")
    (folder / "caller.py").write_text(source)
    assert ask(folder)[:2] == (9.0, ["callee.twice", "caller.total"])
    own = "    return 2.0 * value if value < 100 else twice(value / 2)\n"
    (folder / "callee.py").write_text(CALLEE.replace("    return 2.0 * value\n", own))
    assert ask(folder)[:2] == (9.0, ["callee.twice", "caller.total"])
    assert ask(folder)[:2] == (9.0, [])


def test_without_a_compiler(folder: Path) -> None:
    code = "import caller, json, numpy as np; print(json.dumps([caller.total(np.ones(3)), []]))"
    assert ask(folder, code, NUMBA_DISABLE_JIT="1")[0] == 9.0


@pytest.mark.long
def test_a_warm_up_leaves_nothing_to_compile() -> None:
    """Every loop, or one that it is a part of, is compiled; of the simulator's every policy has its own."""
    from fairopt.harness import warm

    loops = {name: loop for name, loop in every_loop().items() if "scheduling" not in name}
    warm.everything()
    assert {*loops} <= {name for loop in loops.values() if loop.signatures for name in loop.calls}


@bundle
class _Numbers(NamedTuple):
    values: Any
    doubles: bool
    more: float


@compiled(inner=True)
def _put(numbers, k):  # type: ignore[no-untyped-def]
    numbers.values[k] = (2.0 if numbers.doubles else 1.0) * k + numbers.more


@compiled
def _filled(numbers, more):  # type: ignore[no-untyped-def]
    for k in range(len(numbers.values)):
        _put(numbers, k)
    return numbers.values[-1] + more.values[0]


@pytest.mark.parametrize("doubles", [True, False])
def test_a_bundle_is_read_and_written_through_its_address(doubles: bool) -> None:
    """By loops that others call, and where two are handed over, as by the loop as it is written; no array is kept."""
    more = _Numbers(np.array([3.0]), False, 0.0)
    mine, written = (_Numbers(np.zeros(5), doubles, 0.5) for _ in range(2))
    before, found, after = sys.getrefcount(mine.values), _filled.dispatcher(mine, more), sys.getrefcount(mine.values)
    assert found == _filled(written, more)
    assert after == before
    assert_array_equal(mine.values, written.values)
    assert _filled.signatures
    assert written.values[4] == (8.5 if doubles else 4.5)
