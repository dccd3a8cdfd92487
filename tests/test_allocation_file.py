"""Allocation files: what is saved comes back, judged anew; a failed write loses nothing; errors name the entry."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families import draw
from laws.registry import refuses

import fairopt as fo
from fairopt.cli import main
from fairopt.errors import DataError
from fairopt.mechanisms import Mechanism
from fairopt.result import allocation_file

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


def document(tmp_path: Path, mechanism: Mechanism | None = None) -> dict[str, Any]:
    """A valid file's content, with everything optional in it."""
    cluster = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]], [1, 2], [[1, 1], [1, 0]], [np.inf, 2], users=["A", "B"])
    (mechanism or fo.AlphaFair(2, scope="servers")).solve(cluster).save(tmp_path / "good.json")
    return dict(json.loads((tmp_path / "good.json").read_text()))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_round_trip(mechanism: Mechanism, tmp_path: Path) -> None:
    """Everything comes back with every digit, and the certificate is that which `certify` finds."""
    seen = 0
    for seed, style in [(seed, style) for seed in range(6) for style in ("nice", "plain", "wide")]:
        cluster = draw(style, seed)
        if isinstance(mechanism, fo.FDS) and not cluster.pool().runnable.all():
            continue  # refused, with warnings
        if refuses(mechanism, cluster):
            continue
        allocation = mechanism.solve(cluster)
        allocation.save(tmp_path / "one.json")
        found = fo.Allocation.load(tmp_path / "one.json")
        assert (found.mechanism, found.cluster, found.tol) == (str(mechanism), allocation.cluster, allocation.tol)
        assert type(found.criterion) is type(allocation.criterion)
        assert (found.criterion.alpha, found.criterion.scope) == (
            allocation.criterion.alpha,
            allocation.criterion.scope,
        )
        for name in ("share", "weight", "cap", "floor"):
            np.testing.assert_array_equal(getattr(found.criterion, name), getattr(allocation.criterion, name))
        np.testing.assert_array_equal(found.tasks, allocation.tasks)
        if allocation.log_prices is not None:
            np.testing.assert_array_equal(found.log_prices, allocation.log_prices)
        fresh = allocation.certify()
        for number in ("feasibility", "optimality"):  # the order of arrays, and with it of sums, is another
            wanted = getattr(fresh, number)
            assert getattr(found.certificate, number) == pytest.approx(wanted, rel=1e-9, abs=1e-14)
        assert found.certify() == found.certificate
        found.save(tmp_path / "two.json")
        if allocation.log_prices is not None:
            assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()
        seen += 1
    assert seen >= 5


def test_what_fds_adds_comes_back(tmp_path: Path) -> None:
    fo.FDS(2, -2).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).save(tmp_path / "fds.json")
    rule = fo.Allocation.load(tmp_path / "fds.json").criterion
    assert (rule.fair, rule.efficient) == (0.5, 1.5)  # type: ignore[attr-defined]


def test_the_certificate_is_not_believed(tmp_path: Path) -> None:
    """Tasks that were tampered with are seen, not refused: they are flagged."""
    content = document(tmp_path)
    content["tasks"][0][0] *= 0.9
    (tmp_path / "tampered.json").write_text(json.dumps(content))
    found = fo.Allocation.load(tmp_path / "tampered.json")
    assert found.flagged
    assert found.certificate.optimality > 1e-2


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


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocation = fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))
    path = tmp_path / "kept.json"
    allocation.save(path)
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"cannot write the allocation file .*kept\.json: No space left"):
            allocation.save(path)
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["kept.json"]
    with pytest.raises(DataError, match=r"cannot write the allocation file .*: No such file"):
        allocation.save(tmp_path / "nowhere" / "a.json")


def at(*keys: str | int) -> Callable[[dict[str, Any], Any], None]:
    """Put a value at a place of the content."""

    def put(content: dict[str, Any], value: Any) -> None:
        for key in keys[:-1]:
            content = content[key]  # type: ignore[index]
        if value is KeyError:
            del content[keys[-1]]  # type: ignore[arg-type]
        else:
            content[keys[-1]] = value  # type: ignore[index]

    return put


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


