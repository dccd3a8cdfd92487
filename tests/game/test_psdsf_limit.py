"""PS-DSF with zero demands: the limit of alphaPF-VDS where prices decide it, and a note where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from families import in_another_order

import fairopt as fo
from fairopt.core.game import entropy_homotopy, psdsf
from fairopt.workloads import google_like

from .clusters import equations, integers


def sparse_demands(seed: int, users: int = 30, servers: int = 8) -> fo.Cluster:
    """Demands over two decades; a fifth of the users do without one of three resources."""
    rng = np.random.default_rng(seed)
    demand = 10 ** rng.uniform(-1, 1, (users, 3))
    without = rng.permutation(users)[: users // 5]
    demand[without, rng.integers(0, 3, len(without))] = 0.0
    return fo.Cluster(30 * rng.lognormal(0, 0.6, (servers, 3)), demand, rng.uniform(0.5, 2, users))


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_alpha_tends_to_it(seed: int) -> None:
    """Equilibria for three alphas, two hundred times smaller than where the engine goes, extrapolated."""
    shared = sparse_demands(seed)
    answer = fo.PSDSF().solve(shared)
    assert answer.stats.solver == "equilibria followed to infinity"
    assert not answer.notes
    totals = []
    for alpha in (512.0, 1024.0, 2048.0):
        q = equations(shared, alpha)
        with np.errstate(all="ignore"):
            *_, place = entropy_homotopy.follow(q, 1e-5 / alpha, 2000)
        totals.append(np.add.reduceat(place.here.tasks, q.start[:-1]) * q.largest)
    apart = [float(np.abs(found / answer.arrays.user_tasks - 1).max()) for found in totals]
    assert apart[2] < 0.6 * apart[1] < 0.36 * apart[0]
    extrapolated = (8 * totals[2] - 6 * totals[1] + totals[0]) / 3
    np.testing.assert_allclose(extrapolated, answer.arrays.user_tasks, rtol=1e-6)


def test_where_prices_do_not_decide_it_is_not_called_the_limit() -> None:
    """Two users short of CPU may run on either server; what memory they leave there is another two users'.

    Memory is dearer to its user on the second server, so that the second user, who takes more of it, runs on the first
    at every alpha. But memory costs so much less than CPU that this is soon below rounding.
    """
    demand, weight = [[1, 1], [1, 3], [0, 1], [0, 1]], [8, 8, 1, 3]
    shared = fo.Cluster([[4, 20], [4, 20]], demand, weight, eligible=[[1, 1], [1, 1], [1, 0], [0, 1]])
    for alpha in (4.0, 8.0):
        found = fo.AlphaPFVDS(alpha).solve(shared, 1e-9).arrays.user_tasks
        np.testing.assert_allclose(found, [4, 4, 8, 16], rtol=2e-3)
    answer = fo.PSDSF().solve(shared)
    assert answer.certify().passes(1e-6)
    assert np.abs(answer.arrays.user_tasks - [4, 4, 8, 16]).max() < 1e-5 or any(
        "not proved to be the limit" in n for n in answer.notes
    )
    q = equations(shared, 64.0)
    with np.errstate(all="ignore"):
        ends = psdsf.furthest(q)
        place = ends.last
        assert psdsf.solved(place, 1e-3) is None


@pytest.mark.parametrize("seed", [8, 9])
def test_a_loose_tolerance_does_not_make_it_the_limit(seed: int) -> None:
    """What prices do not decide they do not decide to 5% either."""
    assert any("not proved to be the limit" in note for note in fo.PSDSF().solve(sparse_demands(seed), 0.05).notes)


#: Past a bend of the seventh longer and longer steps went on along a straight stretch to temperature zero.
@pytest.mark.parametrize(("seed", "users", "servers"), [(0, 12, 5), (1, 12, 5), (7, 12, 5), (0, 60, 25)])
def test_one_of_many_allocations_but_always_the_same(seed: int, users: int, servers: int) -> None:
    """Small integers. With many zero demands nothing is followed: best responses answer, which jump along drifts."""
    shared = integers(seed, users, servers)
    answer = fo.PSDSF().solve(shared)
    assert answer.certify().passes(1e-6)
    if users == 60:
        assert psdsf.furthest(equations(shared, 64.0)) is None
        assert any("not proved to be the limit" in note for note in answer.notes)
    moved, (order, _) = in_another_order(shared, np.random.default_rng(0))
    np.testing.assert_allclose(fo.PSDSF().solve(moved).arrays.user_tasks, answer.arrays.user_tasks[order], rtol=1e-9)


def test_few_users_with_zero_demands_begin_near_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limit as by the whole way, by a fifth of the systems at most."""
    cluster = google_like(users=300, servers=12583, rng=np.random.default_rng(1)).cluster
    near = fo.PSDSF().solve(cluster)
    monkeypatch.setattr(psdsf, "_beginning", lambda *_: None)
    far = fo.PSDSF().solve(cluster)
    assert near.stats.solver == far.stats.solver == "equilibria followed to infinity"
    assert near.stats.rounds < 0.2 * far.stats.rounds
    np.testing.assert_allclose(near.arrays.user_tasks, far.arrays.user_tasks, rtol=1e-8)


@pytest.mark.parametrize(("seed", "resources", "candidates"), [(1, 16, 4), (2, 8, 10)])
def test_states_that_wander_end_early(
    seed: int, resources: int, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 40% zero demands: the first wanders for ten thousand rounds; the second converges in 218, and plays on."""
    rng = np.random.default_rng(seed)
    capacity, demand = rng.lognormal(0, 0.5, (20, resources)), rng.lognormal(0, 0.5, (80, resources))
    shared = fo.Cluster(capacity, np.where(rng.random(demand.shape) > 0.4, demand, 0.0))
    monkeypatch.setattr(psdsf, "_PATIENCE", 0)
    monkeypatch.setattr(psdsf, "_LEAST_ROUNDS", 200)
    assert len(list(psdsf.limit(equations(shared, 64.0), 1e-6))) == candidates
