"""Elastic responses: leverage, equilibria, trees, what is sent, and the plain rounds that stand in."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import fairopt as fo
from fairopt.base import loops
from fairopt.core.game.elastic import elastic, jump
from fairopt.core.game.response import respond
from fairopt.core.game.rounds import ALPHA_FAIR, State, Sweeps, leverage, settle
from fairopt.game.orders import Network, rounds
from fairopt.model._arrays import Array
from fairopt.workloads import open_source

from .clusters import equations


def game(cluster: fo.Cluster, alpha: float) -> tuple[Sweeps, State]:
    """The game on a cluster, at the start that is used."""
    method = equations(cluster, alpha)
    sweeps = Sweeps(method, alpha)
    return sweeps, sweeps.start(method.begin(0.3))


def chain(servers: int, seed: int) -> fo.Cluster:
    """User n may use servers n and n + 1: a tree."""
    rng = np.random.default_rng(seed)
    eligible = np.eye(servers - 1, servers, dtype=bool) | np.eye(servers - 1, servers, 1, dtype=bool)
    return fo.Cluster(rng.uniform(1, 5, (servers, 1)), rng.uniform(1, 5, (servers - 1, 1)), eligible=eligible)


#: Of the utility `-exp(-t)`, whose marginal utility is `exp(-t)`.
SATURATING = np.array([np.exp(np.linspace(-12, 6, 20_000)), np.linspace(-12, 6, 20_000)])


@pytest.mark.parametrize(
    ("alpha", "curve"), [(0.5, ALPHA_FAIR), (1.0, ALPHA_FAIR), (3.0, ALPHA_FAIR), (1.0, SATURATING), (2.0, SATURATING)]
)
def test_leverage_is_the_derivative_of_a_response_in_its_line(
    alpha: float, curve: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several resources are full: with one the matrix of the formula is a number, and hardly anything of it shows."""
    monkeypatch.setattr(loops._MODE, "running", True)  # the package calls no loop alone that this would compile
    rng = np.random.default_rng(3)
    users, resources = 12, 3
    use = rng.uniform(0.01, 1, (users, resources)) ** 3
    per_task, gain = use * rng.uniform(0.5, 2, users)[:, None], np.log(rng.uniform(0.5, 2, users))
    room = np.full(users, np.inf)
    line = rng.uniform(0.01, 0.1, users)

    def tasks(given: Array, q: Array) -> Array:
        found = np.empty(users)
        respond(alpha, gain, per_task, use, given, room, q, found, 0.0, curve)
        return found

    q = np.zeros(resources)
    answer = tasks(line, q)
    kept = leverage(alpha, per_task, use, line, room, q, answer, curve)
    served = np.flatnonzero(answer > 1e-3)
    assert len(served) > 2
    assert np.isfinite(q).sum() > 1
    for n in served:
        more = line.copy()
        more[n] += 1e-6
        np.testing.assert_allclose((tasks(more, q.copy())[n] - answer[n]) / 1e-6, kept[n] - 1, atol=1e-4)
    assert (kept[answer == 0] == 1).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_a_tree_takes_a_handful_of_rounds_without_caps(alpha: float) -> None:
    for seed in range(3):
        sweeps, state = game(chain(20, seed), alpha)
        free = elastic(sweeps, state, cap=1e9, least=1e9, top=1e9, highest=1e9)
        assert any(change <= 1e-7 for change, *_ in islice(free, 20))
        assert sweeps.requested(state) <= 1e-6


@pytest.mark.parametrize(
    ("source", "draw", "alpha", "most"),
    [
        ("lognormal?users=60&servers=25", [41, 407], 1.0, 1000),
        ("lognormal?users=60&servers=25", [41, 507], 1.1, 500),
        ("bitbrains-like?vms=300&servers=20", [25], 3.0, 300),
    ],
)
def test_slow_games_end(source: str, draw: list[int], alpha: float, most: int) -> None:
    """Drifts while surplus pairs leave, for which caps up to a thousand were not enough; the last digits of an
    equilibrium that is nearly singular: without accelerated rounds, from the state of the least change, 2,400; and one
    pair after another of thousands: as long as each of them was progress elastic rounds went on, for more than 600."""
    shared = open_source(source, rng=np.random.default_rng(draw)).cluster
    assert not fo.best_response(shared, alpha, max_rounds=most).flagged


@pytest.mark.parametrize(("draw", "most"), [(720, 40), (507, 400)], ids=["shrinks", "jumps taken back"])
def test_drifts_are_jumped_along(draw: int, most: int) -> None:
    """One that shrinks by a part of itself a round took 60 rounds where only steady ones were. After jumps that were
    taken back, each a fourth of the one before, a plain phase lets them begin anew: else more than 1,000."""
    shared = open_source("lognormal?users=20&servers=10", rng=np.random.default_rng([41, draw])).cluster
    assert not fo.best_response(shared, 8.0, max_rounds=most, throw=False).flagged


