"""Reports of how users stand: entitlements are what mechanisms give, changes what they give after."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.app.explorer import Start, State
from fairopt.app.explorer.session import gainers, margins, summed
from fairopt.app.explorer.standing import standing, what_if
from fairopt.errors import DataError, SolverError
from fairopt.workloads import Snapshot


def teams() -> fo.Cluster:
    return fo.Cluster(
        capacity=[[8, 16], [8, 16], [4, 64]],
        demand=[[1, 1], [1, 4], [2, 2]],
        weight=[1, 1, 2],
        max_tasks=[3, 40, 40],
        resources=["cpu", "memory"],
        users=["web/small", "web/large", "batch/any"],
        servers=["node-1", "node-2", "big"],
    )


def running(cluster: fo.Cluster, placement: object) -> Snapshot:
    return Snapshot(cluster, "by hand", placement=np.array(placement, dtype=float))


#: What alphaPF-VDS gives at alpha = 1.
ENTITLED = fo.AlphaPFVDS(1).solve(teams()).arrays.user_tasks


RUNNING = running(teams(), [[1, 0, 0], [3, 3, 3], [2, 0, 0]])


def test_entitlements_who_is_below_and_sums_of_groups() -> None:
    found = standing(teams(), snapshot=RUNNING)
    users, groups = found.users.set_index("user"), found.groups.set_index("group")
    for mechanism in (fo.AlphaPFVDS(1), fo.DRFH(), fo.TSF(), fo.PSDSF(), fo.AlphaPFVDS(3)):
        assert_allclose(users[str(mechanism)], mechanism.solve(teams()).arrays.user_tasks, rtol=1e-6)
    assert users["below"].tolist() == pytest.approx([2, 0, ENTITLED[2] - 2])
    assert users["limited by"].tolist() == ["nothing: there is idle room"] * 3
    assert users["running"].tolist() == [1, 9, 2]
    expected = {"entitled": [sum(ENTITLED[:2]), ENTITLED[2]], "running": [10, 2], "wanted": [43, 40], "weight": [1, 2]}
    for column, runs in (("share entitled", ENTITLED), ("share now", np.array([1, 9, 2]))):
        taken = runs[:, None] * teams().demand / teams().capacity.sum(axis=0)
        expected[column] = [max(taken[0] + taken[1]), max(taken[2])]
    for column, values in expected.items():
        assert groups[column].tolist() == pytest.approx(values), column


def test_more_of_a_resource() -> None:
    resources = standing(teams()).resources.set_index("resource")
    assert resources["used up on"]["cpu"] == 3
    after = fo.AlphaPFVDS(1).solve(teams().replace(capacity=teams().capacity * [1.1, 1])).arrays.user_tasks
    assert resources["tasks more"]["cpu"] == pytest.approx((after - ENTITLED).sum())
    assert after - ENTITLED == pytest.approx([0, 2 / 3, 2 / 3])
    assert resources["for"]["cpu"] == "web/large +0.667, batch/any +0.667"


@pytest.mark.parametrize(
    ("gain", "named"),
    [
        ([1, -2, 4, 2, 1.5], "c +4, d +2, e +1.5"),
        ([0.2, 0, 9, 0, 0], "c +9"),
        ([0] * 5, "nobody"),
        ([-1, 0, 0, -2, 0], "nobody"),
        ([1, 2 - 1e-15, 2, 0, 2 + 1e-15], "b +2, c +2, e +2"),  # what differs by rounding is in the order of users
        (
            [10, 0.3, -9, 0, 0],
            "a +10",
        ),  # not who gains less than a twentieth of what winners gain, whatever others lose
    ],
)
def test_who_gains_most_is_named_first(gain: list[float], named: str) -> None:
    assert gainers(tuple("abcde"), np.array(gain, dtype=float)) == named
    assert summed(tuple("abcde"), np.array([1e-12, 0, 0, 0, -1e-13]), 1e-9) == (0, "nobody")


def test_who_gains_is_said_where_many_gain_a_little() -> None:
    """Of forty alike none has a twentieth of the gain: the column was empty for most servers of `lognormal`."""
    assert gainers(tuple(f"u{k}" for k in range(41)), np.append(0, np.full(40, 0.25))) == "40 users, most u1 +0.25"


def test_what_some_gain_and_others_lose_is_nothing_in_all() -> None:
    """A tenth more of two GPUs: .2 tasks more for one, who takes the memory for them from the other."""
    users, resources = ["batch", "training"], ["cpu", "memory", "gpu"]
    found = standing(fo.Cluster([[64, 128, 2]], [[2, 16, 0], [4, 16, 1]], users=users, resources=resources))
    assert found.resources["tasks more"].tolist() == [0, pytest.approx(0.8), 0]
    assert found.resources["for"].tolist() == ["nobody", "batch +0.8", "training +0.2"]
    assert found.margins.set_index("resource")["tasks more"]["gpu"] == 0


def test_nodes_that_lack_a_resource_are_not_used_up() -> None:
    found = standing(fo.Cluster([[8, 2], [8, 0]], [[1, 0], [1, 1]], resources=["cpu", "gpu"]))
    assert found.resources.loc[1, ["resource", "nodes", "used up on"]].tolist() == ["gpu", 1, 1]
    assert "running" not in found.users
    assert "below" not in found.groups
    assert found.changes is None


def test_where_all_nodes_are_one_pool_so_are_margins() -> None:
    assert set(standing(teams(), State("drf")).margins["nodes"]) == {"all nodes"}


def test_nodes_without_a_derivative_are_counted() -> None:
    """The first user just reaches its limit, on a node of its own."""
    found = standing(fo.Cluster([[6], [4]], [[1], [1]], None, [[1, 0], [0, 1]], [6, 9], servers=["kink", "plain"]))
    assert " 1 of 2 kinds of nodes and resources have no derivative; 1 of these were solved" in found.margins_note
    assert found.margins["nodes"].tolist() == ["plain"]


def test_where_nothing_is_solved_nothing_is_said_of_gains() -> None:
    found = standing(fo.Cluster([[6]], [[1]], max_tasks=6), State("alphapf-vds"))
    session = found.session
    answer, rule = session.allocation(), session.mechanism(session.state)
    rows, note = margins(session.start, session.edited(session.state), answer, rule, 0.0)
    assert rows == []
    assert note.startswith("1% more of a resource changes nobody's tasks, as far as is known. ")
    assert note.endswith("1 of 1 kinds of nodes and resources have no derivative; 0 of these were solved with 1% more.")


def test_every_solve_of_a_report_has_its_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, solve = set(), fo.mechanisms.Mechanism.solve

    def solved(self: fo.mechanisms.Mechanism, cluster: fo.Cluster, tol: float | None = None) -> fo.Allocation:
        asked.add(tol)
        return solve(self, cluster, tol)

    monkeypatch.setattr(fo.mechanisms.Mechanism, "solve", solved)
    standing(teams(), requested=["alpha=3"], tol=1e-8)
    assert asked == {1e-8}


@pytest.mark.parametrize("mechanism", ["drfh", "alphapf-vds"])
def test_at_round_numbers_there_are_one_sided_gains(mechanism: str) -> None:
    """Twenty nodes on which no derivative exists: what 1% more adds is solved, as far as there is time."""
    rng, state = np.random.default_rng(4), State(mechanism, 2.0)
    capacity = np.array([[8, 32], [16, 64], [32, 128]])[rng.integers(0, 3, 20)]
    demand = rng.choice([1, 2, 4, 8], (6, 2)) * np.array([1, 2])
    cluster = fo.Cluster(capacity, demand, max_tasks=rng.choice([10, 20, 50, np.inf], 6))
    found = standing(cluster, state, tol=1e-9)
    rule, row = found.session.mechanism(state), found.margins.iloc[0]
    assert found.session.allocation(state).tol == 1e-9
    more = cluster.capacity.copy()
    kind = int(str(row["nodes"]).split()[0].removeprefix("server")) - 1
    more[(cluster.capacity == cluster.capacity[kind]).all(axis=1), cluster.resources.index(row["resource"])] *= 1.01
    gain = (
        rule.solve(cluster.replace(capacity=more), 1e-9).user_tasks.sum() - rule.solve(cluster, 1e-9).user_tasks.sum()
    )
    assert row["tasks more"] == pytest.approx(gain, rel=1e-4)
    [(unknown, solved)] = re.findall(r" (\d+) of \d+ kinds .* derivative; (\d+) of these", found.margins_note)
    assert unknown == solved
    kept, answer = found.session.edited(state), found.session.allocation(state)
    none, note = margins(found.session.start, kept, answer, rule, 0.0)
    assert len(none) < len(found.margins)
    assert " 0 of these were solved with 1% more." in note


@pytest.mark.parametrize("mechanism", ["alphapf-vds", "drfh", "alpha-fair"])
def test_a_little_more_is_what_solving_again_gives(mechanism: str) -> None:
    """Derivatives against differences, by kind of node; the two nodes of a kind get more together."""
    cluster, state, step = teams(), State(mechanism, 2.0), 1e-5
    found = standing(cluster, state)
    rule, answer = found.session.mechanism(state), found.session.allocation(state).arrays.user_tasks
    assert len(found.margins) > 0
    for row in found.margins.itertuples():
        at = np.array([name.startswith(str(row.nodes)) for name in cluster.servers])
        assert row.count == sum(at)
        factor = 1 + step * np.outer(at, np.array(cluster.resources) == row.resource)
        solved = rule.solve(cluster.replace(capacity=cluster.capacity * factor), tol=1e-10).arrays.user_tasks
        gain = (solved - answer) * 0.01 / step
        assert row[4] == pytest.approx(gain.sum(), rel=1e-2, abs=1e-5)
        first = cluster.users.index(row[5].partition(" +")[0])
        assert gain[first] == pytest.approx(gain.max(), rel=1e-2)
    assert found.margins["tasks more"].is_monotonic_decreasing


def test_changes() -> None:
    found = standing(teams(), requested=["weight.web=2", "nodes.node=+1", "alpha=3"])
    assert found.changes is not None
    changed = fo.Cluster([[8, 16]] * 3 + [[4, 64]], teams().demand, [2, 2, 2], max_tasks=teams().max_tasks)
    table = found.changes.set_index("user").loc[list(teams().users)]
    assert_allclose(table["after"], fo.AlphaPFVDS(3).solve(changed).arrays.user_tasks, rtol=1e-6)
    assert_allclose(table["change"], table["after"] - ENTITLED)
    assert found.changes["change"].abs().is_monotonic_decreasing
    assert found.measures["mechanism"].tolist() == ["alphaPF-VDS(alpha=1)", "alphaPF-VDS(alpha=3)"]


@pytest.mark.parametrize(
    ("asked", "edits"),
    [
        (["weight.batch/any=2.5"], {"users/2/weight": 2.5}),
        (["weight.web=0.5"], {"users/0/weight": 0.5, "users/1/weight": 0.5}),
        (["nodes.node-2=-1"], {"servers/0/count": 1}),
        (["nodes.big=7", "nodes.big=+1"], {"servers/1/count": 8}),
        (["nodes.big==7", "alpha=inf"], {"servers/1/count": 7}),
    ],
)
def test_what_if(asked: list[str], edits: dict[str, object]) -> None:
    made = what_if(Start.of(teams()), State(), asked)
    assert (made.edits, made.alpha) == (edits, math.inf if "alpha=inf" in asked else 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weight.nobody=2", "there is no namespace, account or user 'nobody'"),
        ("weight.web=x", "write a number"),
        ("weight.web=0", "weight"),
        ("nodes.big=+x", "'\\+x' is no number of nodes"),
        ("nodes.big=-5", "that would be -4 nodes, of 1 now"),
        ("nodes.none=1", "there are no nodes 'none'"),
        ("nodes.big=+100000", "that would be 100001 nodes, of 1 now"),
        ("alpha=-1", "alpha is -1"),
        *((text, f"--what-if {text}: write weight") for text in ("weight=2", "x", "=", "")),
    ],
)
def test_what_cannot_be(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        standing(teams(), requested=[text])


@pytest.mark.parametrize(("runs", "below"), [(20, 0.0), (19, 1.1), (21, 0.0)])
def test_a_little_below_is_not_below(runs: int, below: float) -> None:
    cluster = fo.Cluster([[20.1]], [[1]])
    found = standing(cluster, snapshot=running(cluster, [[runs]]))
    assert [*found.users["below"], *found.groups["below"]] == pytest.approx([below] * 2)


def test_users_who_come_with_a_change_or_go() -> None:
    """Edits of the state hold before and after; whom one of them switches off is in neither."""
    found = standing(teams(), State(edits={"users/1/on": False}), requested=["alpha=2"])
    assert found.changes is not None
    assert sorted(found.changes["user"]) == ["batch/any", "web/small"]


def test_what_fails_is_said_and_so_are_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: fo.TSF, *_: object, **__: object) -> None:
        raise SolverError("not today")

    monkeypatch.setattr(fo.TSF, "solve", fails)
    found = standing(teams(), requested=["alpha=2"])
    assert "TSF" not in found.users
    first, failed, after = found.notes
    assert first.startswith("Certified (tolerance ")
    assert failed == "TSF: not today"
    assert after.startswith("After the change: Certified (tolerance ")
