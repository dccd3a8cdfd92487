"""Every property against numbers of papers, and against its definition in plain loops."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.properties import Case, Deviation, _check, get
from fairopt.properties._search import draw
from fairopt.properties._tasks import Instance, case, clusters, exact, exact_tasks, instances, seen, speaks_of


def solved(mechanism: fo.mechanisms.Mechanism, instance: Instance) -> Case:
    """The case by certified answers."""
    found = case(mechanism, instance, (mechanism.solve(one, 1e-9).tasks for one in clusters(instance)))
    assert found is not None
    return found


def loss(name: str, cluster: fo.Cluster, tasks: object, *change: Any, **more: Any) -> float:
    """The violation of tasks that are given."""
    return float(get(name).find(Case(cluster, np.array(tasks, float), *change, **more)).violation)


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
    rule, cluster = fo.mechanisms.get(mechanism), fo.papers.instance(instance)
    cluster = seen(rule, cluster)
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


def test_sharing_incentive_by_hand() -> None:
    """Weights 1 and 3, a placement constraint, and a user with two tasks."""
    cluster = fo.Cluster([[8, 4], [4, 4]], [[1, 2], [2, 0]], [1, 3], [[1, 0], [1, 1]], [np.inf, 2])
    # n=0: a quarter of min(8, 2) = 2 tasks; n=1: three quarters of 4 + 2 tasks, but it has only two to run.
    assert loss("sharing-incentive", cluster, [[0.5, 0], [2, 0]]) == pytest.approx(0)
    assert loss("sharing-incentive", cluster, [[0.4, 0], [2, 0]]) == pytest.approx(0.2)
    assert loss("sharing-incentive", cluster, [[0.5, 0], [1, 0]]) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(15))
def test_envy_and_lies_in_plain_loops(seed: int) -> None:
    """Random tasks, feasible or not: what bundles are worth, by the definition."""
    rng = np.random.default_rng(seed)
    cluster = draw(rng, get("envy-freeness"))
    users, servers, resources = cluster.shape
    x = rng.random((users, servers)) * cluster.usable

    def worth(n: int, per_task: np.ndarray, tasks: np.ndarray) -> float:
        total = sum(
            min(tasks[i] * per_task[r] / cluster.demand[n, r] for r in range(resources) if cluster.demand[n, r] > 0)
            for i in range(servers)
            if cluster.eligible[n, i]
        )
        return float(min(total, cluster.max_tasks[n]))

    w = cluster.weight
    envied = [
        max(min(worth(n, cluster.demand[m], x[m] * w[n] / w[m]), cluster.max_tasks[n]) for m in range(users) if m != n)
        for n in range(users)
    ]
    case = Case(cluster, x)
    np.testing.assert_allclose(get("envy-freeness").dues(case)[1], envied, atol=1e-12)

    told, liar = next(
        (one.cluster, cluster.users.index(one.users[0])) for one in get("strategy-proofness").deviations(cluster, rng)
    )
    case = Case(cluster, x, Deviation(told, (cluster.users[liar],)), x[::-1])
    due = get("strategy-proofness").dues(case)[1]
    assert due[liar] == pytest.approx(worth(liar, told.demand[liar], x[::-1][liar]))
    assert np.count_nonzero(due) <= 1


@pytest.mark.parametrize("name", fo.properties.names())
@pytest.mark.parametrize("mechanism", ["drf", "drfh", "per-server-drf"])
def test_doubles_and_fractions_agree(mechanism: str, name: str) -> None:
    rng, rule, prop = np.random.default_rng(5), fo.mechanisms.get(mechanism), get(name)
    compared = 0
    for _ in range(20):
        try:
            cluster = seen(rule, draw(rng, prop))
        except DataError:
            continue
        if prop.domain(cluster):
            continue
        for instance in instances(prop, cluster, rng, 1):
            if not speaks_of(prop, instance) or (mechanism == "per-server-drf" and _limited(instance)):
                continue
            found = exact(rule, instance)
            if found is not None:
                precise, near = prop.find(found), prop.find(solved(rule, instance))
                # What a lie about servers is worth depends on who runs where, which is not unique.
                if "group" not in name and "placement" not in name:
                    assert float(precise.violation) == pytest.approx(float(near.violation), abs=2e-6)
                compared += 1
    assert compared >= 2


def _limited(instance: tuple[fo.Cluster, Deviation | None]) -> bool:
    clusters = [instance[0], *([instance[1].cluster] if instance[1] else [])]
    return any(np.isfinite(one.max_tasks).any() for one in clusters)


def test_exact_tasks_are_those_of_the_shares_that_were_meant() -> None:
    """A third is no double: the share per task is known as a fraction all the same."""
    found = exact_tasks(fo.DRF(), fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))
    assert found is not None
    assert found[:, 0].tolist() == [3, 2]
    assert exact_tasks(fo.CEEI(), fo.Cluster([[9, 18]], [[1, 4], [3, 1]])) is None


def test_a_group_gains_only_if_every_liar_does() -> None:
    cluster = fo.Cluster([[2, 2, 2]], [[0, 0, 2], [1, 2, 0], [2, 0, 0]], [2, 1, 1])
    lie = Deviation(cluster.with_demand("user1", [0, 1, 2]), ("user1",))
    case = exact(fo.DRF(), (cluster, lie))
    assert case is not None
    assert get("group-strategy-proofness").find(case).violation == 0
    strong = get("strong-group-strategy-proofness").find(case)
    assert (strong.user, strong.has, strong.due, strong.violation) == ("user3", F(2, 3), F(3, 4), F(1, 9))


def test_population_monotonicity_of_drf_needs_positive_demands() -> None:
    cluster = fo.Cluster([[1, 2]], [[1, 0], [1, 1], [0, 1]])
    case = exact(fo.DRF(), (cluster, Deviation(cluster.drop_user("user1"), ("user1",))))
    assert case is not None
    found = get("population-monotonicity").find(case)
    assert (found.user, found.has, found.due) == ("user3", F(4, 3), F(3, 2))


def test_finite_tasks_bound_what_is_due() -> None:
    cluster = fo.Cluster([[10]], [[1], [1]], max_tasks=[1, np.inf])
    for name in ("sharing-incentive", "envy-freeness", "pareto-optimality", "single-resource-fairness"):
        assert loss(name, cluster, [[1], [9]]) <= 1e-9
    assert loss("pareto-optimality", cluster, [[1], [8]]) == pytest.approx(1 / 9)


def test_pareto_where_a_user_has_nothing() -> None:
    """Then a linear program decides: who has nothing can have something, or cannot."""
    cluster = fo.Cluster([[4, 4]], [[1, 0], [0, 1]])
    assert loss("pareto-optimality", cluster, [[4], [0]]) == pytest.approx(1)
    assert loss("pareto-optimality", cluster, [[4], [4]]) <= 1e-9
    assert loss("pareto-optimality", fo.Cluster([[4]], [[1], [1]]), [[4], [0]]) <= 1e-9


def test_reports_and_refusals() -> None:
    cluster = fo.papers.instance("found-37")
    frame = fo.properties.report("drfh", cluster, changes=20)
    assert list(frame.index) == fo.properties.names()
    assert list(frame.columns) == ["violation", "witness"]
    assert frame.loc["sharing-incentive", "violation"] == pytest.approx(1 / 9)
    assert "3/4" in frame.loc["sharing-incentive", "witness"] or "0.75" in frame.loc["sharing-incentive", "witness"]
    assert frame.loc["envy-freeness", "violation"] == 0
    assert np.isnan(frame.loc["single-server-drf", "violation"])
    assert frame.loc["single-server-drf", "witness"] == "says nothing: there are 2 servers, not one"
    allocation = fo.DRFH().solve(cluster)
    for call, message in (
        (lambda: fo.properties.check("envy-fairness", allocation), "did you mean envy-freeness"),
        (lambda: fo.properties.check("strategy-proofness", allocation), "use report"),
        (lambda: fo.properties.check("single-server-drf", allocation), "there are 2 servers"),
        (lambda: fo.properties.check("envy-freeness", cluster), "solve first"),  # type: ignore[arg-type]
        (lambda: fo.properties.report("drfh", cluster, "envy-freeness"), "give a list"),
        (lambda: fo.properties.report("drfh", cluster, changes=0), "changes is 0; it must be a whole number"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_a_report_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by a second with every look at it: fewer changes are tried, and some properties not at all."""
    ticks = itertools.count()
    monkeypatch.setattr(_check, "_clock", SimpleNamespace(cpu=lambda: float(next(ticks))))
    cluster, done = fo.papers.instance("found-37"), []
    frame = fo.properties.report("drfh", cluster, seconds=60, done=lambda: done.append(1))
    assert list(frame.index) == fo.properties.names()
    assert len(done) == len(frame)
    assert next(ticks) < 90
    assert frame["witness"].str.fullmatch("[0-9]{1,2} tried in the time").any()
    short = fo.properties.report("drfh", cluster, seconds=12)["witness"]
    assert short.str.startswith("not looked at: the time was over").any()
    assert frame.loc["sharing-incentive", "violation"] == pytest.approx(1 / 9)  # it needs no changes


