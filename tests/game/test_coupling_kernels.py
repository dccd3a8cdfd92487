"""Compiled loops of games between the decoupled one and the real one, against the same formulas in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from fairopt.game.equilibrium import _coupling
from fairopt.game.equilibrium.coupling import CoupledGame

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SERVERS, RESOURCES = 5, 3
#: A part of a user's tasks counts as none from e^-60 on.
NOTHING = 60.0


@dataclass
class Pairs:
    """Users of one server up to all, and what kernels are told of their pairs."""

    rng: np.random.Generator
    start: Index
    server: Index
    user: Index

    def amounts(self) -> Array:
        """Use (pairs, resources): some need only one or two resources."""
        drawn = self.rng.lognormal(0, 1, (len(self.server), RESOURCES))
        drawn[self.rng.random(drawn.shape) < 0.3] = 0.0
        drawn[np.arange(len(drawn)), self.rng.integers(RESOURCES, size=len(drawn))] += 0.1
        return np.asarray(drawn)

    def shares(self) -> Array:
        """Of prices (pairs, resources); they sum to 1."""
        return self.rng.dirichlet(np.ones(RESOURCES), len(self.server))

    def below_highest(self, scale: float) -> Array:
        """Levels of pairs below the user's highest, which is 0 for one of its pairs."""
        drawn = self.rng.uniform(-scale, 0, len(self.server))
        return np.asarray(drawn - self.best(drawn)[self.user])

    def best(self, of_pairs: Array) -> Array:
        return np.asarray(np.maximum.reduceat(of_pairs, self.start[:-1]))

    def total(self, of_pairs: Array) -> Array:
        return np.asarray(np.add.reduceat(of_pairs, self.start[:-1]))


def pairs(seed: int, users: int = 12) -> Pairs:
    rng = np.random.default_rng(seed)
    chosen = [np.sort(rng.permutation(SERVERS)[: 1 + n % SERVERS]) for n in range(users)]
    counts = [len(servers) for servers in chosen]
    start = np.concatenate(([0], np.cumsum(counts)))
    return Pairs(rng, start, np.concatenate(chosen), np.repeat(np.arange(users), counts))


def game(p: Pairs, tau: float = 1.0, **known: object) -> CoupledGame:
    """One of which no more is known than what a part of it asks for."""
    made = CoupledGame.__new__(CoupledGame)
    row = np.ones((SERVERS, RESOURCES), dtype=bool)[: 1 + p.server.max()]
    made.q = SimpleNamespace(start=p.start, server=p.server, row=row, weight=np.ones(len(p.start) - 1), **known)
    made.tau = tau
    return made


def levels(p: Pairs, use: Array, log_gain: Array, price: Array, a: float) -> tuple[Array, Array, Array]:
    made = game(p, use=use, log_gain=log_gain)
    made.price, made.a = price, a
    return made._levels()


def carried(p: Pairs, share: Array, short: Array, rise: Array, a: float, tau: float) -> tuple[Array, Array]:
    made, origin = game(p, tau), game(p)
    made.risen, made.a = rise / a, a
    origin.share, origin.short, origin.highest = share, short, np.zeros(len(p.start) - 1)
    new_share, _, new_short = made._carried(origin)
    return new_share, new_short


def choices(p: Pairs, per_task: Array, short: Array, highest: Array, limit: Array, tau: float) -> CoupledGame:
    made = game(p, tau, per_task=per_task, limit=limit, limited=np.flatnonzero(np.isfinite(limit)))
    made.short, made.highest = short, highest
    made._choose()
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("a", [0.1, 3.0, 1e3, 1e5])
def test_levels(a: float, seed: int) -> None:
    """`log gain - log(sum_r D v^a)/a`; at large a most pairs cost next to nothing beside the server's dearest."""
    p = pairs(seed)
    use, log_gain, price = p.amounts(), p.rng.normal(0, 1, len(p.server)), p.rng.normal(0, 3, (SERVERS, RESOURCES))
    with np.errstate(divide="ignore"):
        terms = np.log(use) + a * price[p.server]
    norm = logsumexp(terms, axis=1)
    level = log_gain - norm / a
    share, highest, short = levels(p, use, log_gain, price, a)
    digits = 1e-15 * max(100, np.abs(terms[use > 0]).max())  # those of a log, in its exponential
    np.testing.assert_allclose(share, np.exp(terms - norm[:, None]), rtol=digits, atol=1e-27)
    np.testing.assert_allclose(highest, p.best(level), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(short, level - p.best(level)[p.user], rtol=1e-12, atol=1e-12)
    underflow = norm - a * price.max(axis=1)[p.server] < np.log(_coupling._TINY)
    assert underflow.any() == (a >= 1000)  # both ways to compute a level are taken
    assert not underflow.all()


@pytest.mark.parametrize("gap", [640.0, 650.0, 728.0, 741.0, 1e4])
def test_levels_of_costs_that_underflow(gap: float) -> None:
    """Near e^-741 doubles have one digit left, and from e^-746 on none."""
    start, server = np.array([0, 1]), np.array([0])
    p = Pairs(np.random.default_rng(0), start, server, server)
    share, highest, short = levels(p, np.array([[0.0, 0.2, 0.8]]), np.array([2.0]), np.array([[0.0, -gap, -gap]]), 1.0)
    np.testing.assert_allclose(share, [[0, 0.2, 0.8]], rtol=1e-11)
    np.testing.assert_allclose(highest, 2.0 + gap, rtol=1e-14)
    assert short == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1e-9, 0.1, 2.0])
