"""Floors: answers by hand, answers without rounding, what cannot be guaranteed, and who does not know them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from families import EXAMPLE, draw
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import clusters

import fairopt as fo
from fairopt.certificates import blocking, certify, rational
from fairopt.core.engines.maxmin import met
from fairopt.errors import DataError
from fairopt.model.criterion import Criterion, criterion
from fairopt.model.polytope import Polytope
from fairopt.model.problem import Problem

#: On the CPU's face x + 3 y = 9: CEEI is (45/11, 18/11), DRF (3, 2), and benchmarks are (9/4, 3/2).
NAMED = EXAMPLE.replace(users=["A", "B"])
#: Twice the same without benefit of merging: the users' placement differs.
PLACED = fo.Cluster([[9, 18], [9, 18]], [[1, 4], [3, 1], [3, 1]], eligible=[[1, 1], [1, 0], [0, 1]])


@pytest.mark.parametrize("engine", [None, "native", "declarative"])
def test_by_hand(engine: str | None) -> None:
    """B is lifted to its floor by alpha = 2, and A by max-min, of which fractions tell more: the other has the rest."""
    two = fo.GuaranteedAlphaFair(2, (0, 4 / 3)).solve(NAMED, engine=engine)
    assert_allclose(two.arrays.user_tasks, [3, 2], rtol=1e-6)
    maxmin = fo.GuaranteedAlphaFair(np.inf, (1.6, 0)).solve(NAMED, engine=engine)
    assert_allclose(maxmin.arrays.user_tasks, [3.6, 1.8], rtol=1e-6)


def floored(alpha: float, floor: object, cluster: fo.Cluster = NAMED) -> Criterion:
    return criterion(cluster, cluster.dominant_share_per_task, alpha, "servers", floor=np.array(floor, dtype=float))


@pytest.mark.exact
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0, 50.0, np.inf])
def test_the_judge_knows_floors(alpha: float) -> None:
    """The right answer passes; without floors, above a floor that binds, and below it nothing does."""
    right = fo.GuaranteedAlphaFair(alpha, (0, 1.6)).solve(NAMED)
    rule = floored(alpha, [0, 2.4])
    assert_allclose(right.arrays.user_tasks, [1.8, 2.4], rtol=1e-9)
    assert certify(NAMED, right.tasks, rule)[0].passes(1e-9)
    assert not certify(NAMED, right.tasks, floored(alpha, [0, 0]))[0].passes(1e-3)
    without = fo.AlphaFair(alpha).solve(NAMED)
    found = certify(NAMED, without.tasks, rule, without.log_prices)[0]
    assert found.feasibility == pytest.approx(1 - without.arrays.user_tasks[1] / 2.4)
    assert found.worst == "largest for user 'B', below its floor"
    above = np.array([[1.65], [2.45]])
    judged = certify(NAMED, above, rule)[0]
    assert judged.feasibility == 0
    # The floor would have to be so much higher; under max-min A could have what B has above it.
    assert judged.optimality == pytest.approx(3 * 0.05 / 1.65 if np.isinf(alpha) else 0.05 / 2.4)
    # Idle capacity, which A could use.
    assert certify(NAMED, np.array([[1.7], [2.4]]), rule)[0].optimality > 0.01


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("more", [1e-4, 1e-2])
def test_what_is_above_a_floor_can_be_taken(more: float, given: bool) -> None:
    """Max-min over servers: the second user has more than its floor, at the expense of the others, who are below it."""
    mechanism = fo.GuaranteedAlphaFair(np.inf, (0, 2.6, 0))
    right = mechanism.solve(PLACED)
    prices = right.log_prices if given else None
    certificate, proof = mechanism.certify(PLACED, right.tasks, prices)
    assert certificate.passes(1e-7)
    assert (proof is not None) == given  # by prices alone
    cpu = 3 * more * 2.6
    part = 1 - cpu / 10.2  # of what the others have on both servers
    tasks = np.array([[1.2 - cpu, 3.4 * part - 1.2 + cpu], [2.6 * (1 + more), 0], [0, 6.8 / 3 * part]])
    found = mechanism.certify(PLACED, tasks, prices)[0]
    assert found.feasibility < 1e-9
    assert 0.4 * cpu / 3.4 < found.optimality < 2.2 * cpu / 3.4
    assert fo.AlphaFair(np.inf).certify(PLACED, right.tasks, prices)[0].optimality > 0.01


@settings(max_examples=40)
@given(
    clusters(styles=("nice",), max_users=4, max_servers=3, max_resources=2) | clusters(styles=("wide",), max_users=4),
    st.sampled_from([0.3, 0.9, 1.0, 1.3]),
)
def test_floors_of_small_and_of_wide_clusters(cluster: fo.Cluster, part: float) -> None:
    """Floors are kept, or what is in their way is said; exact optima know none."""
    mechanism = fo.GuaranteedAlphaFair(np.inf, part)
    rule = mechanism.criterion(cluster)
    assert rational.leximin(cluster, rule, rule.limits(cluster)) is None or not rule.floor.any()
    said, tasks = "", rule.floor
    try:
        tasks = mechanism.solve(cluster).arrays.user_tasks
    except DataError as error:
        said = str(error)
    assert (tasks >= rule.floor * (1 - 2e-6)).all()
    assert not said or (part > 1 and re.search(r"the floors (cannot be met together|exhaust what)", said))


@pytest.mark.parametrize("seed", range(4))
def test_who_holds_whom(seed: int) -> None:
    """Explanations of max-min know floors: nobody is left unexplained."""
    answer = fo.GuaranteedAlphaFair(np.inf).solve(draw("plain", seed, 6, 3, 3))
    prices = None if answer.log_prices is None else np.exp(answer.log_prices)
    found = blocking(answer.cluster, answer.tasks, answer.criterion, prices, 1e-6)
    assert not (found.held_by == "unproved").any()


@settings(max_examples=40)
@given(clusters(styles=("plain", "nice")), st.floats(1.0, 4.0))
def test_what_cannot_be_guaranteed(cluster: fo.Cluster, part: float) -> None:
    """The part that is named can be had, and a thousandth more cannot."""
    mechanism = fo.GuaranteedAlphaFair(1, part)
    floor = mechanism.criterion(cluster).floor
    polytope = Polytope(cluster, cluster.max_tasks)
    if not len(polytope.users):
        return
    most, cost, _ = met(polytope, floor[polytope.users])
    assert most >= 1 / part * (1 - 1e-9)
    x, s = cp.Variable(cluster.shape[:2], nonneg=True), cp.Variable()
    total = cp.sum(x, axis=1)
    rules = [x.T @ cluster.demand <= cluster.capacity, x <= 1e6 * cluster.usable]
    rules += [total >= s * floor, total <= np.minimum(cluster.max_tasks, 1e6)]
    cp.Problem(cp.Maximize(s), rules).solve(solver="CLARABEL")
    if most > 1 and np.isfinite(cluster.max_tasks).any():  # somebody may have its limit
        assert s.value >= 1 - 1e-6
        return
    assert cost.sum() == pytest.approx(1)
    assert most == pytest.approx(s.value, rel=1e-5)
    if most > 1 + 1e-6:
        assert (mechanism.solve(cluster).arrays.user_tasks >= floor * (1 - 1e-6)).all()
    if most < 1 - 1e-6:
        with pytest.raises(DataError, match=f"cannot be met together, at most {most * (1 - 5e-6):.6g} of each"):
            mechanism.solve(cluster)


def test_who_asks_for_too_much_is_named() -> None:
    # 3.6 and 2.1 tasks take 3.6 and 6.3 of 9 CPU; A alone could run 4.5 tasks, not 6.
    with pytest.raises(DataError, match=r"at most 0\.909086 of each: .* user 'B' for 64%, 'A' for 36%\. Choose floors"):
        fo.GuaranteedAlphaFair(2, (1.6, 1.4)).solve(NAMED)
    with pytest.raises(DataError, match=r"at most 0\.749996 of each: .* user 'A' for 100%\. Choose"):
        fo.GuaranteedAlphaFair(2, (8 / 3, 0)).solve(NAMED)
    with pytest.raises(DataError, match="exhaust what user 'B' needs, who has no floor and must get tasks > 0"):
        fo.GuaranteedAlphaFair(2, (2, 0)).solve(NAMED)
    assert fo.GuaranteedAlphaFair(0, (2, 0)).solve(NAMED).arrays.user_tasks[0] == pytest.approx(4.5)


class _Two(fo.AlphaFair):
    """Two tasks for everybody, who can run them or not."""

    def criterion(self, cluster: fo.Cluster) -> Criterion:
        return floored(2.0, np.full(len(cluster.users), 2.0), cluster)


def test_floors_of_ones_own() -> None:
    assert (_Two().solve(NAMED).arrays.user_tasks >= 2 - 1e-6).all()
    with pytest.raises(DataError, match=r"user 'B' has a floor of 2 tasks and can run nothing: give it a server"):
        _Two().solve(NAMED.replace(eligible=[[1], [0]]))
    with pytest.raises(DataError, match=r"the floor 2 of user 'B' is above the most tasks .* of at most 1"):
        _Two().solve(NAMED.replace(max_tasks=[9, 1]))


@pytest.mark.parametrize("scope", ["game", "per_server"])
def test_servers_know_no_floors(scope: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    share = 1 / NAMED.gamma
    plain = criterion(NAMED, share, np.inf, scope, floor=np.zeros(2))
    message = f"floors are for .*, not for the scope '{scope}'"
    with pytest.raises(DataError, match=message):
        criterion(NAMED, share, np.inf, scope, floor=np.ones(2))
    # `dataclasses.replace` asks nobody; `solve` does.
    monkeypatch.setattr(fo.AlphaPFVDS, "criterion", lambda *_: replace(plain, floor=np.ones(2)))
    with pytest.raises(DataError, match=message):
        fo.AlphaPFVDS(2).solve(NAMED)


@pytest.mark.parametrize("wrong", [[1, -1], [np.nan, 1], [np.inf, 1], [1, 2, 3], [[1.0]], -1.0, "ab"])
def test_what_is_no_floor_and_no_part(wrong: Any) -> None:
    with pytest.raises(DataError, match="floor"):
        criterion(NAMED, np.ones(2), 1, "servers", floor=wrong)
    with pytest.raises(DataError, match="part"):
        fo.GuaranteedAlphaFair(1, wrong).solve(NAMED)


def test_steep_utilities_need_no_cvxpy() -> None:
    """Where one unit of welfare does not fit all users the game's equations stand in, floors as limits."""
    cluster, mechanism = draw("traces", 0, 5, 4, 3), fo.GuaranteedAlphaFair(50, 0.8)
    problem = Problem(cluster, mechanism.criterion(cluster))
    assert len(list(mechanism.solutions(problem, "native", 1e-6, None))) >= 2
    assert mechanism.solve(cluster).stats.engine == "native"


@pytest.mark.parametrize("alpha", [1, 2, 5, 20])
def test_floors_that_leave_next_to_nothing(alpha: float) -> None:
    """Of a resource that all but one need floors leave a ten-thousandth."""
    demand = [[1, 3, 0], [1, 3, 2], [0, 4, 0], [4, 0, 4], [1, 3, 3]]
    cluster = fo.Cluster([[4, 5, 6]], demand, weight=[0.195, 999.6, 199.2, 0.203, 533.5])
    assert fo.GuaranteedAlphaFair(alpha).solve(cluster, engine="native").certificate.passes(1e-9)


def test_the_formula_is_there_by_name() -> None:
    problem = fo.GuaranteedAlphaFair(2, (0, 4 / 3)).problem(NAMED)
    problem.solve(solver="CLARABEL")
    assert set(problem.named) == {"capacity", "min_tasks"}
    assert_allclose(problem.user_tasks.value, [3, 2], rtol=1e-5)
    assert problem.named["min_tasks"].dual_value[0] > 1e-3