#: Where, what instead (`KeyError`: the key is missing), and what the message names; shared with the checker's tests.
DAMAGE: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("fairopt_allocation",), KeyError, "fairopt_allocation"),
    (("fairopt_allocation",), 2, "fairopt_allocation"),
    (("fairopt_allocation",), "1", "fairopt_allocation"),
    (("cluster",), KeyError, "cluster"),
    (("cluster",), [1, 2], "cluster"),
    (("cluster", "servers"), KeyError, "servers"),
    (("cluster", "servers"), "one", "servers"),
    (("cluster", "servers"), ["s", 2], "servers"),
    (("cluster", "servers"), [["s"], "t"], "servers"),
    (("cluster", "servers"), {"s": 1, "t": 2}, "servers"),
    (("cluster", "users"), ["A", "A"], "users are called 'A'|distinct"),
    (("cluster", "users"), [], "users"),
    (("cluster", "users"), ["A"], r"demand"),
    (("cluster", "capacity"), 3, "capacity"),
    (("cluster", "capacity", 0), [1], r"capacity\[0\]"),
    (("cluster", "capacity", 0, 1), -1, "capacity"),
    (("cluster", "demand", 1, 0), "1", r"demand\[1\]\[0\]"),
    (("cluster", "demand", 1, 0), float("nan"), r"demand\[1\]\[0\]"),
    (("cluster", "demand", 1, 0), 10**400, r"demand\[1\]\[0\]"),
    (("cluster", "demand", 1), [0, 0], r"'B'.* demands nothing|demand\[1\] is nothing"),
    (("cluster", "weight"), [0, 1], "weight"),
    (("cluster", "weight"), None, "weight"),
    (("cluster", "max_tasks"), [-1, None], "max_tasks"),
    (("cluster", "max_tasks"), 2, "max_tasks"),
    (("cluster", "eligible", 1), [1, 2], "eligible"),
    (("cluster", "eligible", 1), ["yes", "no"], r"eligible\[1\]\[0\]"),
    (("cluster", "colour"), "red", "colour"),
    (("criterion",), KeyError, "criterion"),
    (("criterion",), "fair", "criterion"),
    (("criterion", "alpha"), KeyError, r"criterion\.alpha"),
    (("criterion", "alpha"), -1, "alpha"),
    (("criterion", "alpha"), "two", r"criterion\.alpha"),
    (("criterion", "alpha"), True, r"criterion\.alpha"),
    (("criterion", "scope"), "everywhere", "scope"),
    (("criterion", "scope"), ["pool"], "scope"),
    (("criterion", "scope"), "per_server", "alpha"),
    (("criterion", "scope"), "game", r"criterion\.share"),
    (("criterion", "share"), KeyError, r"criterion\.share"),
    (("criterion", "share"), [1.0], r"criterion\.share"),
    (("criterion", "share"), [0.0, 1.0], "share"),
    (("criterion", "weight"), [1.0, -1.0], r"criterion\.weight\[1\]"),
    (("criterion", "cap"), [1.0, "many"], r"criterion\.cap\[1\]"),
    (("criterion", "cap"), [1.0, -1.0], r"criterion\.cap\[1\]"),
    (("criterion", "floor"), [1.0], r"criterion\.floor"),
    (("criterion", "floor"), [1.0, None], r"criterion\.floor\[1\]"),
    (("criterion", "floor"), [1.0, -1.0], r"criterion\.floor\[1\]"),
    (("criterion", "fair"), 1.0, r"criterion\.efficient"),
    (("tasks",), KeyError, "tasks"),
    (("tasks",), "many", "tasks"),
    (("tasks",), [[1.0, 2.0]], "tasks"),
    (("tasks", 1), [1.0], r"tasks\[1\]"),
    (("tasks", 1, 0), "one", r"tasks\[1\]\[0\]"),
    (("tasks", 1, 0), None, r"tasks\[1\]\[0\]"),
    (("tasks", 1, 0), float("nan"), r"tasks\[1\]\[0\]|NaN"),
    (("tasks", 1, 0), float("inf"), r"tasks\[1\]\[0\]|Infinity"),
    (("tasks", 1, 0), 10**400, r"tasks\[1\]\[0\]"),
    (("tasks", 1, 0), {"a": 1}, r"tasks\[1\]\[0\]"),
    (("log_prices",), [1.0], "log_prices"),
    (("log_prices",), [], "log_prices"),
    (("log_prices",), [[[0.0, 0.0], [0.0, 0.0]]], "log_prices"),
    (("log_prices", 1, 1), "dear", r"log_prices\[1\]\[1\]"),
    (("tol",), 0, "tol"),
    (("tol",), "small", "tol"),
    (("tol",), 10**400, "tol"),
    (("colour",), "red", "colour"),
    (("criterion", "beta"), 2, "beta"),
    (("log_prices",), nested(900), "log_prices"),
    (("tasks",), nested(900), "tasks"),
    (("cluster", "users"), [nested(900)], "users"),
    (("cluster", "servers", 0), {"a": 1}, "servers"),
]
TEXTS = ["", "[]", "3", "{", "null", '"text"', "[" * 100_000, "1" * 5000, '{"fairopt_allocation": 1e999}', "\x00"]
TEXTS += [
    "[" * 5000 + "]" * 5000,
    '{"fairopt_allocation": 1, "fairopt_allocation": 1}',
    '{"tol":' * 900 + "1" + "}" * 900,
]


