"""One server's best response: the compiled kernels against CVXPY, and against the conditions that define it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from families import some_zero

from fairopt.base import loops
from fairopt.core.game import response
from fairopt.core.game.response import fill, respond
from fairopt.core.game.rounds import ALPHA_FAIR, Sweeps
from fairopt.game.best_responses import best_response
from fairopt.model._arrays import Array
from fairopt.workloads import open_source

from .clusters import equations, integers

ALPHAS = [0.2, 0.5, 1.0, 2.0, 8.0, 64.0, np.inf]


@dataclass
class Server:
    """What one server sees. Users are in some unit of their own; `use` has 1 as its largest entry per user."""

    gain: Array
    gamma: Array
    use: Array
    elsewhere: Array
    room: Array
    residual: float = 0.0

    def respond(self, alpha: float, first: Array | None = None) -> tuple[Array, Array]:
        """Tasks and log level prices."""
        per_task = self.use / self.gamma[:, None]
        q = np.zeros(self.use.shape[1]) if first is None else first.copy()
        tasks = np.empty(len(self.gain))
        if np.isinf(alpha):
            fill(self.gain, per_task, self.elsewhere, self.room, q, tasks)
        else:
            self.residual = respond(
                alpha, np.log(self.gain), per_task, self.use, self.elsewhere, self.room, q, tasks, 0.0, ALPHA_FAIR
            )
        return tasks, q


def check(server: Server, alpha: float, tasks: Array, q: Array, tol: float = 1e-8) -> None:
    """The conditions in level form: feasible, priced resources used up, everybody at its level or at a bound."""
    assert np.isfinite(tasks).all()
    assert (tasks >= 0).all()
    assert (tasks <= server.room * (1 + 1e-12)).all()
    used = tasks @ (server.use / server.gamma[:, None])
    assert (used <= 1 + 1e-9).all()
    with np.errstate(divide="ignore"):
        if np.isinf(alpha):
            norm = np.where(server.use > 0, q, -np.inf).max(axis=1)
            part = (q > -np.inf).astype(float)
        else:
            paid = np.log(server.use) + alpha * q
            whole = np.logaddexp.reduce(paid, axis=1)
            norm, part = whole / alpha, np.exp(paid - np.where(whole > -np.inf, whole, 0.0)[:, None]).max(axis=0)
        # A resource may idle by as much as its price does not matter to anybody.
        np.testing.assert_array_less(np.maximum(1 - used, 0) * part, tol)
        off = np.log(server.elsewhere + tasks) - (np.log(server.gain) - norm)  # above 0: has more than its level
    has, more = tasks > 1e-9 * server.gamma, tasks < server.room * (1 - 1e-9)
    assert (off[more] >= -tol).all(), "somebody with room has less than its level"
    assert (off[has] <= tol).all(), "somebody with tasks has more than its level"


def drawn(rng: np.random.Generator, kind: str) -> Server:
    """A random server."""
    users, resources = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    if kind == "one user":
        users = 1
    if kind == "one resource":
        resources = 1
    if kind == "many resources":
        users, resources = 60, 8
    use = rng.uniform(0.05, 1, (users, resources))
    if kind in ("zeros", "rich", "many resources"):  # nobody who is served may need a resource
        use = some_zero(rng, use, 0.6)
    use /= use.max(axis=1, keepdims=True)
    gamma = rng.uniform(0.1, 1.0, users)
    elsewhere = rng.uniform(0.01, 1.0, users) * (rng.random(users) < 0.8)
    room = np.full(users, np.inf)
    if kind == "limits":
        room = gamma * rng.choice([0.0, 1e-6, 0.05, 0.2, np.inf], users)
    if kind == "rich":  # most have more elsewhere than anybody here would get
        elsewhere = np.where(rng.random(users) < 0.7, elsewhere + 50.0, elsewhere)
    return Server(rng.uniform(0.5, 2, users) * gamma, gamma, use, elsewhere, room)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", ["plain", "zeros", "limits", "rich", "one user", "one resource", "many resources"])
def test_response_meets_the_conditions(kind: str, alpha: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        server = drawn(rng, kind)
        tasks, q = server.respond(alpha)
        assert server.residual <= 1e-11
        check(server, alpha, tasks, q)


@pytest.mark.parametrize("alpha", [16.0, 64.0, 500.0])
def test_rounds_at_large_alpha_where_demands_are_zero(alpha: float) -> None:
    """Users with nothing to pay, on trial, do not make other resources' prices not a number."""
    for seed in range(4):
        method = equations(integers(seed, 30, 12), alpha)
        sweeps = Sweeps(method)
        with np.errstate(all="ignore"):
            state = sweeps.start(method.begin(0.3))
            changes = [sweeps.gauss_seidel(state) for _ in range(60)]
        assert np.isfinite(state.tasks).all()
        assert changes[-1] < 0.05
        assert method.exploitability(state.tasks, sweeps.log_price(state)) < 0.1