def test_strong_sharing_incentive_by_hand() -> None:
    """The pool has 12 and 8 units; n=0 may have 3 of the first and 2 of the second, n=1 three quarters of the pool."""
    cluster = fo.Cluster([[8, 4], [4, 4]], [[1, 2], [2, 0]], [1, 3])
    assert loss("strong-sharing-incentive", cluster, [[1, 0], [4, 0.5]]) == pytest.approx(0)
    assert loss("strong-sharing-incentive", cluster, [[0.5, 0], [4, 0.5]]) == pytest.approx(0.5)
    barred = fo.Cluster([[8, 4], [4, 4]], [[1, 2], [2, 0]], [1, 3], [[1, 1], [0, 1]])  # n=1 could run 2 at most
    assert loss("strong-sharing-incentive", barred, [[1, 0], [0, 2]]) == pytest.approx(0)


def test_levels_of_mqdrf() -> None:
    """Level 1 with two users has 1/2, and both are there; level 2 has 1/4 for two, and one is there."""
    rule = fo.mechanisms.get("mqdrf", shares=(0.5, 0.25), sizes=(2, 2), levels=(1, 1, 2))
    cluster = fo.Cluster([[8, 8]], [[1, 0], [1, 1], [2, 1]])

    lost = partial(loss, cluster=cluster, mechanism=rule)
    assert lost("dynamic-sharing-incentive", tasks=[[2], [2], [0]]) == pytest.approx(0)  # nothing is due in level 2
    assert lost("dynamic-sharing-incentive", tasks=[[2], [1], [0]]) == pytest.approx(0.5)
    assert lost("dynamic-envy-freeness", tasks=[[2], [1], [8]]) <= 0  # what the third has is of another level
    assert lost("dynamic-envy-freeness", tasks=[[1], [2], [8]]) == pytest.approx(0.5)
    report = fo.properties.report(rule, cluster, ["dynamic-sharing-incentive", "dynamic-envy-freeness"])
    assert (report["violation"] == 0).all()
    with pytest.raises(DataError, match="needs the mechanism"):
        fo.properties.check("dynamic-envy-freeness", rule.solve(cluster))
    with pytest.raises(DataError, match="says nothing about DRF"):
        fo.properties.search("drf", "dynamic-envy-freeness", 10)


def test_a_group_of_two_gains_only_if_both_do() -> None:
    """Both say that a task takes twice what it does; what they get of it runs twice as many."""
    cluster = fo.Cluster([[6]], [[1], [1]])
    lie = Deviation(cluster.derived(demand=np.array([[2.0], [2.0]])), ("user1", "user2"))
    before = "group-strategy-proofness", cluster, [[2], [4]], lie
    assert loss(*before, np.array([[2.5], [0.5]])) < 0  # 5 and 1 tasks instead of 2 and 4
    assert loss(*before, np.array([[2], [2.5]])) == pytest.approx(0.2)  # 4 and 5: the second gains less