@pytest.mark.parametrize(("where", "value", "message"), DAMAGE)
def test_damage_is_named(where: tuple[str | int, ...], value: Any, message: str, tmp_path: Path) -> None:
    content = copy.deepcopy(document(tmp_path))
    at(*where)(content, value)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"bad\.json: (.|\n)*({message})"):
        fo.Allocation.load(path)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"bad\.json:"):
        fo.Allocation.load(path)


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    """The last of two would count, and whoever reads the file may see the first."""
    document(tmp_path)
    text = (tmp_path / "good.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"tol": 1e-06', '"tol": 1e-06,\n"tol": 1'))
    with pytest.raises(DataError, match=r'bad\.json:2: the key "tol" stands twice in one table; keep one of them'):
        fo.Allocation.load(tmp_path / "bad.json")


@pytest.mark.parametrize("share", [[0.2, None], [5e-324, 0.2]])
def test_shares_that_nobody_has(share: list[float | None], tmp_path: Path) -> None:
    """An infinite share of who can run, and what is beyond the range of numbers, is judged, and fails."""
    content = document(tmp_path, fo.DRFH())
    content["criterion"]["share"] = share
    (tmp_path / "odd.json").write_text(json.dumps(content))
    assert fo.Allocation.load(tmp_path / "odd.json").flagged


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    content = document(tmp_path)
    content["mechanism"] = "\ud800"
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"a mechanism is called .*, which cannot be written"):
        fo.Allocation.load(tmp_path / "odd.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the allocation file .*none\.json: No such file"):
        fo.Allocation.load(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8 text"):
        fo.Allocation.load(tmp_path / "bytes.json")


def test_huge_numbers_are_judged(tmp_path: Path) -> None:
    """Numbers at the end of the range are no error of the file: what they make is judged, and fails."""
    content = document(tmp_path)
    content["tasks"][0][0] = 1e308
    (tmp_path / "huge.json").write_text(json.dumps(content))
    assert fo.Allocation.load(tmp_path / "huge.json").flagged


def test_solve_saves_and_check_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "saved.json")
    assert main(["solve", "paper:drf-4.1", "-m", "ceei", "--save", path]) == 0
    assert "CEEI: 2 users" in capsys.readouterr().out
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert "CEEI: passes at 1e-06" in out
    assert "feasibility" in out
    assert "backward error" in out
    content = json.loads(Path(path).read_text())
    content["tasks"][0][0] *= 0.999
    Path(path).write_text(json.dumps(content))
    assert main(["check", path]) == 1
    assert "CEEI: fails at 1e-06" in capsys.readouterr().out
    assert main(["check", path, "--tol", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passes"] is True
    assert 1e-4 < found["optimality"] < 1e-2
    assert main(["check", path, "--tol", "-1"]) == 2
    Path(path).write_text("{}")
    assert main(["check", path]) == 2
    assert "fairopt_allocation is missing" in capsys.readouterr().err


def test_the_version_is_written(tmp_path: Path) -> None:
    assert document(tmp_path)["fairopt_allocation"] == allocation_file.VERSION