def test_carried_levels_are_those_at_the_new_prices(size: float, seed: int) -> None:
    p, a = pairs(seed), 4.0
    use, log_gain, price = p.amounts(), p.rng.normal(0, 1, len(p.server)), p.rng.normal(0, 1, (SERVERS, RESOURCES))
    rise = p.rng.normal(0, size, (SERVERS, RESOURCES))
    share, highest, short = levels(p, use, log_gain, price, a)
    new_share, new_short = carried(p, share, short, rise, a, tau=1e3)
    expected_share, expected_highest, expected_short = levels(p, use, log_gain, price + rise / a, a)
    np.testing.assert_allclose(new_share, expected_share, rtol=1e-12)
    np.testing.assert_allclose(
        new_short + highest[p.user], expected_short + expected_highest[p.user], rtol=1e-12, atol=1e-13
    )
    grown = np.log(np.sum(share * np.exp(rise)[p.server], axis=1))
    np.testing.assert_allclose(new_short, short - grown / a, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("rise", "log_growth"), [(1e-12, 1e-12), (-1e-12, -1e-12), (-50.0, -50.0), (30.0, 30.0)])
def test_small_and_large_rises_keep_their_digits(rise: float, log_growth: float) -> None:
    """By log(1 + growth) where the growth is small, and by the log of the sum where next to nothing is left."""
    start, server = np.array([0, 1]), np.array([0])
    p = Pairs(np.random.default_rng(0), start, server, server)
    share, short = carried(p, np.array([[0.2, 0.3, 0.5]]), np.zeros(1), np.full((1, RESOURCES), rise), 2.0, tau=1e3)
    np.testing.assert_allclose(short, -log_growth / 2.0, rtol=1e-14)
    np.testing.assert_allclose(share, [[0.2, 0.3, 0.5]], rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_of_pairs_with_next_to_nothing_a_bound_is_carried(seed: int) -> None:
    p, a, tau = pairs(seed, users=40), 4.0, 1e-3
    share, short = p.shares(), p.below_highest(3 * NOTHING * tau)
    rise = p.rng.normal(0, 0.02, (SERVERS, RESOURCES))
    new_share, new_short = carried(p, share, short, rise, a, tau)
    grown = np.exp(rise)[p.server] * share
    level = short - np.log(grown.sum(axis=1)) / a
    # Levels fall by no less than the least rise of the server, and by no more than the largest.
    bound, sure = short - rise.min(axis=1)[p.server] / a, short - rise.max(axis=1)[p.server] / a
    skipped = bound < (p.best(sure) - NOTHING * tau)[p.user]
    assert skipped.sum() > 10
    assert (~skipped).sum() > 10
    assert (level <= bound + 1e-15).all()
    np.testing.assert_allclose(new_short, np.where(skipped, bound, level), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(new_share[skipped], share[skipped])
    np.testing.assert_allclose(new_share[~skipped], (grown / grown.sum(axis=1)[:, None])[~skipped], rtol=1e-13)
    # Neither the bound nor the level itself would give a part that counts.
    for new in (new_short, level):
        assert ((new - p.best(new)[p.user])[skipped] < -NOTHING * tau).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tau", [0.5, 1e-2, 1e-6])
@pytest.mark.parametrize("limited", [False, True])
def test_choices(limited: bool, tau: float, seed: int) -> None:
    """`x = X softmax(level/tau)`, `log X = tau log sum e^(level/tau)`, bent below a limit."""
    p = pairs(seed, users=40)
    per_task, short, highest = p.amounts(), p.below_highest(2 * NOTHING * tau) + 0.3 * tau, p.rng.normal(0, 1, 40)
    near = p.rng.random(40) < 0.7 * limited
    limit = np.where(near, np.exp(highest + p.rng.normal(0, 3 * tau, 40)), np.inf)
    log_limit = np.log(limit)
    found = choices(p, per_task, short, highest, limit, tau)
    part, tasks, log_level = found.part, found.tasks, found.log_level

    lower = (short - p.best(short)[p.user]) / tau
    weight = np.where(lower > -NOTHING, np.exp(lower), 0.0)
    np.testing.assert_allclose(part, weight / p.total(weight)[p.user], rtol=1e-12)
    none = lower <= -NOTHING
    assert none.any()
    assert (part[none] == 0).all()
    assert (part[~none] > 0).all()
    assert (np.abs(lower[~none] + NOTHING) < 15).any()  # some are near the cut, on both sides
    assert (np.abs(lower[none] + NOTHING) < 15).any()
    expected = np.array([logsumexp(short[a:b] / tau) for a, b in zip(p.start, p.start[1:], strict=False)])
    choice, _, over, _ = found.of_users
    np.testing.assert_allclose(choice, expected, rtol=1e-12)
    np.testing.assert_allclose(log_level, highest + tau * expected, rtol=1e-12)
    assert near.any() == limited
    x = np.where(near, -tau * np.logaddexp(-log_level / tau, -log_limit / tau), log_level)
    np.testing.assert_allclose(tasks, part * np.exp(x)[p.user], rtol=1e-9)
    np.testing.assert_allclose(over, (log_level - log_limit) / tau, rtol=1e-8)
    np.testing.assert_allclose(found.kept, 1 / (1 + np.exp(over)), rtol=1e-12)
    assert (found.kept[~near] == 1).all()
    used = np.zeros_like(found.used)
    np.add.at(used, p.server, per_task * tasks[:, None])
    np.testing.assert_allclose(found.used, used, rtol=1e-12)


def test_far_above_a_limit_a_user_has_the_limit() -> None:
    start, server = np.array([0, 1]), np.array([0])
    p = Pairs(np.random.default_rng(0), start, server, server)
    found = choices(p, np.ones((1, RESOURCES)), np.zeros(1), np.array([5.0]), np.exp([2.0]), 1e-3)
    assert found.log_level == 5
    np.testing.assert_allclose(found.of_users[2], 3000)
    np.testing.assert_allclose(found.kept, np.exp(-700), rtol=1e-12)  # not 0
    np.testing.assert_allclose(found.tasks, np.exp(2), rtol=1e-14)
    np.testing.assert_allclose(found.used, np.exp(2), rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_matrix(seed: int) -> None:
    """`d log x_k = -share_k/tau + (1/tau - kept) sum_j part_j share_j`, in parts of what is used; less barriers."""
    p, tau, users = pairs(seed), 0.05, 12
    per_task, share, kept = p.amounts(), p.shares(), p.rng.random(users)
    full = p.rng.uniform(1, 2, (SERVERS, RESOURCES))
    part = p.rng.random(len(p.server)) * (p.rng.random(len(p.server)) < 0.7)
    part[p.start[:-1]] += 0.1
    part /= p.total(part)[p.user]
    assert (part == 0).any()
    tasks = part * p.rng.lognormal(0, 1, users)[p.user]
    share[part == 0] = np.inf  # nobody looks at pairs that have nothing
    before = p.rng.random((SERVERS * RESOURCES, SERVERS * RESOURCES))
    result = before.copy()
    barrier = p.rng.random((SERVERS, RESOURCES))
    _coupling.matrix(p.start, p.server, per_task, share, part, tasks, kept, full, tau, barrier, 0.5, result)

    own = np.zeros((len(p.server), SERVERS, RESOURCES))
    own[np.arange(len(p.server)), p.server] = np.where(part > 0, share.T, 0.0).T
    mean = np.add.reduceat(part[:, None, None] * own, p.start[:-1], axis=0)
    of_tasks = -own / tau + ((1 / tau - kept)[:, None, None] * mean)[p.user]
    expected = np.zeros((SERVERS, RESOURCES, SERVERS, RESOURCES))
    np.add.at(expected, p.server, (per_task * tasks[:, None])[:, :, None, None] * of_tasks[:, None])
    expected /= full[:, :, None, None]
    expected = expected.reshape(result.shape) - np.diag(0.5 * barrier.ravel())
    np.testing.assert_allclose(result - before, expected, rtol=1e-10, atol=1e-12)