def test_a_jammed_drift_goes_on_until_a_pair_is_empty() -> None:
    """That of a fifth of its tasks a round: for 5 rounds, where others go on for 20."""
    sweeps, state = game(open_source("lognormal?users=6&servers=3", rng=np.random.default_rng(5)).cluster, 2.0)
    for _ in range(2):
        sweeps.gauss_seidel(state)
    part = (state.tasks / state.total[sweeps.method.user])[sweeps.pairs]
    falls = int(np.where(part > 0, part, np.inf).argmin())
    step = np.zeros(len(part))
    step[falls] = -part[falls] / 5
    assert jump(sweeps, state, step, np.array([*[part[falls] ** 2 / 25] * 3, 0.0]), np.zeros(len(part)), np.inf)
    assert ((state.tasks[sweeps.pairs] > 1e-12) == ((part > 0) & (np.arange(len(part)) != falls))).all()


def test_a_look_ends_at_the_first_server_that_would_change_more_than_enough() -> None:
    sweeps, state = game(open_source("lognormal?users=12&servers=6", rng=np.random.default_rng(1)).cluster, 2.0)
    for _ in range(5):
        sweeps.gauss_seidel(state)
    before, whole = state.log_price.copy(), sweeps.requested(state)
    state.log_price[:] = before
    for enough in (0.9 * whole, 0.1 * whole):
        assert enough < sweeps.requested(state, enough) <= whole * (1 + 1e-9)
        np.testing.assert_array_equal(state.log_price, before)
    assert sweeps.requested(state, whole * 1.1) == pytest.approx(whole)
    assert (state.log_price != before).any()


def test_what_is_sent_is_counted() -> None:
    """Two plain rounds tell a number of each user in common, others three; servers share 7 sums up a tree, 1 down."""
    eligible = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool)
    shared = fo.Cluster([[2.0], [3.0], [4.0]], [[1.0], [2.0], [3.0]], eligible=eligible)
    found = fo.best_response(shared, 2.0, tol=1e-12, max_rounds=4, throw=False)
    assert found.trace is not None
    frame = found.trace.frame.diff().fillna(found.trace.frame)
    common, tree = 2 * (2 + 1), 2
    assert frame["messages"].tolist()[:2] == [4 + 2 * tree] * 2  # servers 1 and 3 have nobody in common
    assert frame["numbers"].tolist()[:2] == [common + 8 * tree] * 2
    assert (frame["numbers"].iloc[2:] == 3 * common + 8 * tree).all()


def test_never_many_more_rounds_than_in_cyclic_order() -> None:
    worse = []
    for seed in range(6):
        for name, alpha in (("lognormal?users=10&servers=5", 0.5), ("lognormal?users=10&servers=5&density=0.5", 2.0)):
            shared = open_source(name, rng=np.random.default_rng([7, seed])).cluster
            taken = [
                fo.best_response(shared, alpha, order=order, max_rounds=3000).trace.frame.index[-1]  # type: ignore[union-attr]
                for order in ("elastic", "cyclic")
            ]
            worse.append(taken[0] / taken[1])
    assert np.median(worse) < 0.7
    assert max(worse) <= 1.5


def test_plain_rounds_go_on_where_they_ended_if_elastic_ones_gain_nothing() -> None:
    """Wherever elastic ones went: the plain ones are those of cyclic order, all in a row."""
    sweeps, state = game(open_source("lognormal?users=20&servers=10", rng=np.random.default_rng(2)).cluster, 0.5)
    plain = State(*(array.copy() for array in state))
    one = elastic(sweeps, state, patience=1)
    for _ in range(2):
        assert next(one)[1] == 1
        sweeps.gauss_seidel(plain)
    np.testing.assert_array_equal(state.tasks, plain.tasks)
    sent = set()
    while (told := next(one)[1:]) != (1, 8):
        state.tasks[:] *= 0.01
        sent.add(told)
    assert sent == {(3, 8), (1, 40)}, "numbers of each user in common, and up and down a tree"
    np.testing.assert_array_equal(state.tasks, plain.tasks)


def test_the_potential_never_falls_at_once_at_alpha_one() -> None:
    """With one part in the most servers of a user, which is the default."""
    shared = open_source("lognormal?users=8&servers=5", rng=np.random.default_rng(4)).cluster
    sweeps, state = game(shared, 1.0)
    at_once = rounds("jacobi", sweeps, state, np.random.default_rng(0), None, Network())
    values = [float(np.log(state.total).sum())]
    for _ in range(30):
        next(at_once)
        values.append(float(np.log(state.total).sum()))
    assert (np.diff(values) >= -1e-12).all()


def test_where_all_servers_drift_caps_grow() -> None:
    """221 rounds; by caps that stay at 8 none of 1,000 is the last."""
    shared = open_source("lognormal?users=100&servers=20", rng=np.random.default_rng([41, 411])).cluster
    found = fo.best_response(shared, 2.0, max_rounds=700)
    assert found.certify().passes(1e-6)


@pytest.mark.parametrize(("most", "enough", "taken"), [(5, 0.1, 2), (5, 0.0, 3), (1, 0.1, 1), (5, 1.0, 1)])
def test_rounds_end_where_they_change_little(most: int, enough: float, taken: int) -> None:
    game = iter([(0.5, 1), (0.1, 1), (0.0, 1), (0.0, 1)])
    assert settle(game, most, enough) == taken
