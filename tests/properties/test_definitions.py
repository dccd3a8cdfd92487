"""Every property against numbers of papers, and against its definition in plain loops."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from families import EXAMPLE
from numpy.testing import assert_allclose
from scipy.optimize import linprog

import fairopt as fo
from fairopt.errors import DataError
from fairopt.properties import Case, Deviation, _check, get
from fairopt.properties._search import draw, moved, shrunk
from fairopt.properties._tasks import Instance, case, clusters, exact, exact_tasks, instances, seen, speaks_of


def solved(mechanism: fo.mechanisms.Mechanism, instance: Instance) -> Case:
    """The case by certified answers."""
    found = case(mechanism, instance, (mechanism.solve(one, 1e-9).tasks for one in clusters(instance)))
    assert found is not None
    return found


def loss(name: str, cluster: fo.Cluster, tasks: object, *change: Any, **more: Any) -> float:
    """The violation of tasks that are given."""
    return float(get(name).find(Case(cluster, np.array(tasks, float), *change, **more)).violation)


def in_fractions(name: str, mechanism: str, cluster: fo.Cluster, lie: Deviation | None) -> Any:
    """What a property finds in exact answers."""
    case = exact(fo.mechanisms.get(mechanism), (cluster, lie))
    assert case is not None
    return get(name).find(case)


@pytest.mark.parametrize(
    ("mechanism", "instance", "name", "violation"),
    [
        ("drfh", "found-37", "sharing-incentive", F(1, 9)),  # 2/3 tasks of 3/4
        ("tsf", "found-40", "sharing-incentive", F(9, 11)),  # 1 task of 5.5
        ("tsf", "found-39", "bottleneck-fairness", F(1, 5)),  # .6 tasks of .75
        ("asset-fairness", "drf-thm1", "sharing-incentive", F(1, 5)),  # 12 tasks of 15
        ("asset-fairness", "drf-thm2", "bottleneck-fairness", F(1, 7)),  # 3 tasks of 7/2
        ("ps-dsf", "found-38", "pareto-optimality", F(1, 6)),
    ],
)
def test_violations_of_papers_in_fractions(mechanism: str, instance: str, name: str, violation: F) -> None:
    rule = fo.mechanisms.get(mechanism)
    cluster = seen(rule, fo.papers.instance(instance))
    found = exact(rule, (cluster, None))
    if found is not None and instance != "found-40":  # whose demand of .01 is no short fraction
        assert get(name).find(found).violation == violation
    checked = fo.properties.check(name, rule.solve(cluster))
    assert not checked
    assert checked.violation == pytest.approx(float(violation), abs=1e-6)
    assert checked.user in checked.witness


@pytest.mark.parametrize(
    ("mechanism", "before", "after", "name"),
    [
        ("ceei", "drf-thm4", "drf-thm4-lie", "strategy-proofness"),
        ("ceei", "drf-thm5", "drf-thm5-left", "population-monotonicity"),
        ("asset-fairness", "drf-thm3", "drf-thm3-doubled", "resource-monotonicity"),
    ],
)
def test_comparisons_of_papers(mechanism: str, before: str, after: str, name: str) -> None:
    rule, prop = fo.mechanisms.get(mechanism), get(name)
    cluster, changed = fo.papers.instance(before), fo.papers.instance(after)
    who = tuple(u for u in cluster.users if u not in changed.users)
    deviation = Deviation(changed, who or (() if name.startswith("resource") else cluster.users[:1]))
    assert prop.admits(cluster, deviation)
    assert prop.find(solved(rule, (cluster, deviation))).violation > 0.01
    assert prop.find(solved(fo.DRF(), (cluster, deviation))).violation < 1e-7 or name.startswith("resource")


#: Weights 1 and 3; what n=0 and n=1 may have alone of both servers.
PAIR = fo.Cluster([[8, 4], [4, 4]], [[1, 2], [2, 0]], [1, 3])
LIMITED = PAIR.replace(eligible=[[1, 0], [1, 1]], max_tasks=[np.inf, 2])
FINITE = fo.Cluster([[10]], [[1], [1]], max_tasks=[1, np.inf])
APART = fo.Cluster([[4, 4]], [[1, 0], [0, 1]])
#: A fast and a slow server; user 1 may run half a task at a time.
TIMED = fo.Cluster([[1], [1]], [[1], [1]], max_tasks=[0.5, 1], rate=[[2, 1], [3, 1]])


@pytest.mark.parametrize(
    ("name", "cluster", "tasks", "lost"),
    [
        # n=0: a quarter of min(8, 2) = 2 tasks; n=1: three quarters of 4 + 2 tasks, but it has only two to run.
        ("sharing-incentive", LIMITED, [[0.5, 0], [2, 0]], 0),
        ("sharing-incentive", LIMITED, [[0.4, 0], [2, 0]], 0.2),
        ("sharing-incentive", LIMITED, [[0.5, 0], [1, 0]], 0.5),
        # The pool has 12 and 8 units; n=0 may have 3 of the first and 2 of the second, n=1 three quarters of the pool.
        ("strong-sharing-incentive", PAIR, [[1, 0], [4, 0.5]], 0),
        ("strong-sharing-incentive", PAIR, [[0.5, 0], [4, 0.5]], 0.5),
        ("strong-sharing-incentive", PAIR.replace(eligible=[[1, 1], [0, 1]]), [[1, 0], [0, 2]], 0),  # n=1: 2 at most
        # n=0: half of the fast server for all of its time does a unit of work; both servers in turn, three quarters.
        ("sharing-incentive", TIMED, [[0.45, 0], [0.5, 0.5]], 0.1),
        ("uniform-sharing-incentive", TIMED, [[0.375, 0], [0.5, 0.5]], 0),
        ("uniform-sharing-incentive", TIMED, [[0.3, 0], [0.5, 0.5]], 0.2),
        # n=0 would use half of the time of n=1 on the fast server: a unit of work for its 3/4.
        ("envy-freeness", TIMED, [[0.25, 0.25], [0.75, 0.25]], 0.25),
        ("pareto-optimality", TIMED, [[0.25, 0.25], [0.75, 0.25]], 0),  # both are out of time
        # With all of the fast one, of which n=0 has a: (1/2 + a) / (3/4) = (3 - 2 a) / 2.2, the first larger by 3/37.
        ("pareto-optimality", TIMED, [[0.25, 0.25], [0.6, 0.4]], 3 / 40),
        # Finite tasks bound what is due.
        ("sharing-incentive", FINITE, [[1], [9]], 0),
        ("envy-freeness", FINITE, [[1], [9]], 0),
        ("single-resource-fairness", FINITE, [[1], [9]], 0),
        ("pareto-optimality", FINITE, [[1], [9]], 0),
        ("pareto-optimality", FINITE, [[1], [8]], 1 / 9),
        # Where a user has nothing a linear program decides: it can have something, or cannot.
        ("pareto-optimality", APART, [[4], [0]], 1),
        ("pareto-optimality", APART, [[4], [4]], 0),
        ("pareto-optimality", fo.Cluster([[4]], [[1], [1]]), [[4], [0]], 0),
    ],
)
def test_violations_by_hand(name: str, cluster: fo.Cluster, tasks: list[list[float]], lost: float) -> None:
    assert max(loss(name, cluster, tasks), 0) == pytest.approx(lost, abs=1e-9)


@pytest.mark.parametrize(("after", "gain"), [([[2.5], [0.5]], 0), ([[2], [2.5]], 0.2)])
def test_a_group_of_two_gains_only_if_both_do(after: list[list[float]], gain: float) -> None:
    """Both say that a task takes twice what it does: from 2 and 4 tasks to 5 and 1, or to 4 and 5."""
    cluster = fo.Cluster([[6]], [[1], [1]])
    lie = Deviation(cluster.derived(demand=np.array([[2.0], [2.0]])), ("user1", "user2"))
    found = loss("group-strategy-proofness", cluster, [[2], [4]], lie, np.array(after))
    assert max(found, 0) == pytest.approx(gain)


@pytest.mark.parametrize("conditions", [(), ("rates",), ("own time",)], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_envy_and_lies_in_plain_loops(seed: int, conditions: tuple[str, ...]) -> None:
    """Random tasks, feasible or not: what bundles are worth, by the definition."""
    rng = np.random.default_rng(seed)
    cluster = draw(rng, get("envy-freeness"), conditions)
    x = rng.random(cluster.usable.shape) * cluster.usable
    users = range(len(cluster.users))

    def worth(n: int, per_task: np.ndarray, tasks: np.ndarray) -> float:
        """Most work: tasks by the resource of which a bundle has least, where the user may run, within its limit."""
        needs = cluster.demand[n] > 0
        most = tasks * min(per_task[needs] / cluster.demand[n, needs]) * cluster.eligible[n]
        limit = min(cluster.max_tasks[n], 1e6)
        found = linprog(-cluster.rate[n], np.ones((1, len(most))), [limit], bounds=[*zip(0 * most, most, strict=True)])
        return float(-found.fun)

    w = cluster.weight
    envied = [max(worth(n, cluster.demand[m], x[m] * w[n] / w[m]) for m in users if m != n) for n in users]
    assert_allclose(get("envy-freeness").dues(Case(cluster, x))[1], envied, atol=1e-12)

    part = cluster.gamma * (w / w.sum())[:, None]
    own = [worth(n, cluster.demand[n], part[n]) for n in users]
    assert_allclose(get("sharing-incentive").dues(Case(cluster, x))[1], own, atol=1e-12)

    lie = next(iter(get("strategy-proofness").deviations(cluster, rng)))
    liar = cluster.users.index(lie.users[0])
    due = get("strategy-proofness").dues(Case(cluster, x, lie, x[::-1]))[1]
    assert due[liar] == pytest.approx(worth(liar, lie.cluster.demand[liar], x[::-1][liar]))
    assert np.count_nonzero(due) <= 1


def test_lies_about_rates() -> None:
    """OEF's rule equalises work in units of the slowest type: who claims less of the fast one is given more of it.

    In truth user 1 has the slow GPU and 4/7 of the fast one, and after the lie 16/25.
    """
    truth = fo.Cluster([[1], [1]], [[1], [1]], rate=[[1, 2], [1, 5]])
    lie = Deviation(truth.with_rate("user1", [1, 1.25]), ("user1",))
    found = fo.properties.verify("alpha-fair(alpha=inf, share=task)", "strategy-proofness", truth, lie)
    assert float(found.violation[0]) <= 1 - (15 / 7) / (57 / 25) <= float(found.violation[1])
    assert "1 has 2.14286 units of work when it reports truthfully, and 2.28 when it misreports" in repr(found)
    assert "rates of work ((1, 2), (1, 5))\n  user1 reports rates of work (1, 1.25)\n  work: 2.14286" in repr(found)
    assert fo.properties.Witness.of(found.document()).replay().text == found.text


def test_rates_shrink_to_what_is_needed() -> None:
    cluster = fo.Cluster([[4], [3]], [[2], [1], [3]], max_tasks=2, rate=[[3, 1], [5, 2], [1, 7]])
    small, _ = shrunk((cluster, None), lambda some: [bool(np.ptp(one.rate[0]) > 1) for one, _ in some])
    assert (small.shape, small.rate.tolist()) == ((1, 2, 1), [[1.0, 3.0]])
    moves = [moved((cluster, None), np.random.default_rng(k))[0] for k in range(40)]
    assert any((one.rate != cluster.rate).any() for one in moves)


def test_what_is_about_tasks_says_so_of_work() -> None:
    found = fo.properties.report("tsf", TIMED, ["single-resource-fairness", "uniform-sharing-incentive"])
    assert "compares tasks, and the cluster has rates" in found.loc["single-resource-fairness", "witness"]
    assert found.loc["uniform-sharing-incentive", "violation"] == 0
    plain = fo.properties.check("uniform-sharing-incentive", fo.DRF().solve(EXAMPLE))
    assert "has no rates" in plain.witness
    (claim,) = (one for one in fo.CEEI.claims if one.property == "envy-freeness")
    assert not claim.met(TIMED)


@pytest.mark.parametrize("name", [name for name in fo.properties.names() if not get(name).of_rates])
@pytest.mark.parametrize("mechanism", ["drf", "drfh", "per-server-drf"])
def test_doubles_and_fractions_agree(mechanism: str, name: str) -> None:
    rng, prop = np.random.default_rng(5), get(name)
    rule = fo.mechanisms.get("mqdrf" if name.startswith("dynamic") else mechanism)
    compared = 0
    for _ in range(14):
        try:
            cluster = seen(rule, draw(rng, prop))
        except DataError:
            continue
        if prop.domain(cluster):
            continue
        for instance in instances(prop, cluster, rng, 1):
            limited = any(np.isfinite(one.max_tasks).any() for one in clusters(instance))
            found = exact(rule, instance) if speaks_of(prop, instance) else None
            if found is None or (mechanism == "per-server-drf" and limited):
                continue
            compared += 1
            # What a lie about servers is worth depends on who runs where, which is not unique.
            if "group" not in name and "placement" not in name:
                near = prop.find(solved(rule, instance))
                assert float(prop.find(found).violation) == pytest.approx(float(near.violation), abs=2e-6)
    assert compared >= 2


@pytest.mark.parametrize(
    ("mechanism", "cluster", "tasks"),
    [
        ("drf", EXAMPLE, [3, 2]),  # a third is no double
        ("mqdrf", fo.Cluster([[7, 5]], [[1, 0], [0, 3], [2, 1]]), [F(7, 3), F(5, 9), F(7, 6)]),  # a third of the pool
        ("mqdrf", fo.Cluster([[7]], [[1], [1]], max_tasks=[2, np.inf]), [2, F(7, 2)]),
    ],
)
def test_exact_tasks_are_those_of_the_shares_that_were_meant(
    mechanism: str, cluster: fo.Cluster, tasks: list[F]
) -> None:
    """The share per task is known as a fraction, and so are caps."""
    found = exact_tasks(fo.mechanisms.get(mechanism), cluster)
    assert found is not None
    assert found[:, 0].tolist() == tasks
    assert exact_tasks(fo.CEEI(), cluster) is None
    limited = cluster.replace(max_tasks=1)
    assert exact_tasks(fo.mechanisms.get("per-server-drf"), limited) is None  # it cannot keep the limit


def test_a_group_gains_only_if_every_liar_does() -> None:
    cluster = fo.Cluster([[2, 2, 2]], [[0, 0, 2], [1, 2, 0], [2, 0, 0]], [2, 1, 1])
    lie = Deviation(cluster.with_demand("user1", [0, 1, 2]), ("user1",))
    assert in_fractions("group-strategy-proofness", "drf", cluster, lie).violation == 0
    strong = in_fractions("strong-group-strategy-proofness", "drf", cluster, lie)
    assert (strong.user, strong.has, strong.due, strong.violation) == ("user3", F(2, 3), F(3, 4), F(1, 9))


def test_reports() -> None:
    frame = fo.properties.report("drfh", fo.papers.instance("found-37"), changes=3)
    assert (list(frame.index), list(frame.columns)) == (fo.properties.names(), ["violation", "witness"])
    violation, witness = frame.loc["sharing-incentive"]
    assert violation == pytest.approx(1 / 9)
    assert "3/4" in witness or "0.75" in witness
    assert frame.loc["envy-freeness", "violation"] == 0
    assert np.isnan(frame.loc["single-server-drf", "violation"])
    assert frame.loc["single-server-drf", "witness"] == "not defined here: there are 2 servers, not one"


def test_refusals() -> None:
    cluster, check, report = fo.papers.instance("found-37"), fo.properties.check, fo.properties.report
    allocation = fo.DRFH().solve(cluster)
    for call, message in (
        (lambda: check("envy-fairness", allocation), "did you mean envy-freeness"),
        (lambda: check("envy-freeness", cluster), "solve first"),  # type: ignore[arg-type]
        (lambda: report("drfh", cluster, "envy-freenes"), "did you mean envy-freeness"),
        (lambda: report("drfh", cluster, changes=0), "changes is 0; it must be a whole number"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_a_check_says_where_a_property_is_not_applicable() -> None:
    """A table of all properties of an allocation has a row for each."""
    allocation = fo.DRFH().solve(fo.papers.instance("found-37"))
    rows = {name: fo.properties.check(name, allocation) for name in fo.properties.names()}
    for name, why in (("single-server-drf", "there are 2 servers"), ("strategy-proofness", "use report")):
        assert rows[name].holds is None
        assert not rows[name]
        assert np.isnan(rows[name].violation)
        assert why in rows[name].witness
        assert repr(rows[name]).startswith(f"{name} is not applicable: ")
    two = fo.properties.report("drfh", fo.papers.instance("found-37"), "envy-freeness, sharing-incentive")
    assert list(two.index) == ["envy-freeness", "sharing-incentive"]


def test_a_report_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by a second with every look at it: fewer changes are tried, and some properties not at all."""
    ticks = itertools.count()
    monkeypatch.setattr(_check, "clock", SimpleNamespace(cpu=lambda: float(next(ticks))))
    cluster, done = fo.papers.instance("found-37"), []
    frame = fo.properties.report("drfh", cluster, seconds=60, done=lambda: done.append(1))
    assert list(frame.index) == fo.properties.names()
    assert len(done) == len(frame)
    assert next(ticks) < 90
    assert frame["witness"].str.fullmatch("[0-9]{1,2} tried in the time").any()
    assert frame.loc["sharing-incentive", "violation"] == pytest.approx(1 / 9)  # it needs no changes
    short = fo.properties.report("drfh", cluster, seconds=12)["witness"]
    assert short.str.startswith("not checked: the time was over").any()


def test_levels_of_mqdrf() -> None:
    """Level 1 with two users has 1/2, and both are there; level 2 has 1/4 for two, and one is there."""
    rule = fo.mechanisms.get("mqdrf", shares=(0.5, 0.25), sizes=(2, 2), levels=(1, 1, 2))
    cluster = fo.Cluster([[8, 8]], [[1, 0], [1, 1], [2, 1]])
    for name, tasks, lost in (
        ("dynamic-sharing-incentive", [[2], [2], [0]], 0),  # nothing is due in level 2
        ("dynamic-sharing-incentive", [[2], [1], [0]], 0.5),
        ("dynamic-envy-freeness", [[2], [1], [8]], 0),  # what the third has is of another level
        ("dynamic-envy-freeness", [[1], [2], [8]], 0.5),
    ):
        assert max(loss(name, cluster, tasks, mechanism=rule), 0) == pytest.approx(lost)
        assert fo.properties.report(rule, cluster, [name]).loc[name, "violation"] == 0
    assert "needs the mechanism" in fo.properties.check("dynamic-envy-freeness", rule.solve(cluster)).witness
    with pytest.raises(DataError, match="is not defined for DRF"):
        fo.properties.search("drf", "dynamic-envy-freeness", 10)
