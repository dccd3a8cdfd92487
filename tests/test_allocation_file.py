"""Allocation files: what is saved comes back, judged anew; a failed write loses nothing; errors name the entry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import check
import numpy as np
import pytest
from allocation_files import DAMAGE, TEXTS, answers, checker, document, put
from numpy.testing import assert_array_equal

import fairopt as fo
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.mechanisms import Mechanism

MECHANISMS = [
    fo.AlphaFair(0.5),
    fo.AlphaFair(50),
    fo.CEEI(),
    fo.FDS(2, -2),
    fo.AlphaPFVDS(3),
    fo.DRFH(),
    fo.GuaranteedAlphaFair(np.inf),
    fo.GuaranteedAlphaFair(2, 0.9),
    fo.DRF(),
    fo.PSDSF(),
    fo.PerServerDRF(),
    fo.MQDRF(),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_round_trip(mechanism: Mechanism, tmp_path: Path) -> None:
    """Everything comes back with every digit, and the certificate is that which `certify` finds."""
    seen, one, two = 0, tmp_path / "one.json", tmp_path / "two.json"
    for _, allocation in answers(mechanism, range(2)):
        allocation.save(one)
        found = fo.Allocation.load(one)
        assert (found.mechanism, found.cluster, found.tol) == (str(mechanism), allocation.cluster, allocation.tol)
        assert type(found.criterion) is type(allocation.criterion)
        for name in ("alpha", "scope", "share", "weight", "cap", "floor", "fair", "efficient"):  # the last two of FDS
            here, there = (getattr(one.criterion, name, None) for one in (found, allocation))
            assert_array_equal(here, there)
        assert_array_equal(found.tasks, allocation.tasks)
        fresh = allocation.certify()  # the order of arrays, and with it of sums, is another
        assert found.certificate.feasibility == pytest.approx(fresh.feasibility, rel=1e-9, abs=1e-14)
        assert found.certificate.optimality == pytest.approx(fresh.optimality, rel=1e-9, abs=1e-14)
        assert found.certify() == found.certificate
        if allocation.log_prices is not None:
            assert_array_equal(found.log_prices, allocation.log_prices)
            found.save(two)
            assert one.read_text() == two.read_text()
        seen += 1
    assert seen >= 3


def test_what_may_be_left_out(tmp_path: Path) -> None:
    content = document(tmp_path, fo.AlphaPFVDS(3))
    for key in ("mechanism", "log_prices", "tol"):
        del content[key]
    (tmp_path / "short.json").write_text(json.dumps(content))
    found = fo.Allocation.load(tmp_path / "short.json")
    assert not found.flagged  # prices were looked for
    assert found.log_prices is not None
    assert (found.mechanism, found.tol) == ("unnamed", 1e-6)
    for key in ("weight", "max_tasks", "eligible"):
        del content["cluster"][key]
    (tmp_path / "short.json").write_text(json.dumps(content))
    cluster = fo.Allocation.load(tmp_path / "short.json").cluster
    assert cluster == fo.Cluster(cluster.capacity, cluster.demand, users=["A", "B"])


def test_solve_saves_and_check_checks(
    tmp_path: Path, answer: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "saved.json")
    assert main(["solve", "paper:drf-4.1", "-m", "ceei", "--save", path]) == 0
    assert "CEEI: 2 users" in capsys.readouterr().out
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert "passes at 1e-06: alpha = 1 of dominant shares, pool\nmechanism according to the file: 'CEEI'\n" in out
    assert "feasibility" in out
    assert "backward error" in out
    content = json.loads(Path(path).read_text())
    content["tasks"][0][0] *= 0.999
    Path(path).write_text(json.dumps(content))
    assert main(["check", path]) == 1
    assert "fails at 1e-06: alpha = 1 of" in capsys.readouterr().out
    found = answer("check", path, "--tol", "0.1")
    assert found["passes"] is True
    assert 1e-4 < found["optimality"] < 1e-2
    assert main(["check", path, "--tol", "-1"]) == 2
    Path(path).write_text("{}")
    assert main(["check", path]) == 2
    assert "fairopt_allocation is missing" in capsys.readouterr().err


HOSTILE = "DRFH: passes\n\x1b[2J\x9b31m\u202e\rfeasibility: 0"


@pytest.mark.parametrize("command", ["check", "solve", "compare", "report", "no such command"])
def test_a_label_fakes_no_report(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a name: control characters never reach a terminal, and what is judged is said whatever it is called."""
    content = document(tmp_path, fo.Utilitarian())
    content["mechanism"], content["cluster"]["users"][0] = HOSTILE, HOSTILE
    (path := tmp_path / "hostile\x1b.json").write_text(json.dumps(content))
    try:
        main([command, str(path)])
    except SystemExit:
        assert command == "no such command"
    said = "".join(capsys.readouterr())
    assert not {*said} & {*HOSTILE[12:], "\x1b"} - {*"\n2J31m[feasibility: 0"}
    assert "\nfeasibility: 0\n" not in said
    if command == "check":
        assert said.startswith(
            "passes at 1e-06: largest sum of dominant shares, servers\nmechanism according to the file: 'DRFH"
        )


# -- with something wrong in them: errors name the entry; what can be judged is judged ----------------


@pytest.mark.parametrize(("where", "value", "message"), DAMAGE)
def test_damage_is_named(where: str, value: Any, message: str, tmp_path: Path) -> None:
    """By fairopt, and by `tools/check.py`."""
    content, path = document(tmp_path), tmp_path / "bad.json"
    put(content, where, value)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"bad\.json: (.|\n)*({message})"):
        fo.Allocation.load(path)
    name = where.removeprefix("cluster.").removeprefix("criterion.").partition(".")[0]
    with pytest.raises(ValueError, match=f"{name}|{message}"):
        check.read(path)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"bad\.json:"):
        fo.Allocation.load(path)
    with pytest.raises((ValueError, RecursionError)):  # which the program prints
        check.read(path)


def test_a_limit_that_servers_on_their_own_exceed(tmp_path: Path) -> None:
    """Per-server DRF is defined without limits; of a file that has one, tasks above it are not feasible."""
    fo.PerServerDRF().solve(fo.Cluster([[9, 18], [9, 18]], [[1, 4], [3, 1]])).save(path := tmp_path / "limit.json")
    content = json.loads(path.read_text())
    content["cluster"]["max_tasks"] = [3, None]
    path.write_text(json.dumps(content))
    assert fo.Allocation.load(path).certificate.feasibility == pytest.approx(1)
    assert checker(path)[0] == 1


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    content = document(tmp_path)
    content["mechanism"] = "\ud800"
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"a mechanism is called .*, which cannot be written"):
        fo.Allocation.load(tmp_path / "odd.json")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("criterion.share", [0.2, None]),
        ("criterion.share", [5e-324, 0.2]),
        ("tasks", [[1e308, 0], [1e308, 0]]),
        ("tasks", [[-1e308, 0], [1e308, 0]]),
    ],
)
def test_numbers_at_the_end_of_the_range_are_judged(where: str, value: Any, tmp_path: Path) -> None:
    """And an infinite share of who can run: no error of the file; what they make is judged, and fails."""
    content, path = document(tmp_path, fo.DRFH()), tmp_path / "odd.json"
    put(content, where, value)
    path.write_text(json.dumps(content))
    assert fo.Allocation.load(path).flagged
    assert checker(path)[0] == 1
