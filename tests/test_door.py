"""What is not imported: nobody waits for a library that the question does not need. Modules are asserted, no times."""

from __future__ import annotations

import re
import runpy
import sys

import first_minutes
import pytest
from processes import python

import fairopt as fo

#: Others may bring parts of SciPy with them, pandas PyArrow, and CVXPY more.
LIBRARIES = {
    "cvxpy",
    "pandas",
    "matplotlib",
    "numba",
    "scipy.sparse",
    "scipy.optimize",
    "scipy.stats",
    "joblib",
    "dask",
}

CLUSTER = "import fairopt as fo; c = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]); "


def imported(*codes: str) -> set[str]:
    """The modules of a new process after some codes, commands perhaps."""
    tried = "".join(f"try:\n    {code}\nexcept SystemExit as ended:\n    assert not ended.code\n" for code in codes)
    code = f"import sys\n{tried}print(*sys.modules)"
    return set(python("-c", code).splitlines()[-1].split())


def command(*words: str) -> str:
    return f"from fairopt.app.cli import main; assert not main({list(words)})"


#: What needs no library, not even NumPy; what needs no other; and what needs some.
NOTHING = ["import fairopt", command("--help"), command("--version")]
NUMPY = [
    command("solve", "--help"),
    command("schema", "experiment"),
    CLUSTER + "print(len(c.users))",
    CLUSTER + "fo.mechanisms.names()",
    CLUSTER + "print(fo.DRF().solve(c))",
    CLUSTER + "print(fo.PerServerDRF().solve(c).summary())",
    command("solve", "paper:drf-4.1", "--mechanism", "drf"),
    CLUSTER + "fo.AlphaFair(2).solve(c).summary()",
    "import fairopt as fo; c = fo.Cluster([[90]], [[1]] * 99); "  # a tree of a snapshot
    "fo.Tree({'q': {}} | {u: {'parent': 'q'} for u in c.users[:50]}).solve(c)",
    CLUSTER + "from fairopt.app.explorer import Session, page; Session(c).reply({'ask': 'answer'})",
    # Zeros and decades: rows are solved in an order of their own.
    "import fairopt as fo; c = fo.Cluster([[9e5, 18], [4, 6]], [[3, 0], [1, 4]], eligible=[[1, 1], [0, 1]]); "
    "fo.DRFH().solve(c); fo.PSDSF().solve(c)",
]


@pytest.mark.parametrize(
    ("codes", "needed"),
    [
        (NOTHING, set()),
        (NUMPY, set()),
        ([CLUSTER + "fo.AlphaFair(2).solve(c).certificate.conditions"], {"scipy.sparse"}),
        ([CLUSTER + "fo.PerServerDRF().solve(c).to_frame()"], {"pandas"}),
        ([CLUSTER + "fo.DRF().problem(c)"], {"cvxpy", "scipy.sparse"}),
    ],
    ids=["nothing", "numpy", "scipy", "pandas", "cvxpy"],
)
def test_only_what_is_needed_is_imported(codes: list[str], needed: set[str]) -> None:
    found = imported(*codes)
    assert needed <= found
    assert "cvxpy" in needed or found & LIBRARIES == needed
    if codes[0] in NOTHING:
        assert not {"numpy", "fairopt.mechanisms", "fairopt.model.cluster"} & found


#: Thousands of users on few types of servers, up to alpha = 2.
MANY = (
    "import fairopt as fo; c = fo.open_source('google-like?users=2000&servers=12583&seed=5').cluster; "
    "fo.AlphaPFVDS(2).solve(c)"
)
#: Three servers a user.
PLACED = (
    "import fairopt as fo; c = fo.open_source('lognormal?users=300&servers=100&density=.03').cluster; "
    "fo.DRFH().solve(c); fo.AlphaPFVDS(2).solve(c)"
)


def test_no_door_of_a_small_cluster_compiles() -> None:
    """Nor fails, nor warns: loops are counted, with nothing compiled before. `first_minutes.py` has each by itself.

    Words for Python are `-c CODE` or `-m fairopt COMMAND`.
    """
    codes = [door.words[1] if "-c" in door.words else command(*door.words[2:]) for door in first_minutes.DOORS]
    came = first_minutes.came(("-Werror", "-c", "\n".join([*codes, MANY, PLACED])))
    assert (came.failed, came.loops) == ("", 0)


LACKS = """
import sys
sys.modules |= dict.fromkeys(["yaml", "shtab", "pyarrow"])
from fairopt.app.cli import main
assert main(["compare", "paper:drf-4.1", "-m", "drf"]) == 0
assert main(["compare", "paper:drf-4.1", "-m", "drf", "--out", "table.md"]) == 0
for words in ("solve kubernetes:nodes.yaml", "completion bash", "sweep pf_example --smoke"):
    assert main(words.split()) == 2
"""


def test_what_lacks_says_which_extra() -> None:
    """And only what needs it: a table is printed all the same, in the same process."""
    came = first_minutes.came(("-c", LACKS))
    assert came.failed == ""
    assert re.findall(r"pip install 'fairopt\[(\w+)\]'", came.said) == ["kubernetes", "shell", "sweep"]


@pytest.mark.long
def test_optimised() -> None:
    """Without pandas: all its modules would be compiled once more."""
    assert first_minutes.came(("-O", "-m", "fairopt", "solve", "cluster.csv", "-m", "drf")).failed == ""


def test_a_mechanism_is_found_whatever_was_imported_before() -> None:
    """A class that is a plug-in's must not take the name of one that nobody has asked for yet."""
    code = (
        "import fairopt as fo\n"
        "from fairopt.mechanisms._base import Mechanism\n"
        "try:\n"
        "    type('Taken', (Mechanism,), {'name': 'tsf', '__module__': 'elsewhere'})\n"
        "except fo.errors.DataError as error:\n"
        "    print(error)\n"
        "print(fo.mechanisms.kind('T_S-F') is fo.TSF)\n"
    )
    error, found = python("-c", code).splitlines()
    assert "two mechanisms are called 'tsf', fairopt.mechanisms.tsf.TSF and elsewhere.Taken" in error
    assert found == "True"


def test_solvers_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Libraries below Python as well: standard output is for answers."""
    for mechanism in (fo.DRFH(), fo.AlphaFair(2)):
        mechanism.solve(fo.papers.instance("drf-4.1"), engine="declarative")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["fairopt", "fairopt.app.cli"])
def test_the_module_is_the_command(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: fairopt ")


def test_help_names_every_command() -> None:
    """Options are those of the command that is asked for; names and texts are there in any case."""
    from fairopt.app.cli import parser

    every = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    for name, made in every.items():
        alone = parser([name])._subparsers._group_actions[0].choices  # type: ignore[union-attr]
        assert list(alone) == list(every)
        assert alone[name].format_help() == made.format_help()