def test_a_dense_game_in_its_middle() -> None:
    """After 150 rounds few of 100 users are in on any server: one of the 20 was once solved to 2e-4 only."""
    rng = np.random.default_rng(np.random.SeedSequence([1, 2]))
    cluster = open_source("lognormal?users=100&servers=20", rng=rng).cluster
    found = best_response(cluster, 3.0, max_rounds=150, throw=False)
    method = equations(cluster, 3.0)
    polytope = method.polytope
    mine = polytope.fractions(found.tasks) * method.gamma
    total = np.add.reduceat(mine, method.start[:-1])
    for i in range(20):
        here = np.flatnonzero(polytope.pair_server == i)
        there = total[polytope.pair_user[here]] - mine[here]
        server = Server(
            np.exp(method.log_gain[here]), method.gamma[here], method.use[here], there, np.full(len(here), np.inf)
        )
        tasks, q = server.respond(3.0)
        assert server.residual <= 1e-11
        check(server, 3.0, tasks, q)


@pytest.mark.parametrize("seed", [20, 33, 35])
def test_a_response_ends_where_coordinate_descent_has_stalled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users with a billionth of their tasks here: demand depends on digits of prices that doubles do not have."""
    rng, one_price = np.random.default_rng(seed), response.one_price
    searched: list[object] = []
    use = rng.integers(0, 4, (6, 4)).astype(float)
    use[~use.any(axis=1), 0] = 1.0
    use /= use.max(axis=1, keepdims=True)
    q = rng.uniform(3.2, 3.6, 4)
    level = np.exp(-np.log((use * np.exp(64 * q)).sum(axis=1)) / 64)
    tasks = 10.0 ** rng.uniform(-9, -1, 6) * level  # a response at q, where every resource is full
    per_task, elsewhere = use / (tasks @ use), level - tasks
    q += 0.02 * rng.standard_normal(4)

    def counted(*given: object) -> None:
        searched.append(one_price(*given))
        assert len(searched) < 100

    monkeypatch.setattr(loops._MODE, "running", True)  # interpreted, so that calls can be counted
    monkeypatch.setattr(response, "one_price", counted)
    with np.errstate(all="ignore"):
        residual = respond(64.0, np.zeros(6), per_task, use, elsewhere, np.full(6, np.inf), q, tasks, 0.0, ALPHA_FAIR)
    assert residual < 1e-6
    assert (np.abs(1 - tasks @ per_task)[q > -np.inf] <= 3 * residual).all(), "the residual is that of these tasks"


@pytest.mark.parametrize("alpha", ALPHAS)
def test_response_does_not_depend_on_the_guess(alpha: float) -> None:
    rng = np.random.default_rng(11)
    for kind in ("plain", "zeros", "rich", "limits"):
        for _ in range(20):
            server = drawn(rng, kind)
            expected = server.respond(alpha)[0]
            size = server.use.shape[1]
            free = np.full(size, -np.inf)
            free[rng.integers(size)] = 0.0
            guesses: list[Array] = [np.full(size, -30.0), np.full(size, 30.0), rng.normal(0, 3, (size,)), free]
            for first in guesses:
                np.testing.assert_allclose(server.respond(alpha, first)[0], expected, rtol=1e-7, atol=1e-8)
