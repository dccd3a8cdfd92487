"""Tasks of anybody: judged, compared, checked, saved; functions as mechanisms."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from allocation_files import checker

import fairopt as fo
from fairopt.app.cli import main
from fairopt.errors import DataError, SolverError


@pytest.fixture
def cluster() -> fo.Cluster:
    return fo.Cluster(
        [[9, 18], [4, 6]], [[1, 4], [3, 1]], resources=["cpu", "ram"], users=["a", "b"], servers=["s", "t"]
    )


TASKS = np.array([[1.0, 0.0], [0.5, 1.0]])
FRAME = pd.DataFrame(TASKS, index=["a", "b"], columns=["s", "t"])


@pytest.fixture
def mine(cluster: fo.Cluster) -> fo.Allocation:
    return fo.Allocation.of(cluster, TASKS, "mine")


@pytest.mark.parametrize(
    "given",
    [
        TASKS.tolist(),
        FRAME.loc[["b", "a"], ["t", "s"]],
        FRAME.stack(),
        {("b", "t"): 1, ("b", "s"): 0.5, ("a", "s"): 1},
        {"b": {"t": 1, "s": 0.5}, "a": {"s": 1}},
    ],
    ids=["lists", "shuffled frame", "series of pairs", "dict of pairs", "partial dict"],
)
def test_tasks_count_by_their_labels(cluster: fo.Cluster, given: Any) -> None:
    assert np.array_equal(fo.Allocation.of(cluster, given).tasks, TASKS)


@pytest.mark.parametrize("given", [[1, 2], pd.Series({"b": 2, "a": 1}), {"b": 2, "a": 1}])
def test_one_server_takes_a_number_per_user(cluster: fo.Cluster, given: Any) -> None:
    assert fo.Allocation.of(cluster.pool(), given).user_tasks.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([1, 2], r"one number per user, and there are 2 servers; give tasks per server, or judge them on cluster.pool"),
        (np.ones((3, 2)), r"shape \(users, servers\) = \(2, 2\); got \(3, 2\)"),
        ([[0, 0], [0, np.nan]], r"user 'b' has nan tasks on 't'"),
        (FRAME.rename(index={"a": "x"}), r"missing: a; unknown: x"),
        ({"a": {"z": 1}, "b": {"s": 1}}, r"unknown: z"),
        (pd.concat([FRAME.stack(), FRAME.stack()[:1]]), r"two entries for user 'a' on server 's'"),
        ({"a": {"s": 1}, "b": 2}, r"give every user its tasks by server"),
        (None, r"tasks must be numbers"),
        ([[10, 0], [0, 0]], r"not feasible: 1.22, largest for 'ram' of 's', overused; scale them down"),
        ([[-1, 0], [0, 0]], r"not feasible: .*user 'a', with negative tasks"),
    ],
)
def test_what_are_no_tasks_is_said(cluster: fo.Cluster, given: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        fo.Allocation.of(cluster, given)


def test_no_more_is_claimed_than_is_known(cluster: fo.Cluster, mine: fo.Allocation) -> None:
    assert not mine.flagged
    assert not mine.certificate.judged
    assert "no criterion" in repr(mine)
    assert mine.prices is None
    for asked in (lambda: mine.criterion, mine.sensitivity, mine.bottlenecks):
        with pytest.raises(DataError, match=r"mine has no criterion, .*Allocation.of\(..., criterion="):
            asked()
    again = pickle.loads(pickle.dumps(mine))
    assert np.array_equal(again.tasks, TASKS)
    assert not again.certify().judged
    infeasible = fo.Allocation.of(cluster, 10 * TASKS, throw=False)
    assert infeasible.flagged
    assert infeasible.certificate.feasibility == pytest.approx(6.5)


@pytest.mark.parametrize("rule", [fo.DRFH(), fo.AlphaFair(3), fo.AlphaPFVDS(2), fo.PSDSF()], ids=str)
def test_a_criterion_judges_anybody_alike(cluster: fo.Cluster, rule: Any) -> None:
    on = cluster if rule.prepare(cluster)[0].shape == cluster.shape else cluster.pool()
    answer = rule.solve(on)
    assert not fo.Allocation.of(on, answer.tasks, criterion=rule).flagged
    worse = fo.Allocation.of(on, 0.9 * answer.tasks, "worse", criterion=rule)
    assert worse.flagged
    assert worse.certificate.residual > 0.01
    by_value = fo.Allocation.of(on, 0.9 * answer.tasks, criterion=rule.criterion(on))
    assert by_value.certificate.optimality == pytest.approx(worse.certificate.optimality)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (fo.DRF(), "is about the pool of the servers; judge the pool's tasks, on cluster.pool"),
        ("drfh", "type str; give a mechanism"),
        (fo.DRFH, r"give a mechanism, such as DRFH\(\)"),
        (fo.DRFH().criterion(fo.Cluster([[1]], [[1], [1], [1]])), "for 3 users, and the cluster has 2"),
        (fo.AlphaPFVDS(2).criterion(fo.Cluster([[1]] * 3, [[1], [1]])), "for 3 servers, and the cluster has 2"),
    ],
)
def test_what_judges_nothing_is_refused(cluster: fo.Cluster, rule: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        fo.Allocation.of(cluster, TASKS, criterion=rule)


def test_properties_and_plots_take_them(mine: fo.Allocation) -> None:
    assert fo.properties.check("envy-freeness", mine)
    unfair = fo.properties.check("pareto-optimality", mine)
    assert not unfair
    assert "while nobody loses any" in unfair.witness
    assert "use report" in fo.properties.check("strategy-proofness", mine).witness
    assert mine.plot().axes
    assert mine.summary()["tasks"] == TASKS.sum()


def test_files_hold_them(mine: fo.Allocation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    mine.save(path)
    again = fo.Allocation.load(path)
    assert again.mechanism == "mine"
    assert not again.certificate.judged
    document = json.loads(path.read_text())
    for tasks, code in ((TASKS, 0), (10 * TASKS, 1)):
        path.write_text(json.dumps(document | {"tasks": tasks.tolist()}))
        assert main(["check", str(path)]) == checker(path)[0] == code
        assert "no criterion" in capsys.readouterr().out


def half(cluster: fo.Cluster) -> np.ndarray:
    """Half of what DRFH gives."""
    return fo.DRFH().solve(cluster).tasks / 2


def test_everybody_is_compared(cluster: fo.Cluster, mine: fo.Allocation) -> None:
    problem = fo.DRFH().problem(cluster)
    changed = problem.adding(favour=problem.user_tasks[0] >= 5)
    frame = fo.compare(cluster, [fo.DRFH(), "tsf", changed, changed, mine, half])
    assert list(frame.index) == ["DRFH", "TSF", "problem", "problem 4", "mine", "half"]
    assert frame["certified"].tolist() == [True, True, False, False, False, False]
    assert frame.loc["half", "tasks"] == pytest.approx(frame.loc["DRFH", "tasks"] / 2)


def test_what_cannot_be_compared_is_said(cluster: fo.Cluster) -> None:
    other = fo.papers.instance("drf-4.1")
    for entry in (fo.DRFH().solve(other), fo.DRFH().problem(other)):
        with pytest.raises(DataError, match="is of another cluster"):
            fo.compare(cluster, [entry])
    frame = fo.compare(cluster, ["drfh", lambda cluster: 100 * half(cluster)], details=True)
    assert frame["status"].iloc[1].startswith("not applicable: the tasks of <lambda> are not feasible")


def test_what_raises_is_a_row(cluster: fo.Cluster) -> None:
    """And a warning that names it; the others answer."""

    def typo(cluster: fo.Cluster) -> Any:
        return cluster.demand["cpu"]

    with pytest.warns(UserWarning, match="has no answer: ") as said:
        frame = fo.compare(cluster, [typo, "drfh", lambda cluster: [[1, 0], [0, 0]], lambda: 1], details=True)
    assert [str(one.message).partition(" has")[0] for one in said] == ["typo", "<lambda> 4"]
    assert list(frame.index) == ["typo", "DRFH", "<lambda>", "<lambda> 4"]
    assert frame["tasks"].isna().tolist() == [True, False, False, True]
    assert re.match(r"IndexError: only integers.* \(.*test_given_tasks.py, line \d+\)$", frame.loc["typo", "status"])
    assert frame.loc["<lambda> 4", "status"].startswith("TypeError: ")
    assert fo.plot.compare(frame).axes


def test_what_is_not_there_is_answered_with_what_is(mine: fo.Allocation) -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'frame'; it has .*summary, tasks, tasks_by_type, to_frame, .*utili"
    ):
        mine.frame  # type: ignore[attr-defined]  # noqa: B018


def test_a_changed_problem_has_an_allocation(cluster: fo.Cluster) -> None:
    problem = fo.AlphaFair(1).problem(cluster.pool())
    assert not problem.allocation("same", criterion=fo.AlphaFair(1), tol=1e-4).flagged
    most = problem.maximising(cp.sum(problem.user_tasks))
    most.solve(solver="HIGHS")
    assert most.allocation().arrays.user_tasks.sum() == pytest.approx(most.value)
    assert problem.allocation(cluster).mechanism == "problem"
    with pytest.raises(DataError, match="of another cluster"):
        problem.allocation(cluster.drop_user("a"))
    with pytest.raises(SolverError, match="has no answer, infeasible"):
        problem.adding(much=problem.user_tasks >= 100).allocation()


@pytest.fixture
def greedy() -> Iterator[None]:
    @fo.mechanism("greedy-part")
    def greedy_part(cluster: fo.Cluster, part: float = 0.5) -> np.ndarray:
        """A part of what DRFH gives."""
        return fo.DRFH().solve(cluster).tasks * part

    yield
    del fo.mechanisms.REGISTRY["greedy-part"]


@pytest.mark.usefixtures("greedy")
def test_a_function_is_a_mechanism(cluster: fo.Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mechanism = fo.mechanisms.get("greedy-part", part=0.25)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    found = mechanism.solve(cluster)
    assert not found.certificate.judged
    assert found.tasks == pytest.approx(half(cluster) / 2)
    assert not fo.solve_many("greedy-part", [cluster, cluster]).failed
    report = fo.properties.report("greedy-part", cluster, ["envy-freeness", "pareto-optimality"], changes=3)
    assert report.loc["envy-freeness", "violation"] == 0 < report.loc["pareto-optimality", "violation"]
    first = fo.properties.SearchOptions(further=0)
    assert fo.properties.search("greedy-part", "sharing-incentive", trials=30, rng=0, options=first) is not None
    cluster.save(tmp_path / "c.toml")
    assert main(["solve", str(tmp_path / "c.toml"), "-m", "greedy-part(part=0.1)"]) == 0
    assert "no criterion" in capsys.readouterr().out
    with pytest.raises(DataError, match="no engine or solver"):
        mechanism.solve(cluster, solver="CLARABEL")
    with pytest.raises(DataError, match="not feasible"):
        fo.mechanisms.get("greedy-part", part=2.0).solve(cluster)
    with pytest.raises(DataError, match="answers none of 9 clusters"):
        fo.properties.search("greedy-part(part=2)", "sharing-incentive", trials=9)
    with pytest.raises(DataError, match="no convex program"):
        mechanism.problem(cluster)


def test_what_is_no_mechanism_says_what_it_lacks() -> None:
    class Half(fo.mechanisms.Mechanism):
        def program(self, p: Any) -> Any: ...

    with pytest.raises(DataError, match=r"Half lacks criterion\(cluster\), what fair means .*@fairopt.mechanism"):
        Half()  # type: ignore[abstract]
    with pytest.raises(DataError, match="needs a default for 'part': it is a parameter of x"):
        fo.mechanism("x")(lambda cluster, part: part)
    with pytest.raises(DataError, match="two mechanisms are called 'drfh'"):
        fo.mechanism("drfh")(half)
    for name in (half, "a (b)"):
        with pytest.raises(DataError, match="needs a name"):
            fo.mechanism(name)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="first argument is the cluster"):
        fo.mechanism("x")(lambda: 1)


def test_a_saved_allocation_is_what_runs(
    few_alphas: None, mine: fo.Allocation, tmp_path: Path, answer: Callable[..., Any]
) -> None:
    path = tmp_path / "mine.json"
    mine.save(path)
    assert [row["running"] for row in answer("report", str(path), "-m", "drfh")["users"]] == [1.0, 1.5]
    assert [row["mechanism"] for row in answer("compare", str(path), "-m", "drfh")] == ["running", "DRFH"]
    assert main(["explore", str(path), "--out", str(tmp_path / "page.html")]) == 0
    assert "mine.json: mine" in (tmp_path / "page.html").read_text(encoding="utf-8")
