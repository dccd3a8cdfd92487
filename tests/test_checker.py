"""`tools/check.py` knows nothing of fairopt, and finds what fairopt's certificates find, on hundreds of clusters."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import check as tool
import numpy as np
import pytest
from allocation_files import answers, checker, document
from processes import ROOT

import fairopt as fo
from fairopt.certificates import backward_error
from fairopt.certificates.bottleneck import exploitability
from fairopt.certificates.leximin import lexicographic_rise, proved
from fairopt.mechanisms import Mechanism
from fairopt.model.merging import merge
from fairopt.model.polytope import Polytope

TOOL = ROOT / "tools" / "check.py"
#: Clusters by seed, in three styles each; every allocation is checked as it is and moved, a little and much.
SEEDS = range(100, 103)
FINITE = [
    fo.AlphaFair(0.5),
    *(fo.AlphaFair(alpha, scope="servers") for alpha in (0.5, 2, 7, 50)),
    fo.GuaranteedAlphaFair(2),
    fo.CEEI(),
    fo.CEEI(scope="servers"),
    fo.Utilitarian(),
    fo.FDS(2, -2),
    *(fo.AlphaPFVDS(alpha) for alpha in (0, 0.3, 1, 2, 20)),
]


def test_it_is_alone() -> None:
    source = TOOL.read_text(encoding="utf-8")
    alone = ["bisect", "collections", "fractions", "hashlib", "json", "math", "sys", "types", "zipfile", "zlib"]
    assert {*re.findall(r"^ *(?:import|from) (\w+)", source, re.MULTILINE)} == {*alone}
    assert not re.search(r"import_module|__import__|exec\(", source)


def checked(allocation: fo.Allocation, folder: Path) -> tuple[float, float, str]:
    """Feasibility and error as the checker finds them, and whom the larger is largest for."""
    allocation.save(path := folder / "a.json")
    feasible, error = tool.judge(tool.read(path))
    return float(feasible[0]), float(error[0]), max(feasible, error)[1]


def allocations(mechanism: Mechanism, moved: bool = True) -> list[fo.Allocation]:
    """Answers on random clusters, and the same with tasks moved by up to 10% and by up to 1e-3 of some."""
    found = []
    for seed, allocation in answers(mechanism, SEEDS):
        rng = np.random.default_rng(seed)
        found.append(allocation)
        for size, part in ((0.1, 1.0), (1e-3, 0.2)) if moved else ():
            there = rng.random(allocation.tasks.shape) < part
            change = 1 + size * there * rng.uniform(-1, 1, allocation.tasks.shape)
            found.append(dataclasses.replace(allocation, tasks=allocation.tasks * change))
    assert len(found) >= 10
    return found


def polytope(allocation: fo.Allocation) -> Polytope:
    return Polytope(allocation.cluster, allocation.criterion.limits(allocation.cluster))


@pytest.mark.parametrize("mechanism", FINITE, ids=str)
def test_backward_error(mechanism: Mechanism, tmp_path: Path) -> None:
    """The same number as `certify`, for the same user or row; in the game with servers that it merges, as on all."""
    large = 0
    for allocation in allocations(mechanism):
        feasible, error, where = checked(allocation, tmp_path)
        certificate = allocation.certify()
        wanted, log_prices = certificate.optimality, allocation.log_prices
        assert log_prices is not None
        if allocation.criterion.scope == "game" and not merge(allocation.cluster, users=False).trivial:
            all_pairs = polytope(allocation)
            wanted = backward_error(
                all_pairs, allocation.criterion, allocation.tasks, all_pairs.log_row_prices(log_prices)
            ).error
        elif 1e-4 < certificate.residual < np.inf and allocation.criterion.alpha < 10:  # where users hardly ever tie
            # The fitted level of prices makes two users equally wrong; rounding decides between them.
            worst = certificate.worst.replace(" of server ", " of ")
            tie = "user" in where and "user" in worst and error == pytest.approx(wanted, rel=1e-9)
            assert where in worst or tie
        # Logarithms of prices are as exact as their size allows, hundreds at alpha = 50.
        size = np.abs(log_prices[np.isfinite(log_prices)]).max(initial=1.0)
        assert feasible == pytest.approx(certificate.feasibility, rel=1e-9, abs=1e-14)
        assert error == pytest.approx(wanted, rel=1e-6, abs=1e-14 + 2 * np.spacing(size))
        large += 1e-4 < wanted < np.inf
    assert large >= 5


@pytest.mark.parametrize(
    "mechanism", [fo.DRFH(), fo.TSF(), fo.AlphaFair(np.inf, scope="servers"), fo.GuaranteedAlphaFair(np.inf)], ids=str
)
def test_max_min_over_servers(mechanism: Mechanism, tmp_path: Path) -> None:
    """The bound that prices prove: for good answers that of the certificate, for moved ones that of `proved`."""
    by_prices = large = 0
    for allocation in allocations(mechanism):
        if allocation.log_prices is None or len(merge(allocation.cluster, users=False).cluster.servers) == 1:
            continue
        error = checked(allocation, tmp_path)[1]
        all_pairs, rule, prices = polytope(allocation), allocation.criterion, np.exp(allocation.log_prices)
        x = allocation.arrays.user_tasks[all_pairs.users]
        level = rule.restrict(all_pairs.users).levels(x)
        room = all_pairs.limit / x - 1
        floor = rule.restrict(all_pairs.users).floor
        proof = proved(all_pairs, allocation.tasks, level, prices, floor)
        # What is idle is rounded: 8 eps of what capacities are worth, as a part of what the user pays.
        rows = [all_pairs.row_prices(table) for table in prices]
        cost = [np.minimum.reduceat(all_pairs.price_per_task(row), all_pairs.tasks.indptr[:-1]) for row in rows]
        paid = [(x[n] * cost[s][n] / rows[s].sum()) if s >= 0 else 1.0 for n, s in enumerate(proof.which)]
        rounding = 8 * np.finfo(float).eps / min(paid)
        most, alone, _ = lexicographic_rise(all_pairs, allocation.tasks, rule, prices)
        if alone is not None:
            assert error == pytest.approx(most, rel=1e-6, abs=1e-14 + rounding)
            by_prices += 1
        else:  # where a linear program knows better, prices prove less
            rise = np.minimum(proof.rise, np.maximum(room, 0.0))
            assert error == pytest.approx(rise.max(), rel=1e-6, abs=1e-14)
            large += 1
    assert by_prices >= 5
    assert large >= 5


def rounding_here(allocation: fo.Allocation) -> float:
    """What is idle is rounded: 8 eps of a capacity, as a part of the tasks of the user that needs least of it."""
    cluster, tasks = allocation.cluster, allocation.tasks
    total = tasks if allocation.criterion.scope == "per_server" else tasks.sum(axis=1, keepdims=True)
    needed = cluster.demand[:, None] * total[..., None] / np.where(cluster.capacity > 0, cluster.capacity, np.inf)
    there = ((tasks > 0) & cluster.usable)[..., None] & (cluster.demand > 0)[:, None]
    return float(8 * np.finfo(float).eps / needed.min(where=there, initial=1.0))


def test_max_min_of_a_pool(tmp_path: Path) -> None:
    seen = large = 0
    for mechanism in (fo.DRF(), fo.AssetFairness(), fo.MQDRF()):
        for allocation in allocations(mechanism):
            feasible, error, _ = checked(allocation, tmp_path)
            certificate = allocation.certify()
            assert feasible == pytest.approx(certificate.feasibility, rel=1e-9, abs=1e-14)
            if certificate.measure == "lexicographic rise":  # and no distance from the exact optimum
                rounding = rounding_here(allocation)
                assert error == pytest.approx(certificate.optimality, rel=1e-6, abs=1e-14 + rounding)
                seen, large = seen + 1, large + (certificate.optimality > 1e-4)
    assert seen - large >= 10
    assert large >= 10


def test_proportional_servers_are_one(tmp_path: Path) -> None:
    allocation = fo.DRFH().solve(fo.Cluster([[9, 18], [3, 6]], [[1, 4], [3, 1]]))
    assert checked(allocation, tmp_path)[1] == pytest.approx(0, abs=1e-12)
    less = dataclasses.replace(allocation, tasks=allocation.tasks * [[1], [0.5]])
    assert checked(less, tmp_path)[1] == pytest.approx(less.certify().optimality, rel=1e-6)


@pytest.mark.parametrize("mechanism", [fo.PSDSF(), fo.PerServerDRF()], ids=str)
def test_servers_that_owe_their_users(mechanism: Mechanism, tmp_path: Path) -> None:
    """PS-DSF, and servers on their own, by definition: on the servers as they are, which `certify` may merge."""
    large = 0
    for allocation in allocations(mechanism):
        error = checked(allocation, tmp_path)[1]
        limits = allocation.criterion.limits(allocation.cluster)
        if isinstance(mechanism, fo.PerServerDRF):
            limits = np.where(limits > 0, np.inf, 0.0)
        all_pairs = Polytope(allocation.cluster, limits)
        wanted = float(exploitability(all_pairs, allocation.tasks, allocation.criterion)[0].max())
        assert error == pytest.approx(wanted, rel=1e-6, abs=1e-14 + rounding_here(allocation))
        large += wanted > 1e-4
        certificate = allocation.certify()
        if merge(allocation.cluster, users=False).trivial and certificate.measure != "distance from the optimum":
            rounding = rounding_here(allocation)
            assert error == pytest.approx(certificate.optimality, rel=1e-6, abs=1e-14 + rounding)
    assert large >= 5


@pytest.mark.parametrize("lacking", [5e-7, 5e-8, 5e-10, 5e-13])
def test_however_near_its_limit_a_user_could_rise_to_it(tmp_path: Path, lacking: float) -> None:
    cluster = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1], [1, 1]], max_tasks=[np.inf, np.inf, 1])
    allocation = fo.DRFH().solve(cluster)
    moved = dataclasses.replace(allocation, tasks=allocation.tasks * [[1], [1], [1 - lacking]])
    error = checked(moved, tmp_path)[1]
    assert error == pytest.approx(lacking, rel=1e-3)
    for prices, least in ((np.exp(moved.log_prices), 1e-14), (None, 1e-10)):
        found = lexicographic_rise(polytope(moved), moved.tasks, moved.criterion, prices)[0]
        assert found == pytest.approx(error, rel=1e-6, abs=least)


def test_tasks_where_none_can_run(tmp_path: Path) -> None:
    allocation = fo.AlphaFair(2, scope="servers").solve(fo.Cluster([[9, 18], [4, 0]], [[1, 4], [3, 1]]))
    wrong = allocation.tasks.copy()
    wrong[0, 1] = 1e-9
    assert checked(dataclasses.replace(allocation, tasks=wrong), tmp_path)[:2] == (np.inf, np.inf)
    wrong[0, 1] = -1e-9
    assert checked(dataclasses.replace(allocation, tasks=wrong), tmp_path)[0] == np.inf
    assert not np.signbit(tool.number(-0.0, "a capacity, which stray tasks are divided by"))


@pytest.mark.parametrize("mechanism", [fo.DRF(), fo.DRFH(), fo.PSDSF()], ids=str)
def test_whoever_has_a_little_less_than_nothing_is_owed(mechanism: Mechanism, tmp_path: Path) -> None:
    allocation = mechanism.solve(fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]]))
    starved = dataclasses.replace(allocation, tasks=np.vstack([0 * allocation.tasks[0] - 1e-9, allocation.tasks[1]]))
    assert checked(starved, tmp_path)[1] == starved.certify().optimality == np.inf


def test_without_prices_nothing_is_proved(tmp_path: Path) -> None:
    allocation = fo.AlphaFair(2, scope="servers").solve(fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]]))
    assert checked(allocation, tmp_path)[1] <= 1e-6
    assert checked(dataclasses.replace(allocation, log_prices=None), tmp_path)[1] == np.inf


# -- as a program: exit codes, what it prints, and the examples of docs/allocation-file.md ---------------


def test_as_a_program(tmp_path: Path) -> None:
    content = document(tmp_path)
    command = [sys.executable, str(TOOL), str(tmp_path / "good.json")]
    passed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"feasibility \d.*\nerror +\d.*\npass at 1e-06, by alpha 2, servers\n", passed.stdout + passed.stderr
    )
    content["tasks"][0][0] *= 0.99
    (tmp_path / "moved.json").write_text(json.dumps(content))
    status, said = checker(tmp_path / "moved.json")
    assert status == 1
    assert "FAIL at 1e-06" in said
    content["tol"] = 0.5
    (tmp_path / "moved.json").write_text(json.dumps(content))
    assert checker(tmp_path / "moved.json")[0] == 0
    (tmp_path / "bad.json").write_text("{")
    for path in (tmp_path / "bad.json", tmp_path / "none.json"):
        status, said = checker(path)
        assert status == 2
        assert path.name in said


def test_the_example_of_cvxpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/allocation-file.md shows runs, and passes."""
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/allocation-file.md", "exec"), {})
    assert checker(Path("answer.json"))[0] == 0
    assert not fo.Allocation.load("answer.json").flagged


def test_the_file_shown_passes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "allocation-file.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "shown.json").write_text(shown)
    assert checker(tmp_path / "shown.json")[0] == 0
    assert fo.Allocation.load(tmp_path / "shown.json").certificate.passes(1e-9)
