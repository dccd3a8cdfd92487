"""Which pairs take part in a level of max-min: the same levels as with all, and nobody is forgotten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairopt.engines.linalg import column_screening as rule
from fairopt.engines.linalg.column_screening import ScreeningOptions
from fairopt.engines.maxmin import level, level_interior, level_point, level_screening, levels
from fairopt.engines.maxmin.options import OPTIONS, LevelOptions
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster

from .varied import varied


def always(pairs: int, gap: float, *options: ScreeningOptions) -> bool:
    """Screening applies however few pairs there are."""
    return bool(np.isfinite(gap))


def test_many_pairs_take_part_by_and_by(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    cluster = Cluster(np.exp(0.5 * rng.standard_normal((30, 3))), np.exp(0.5 * rng.standard_normal((40, 3))))
    few = replace(OPTIONS.point, many=10, cheapest=2, random=1)
    monkeypatch.setattr(levels, "highest", varied(point=few))
    found = get("drfh").solve(cluster, 1e-9, engine="native")
    assert found.stats.engine == "native"
    assert (found.tasks > 0).sum() < 0.5 * found.tasks.size


def test_pairs_leave_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same levels as with all pairs; limits and zeros take users and servers away one after another."""
    left: list[float] = []

    def drop_columns(point: level_point.LevelPoint, gap: float, *options: ScreeningOptions) -> None:
        level_screening.drop_columns(point, gap, *options)
        left.append(float(point.screened_out.sum()))

    monkeypatch.setattr(level_interior, "drop_columns", drop_columns)
    runs = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        demand = np.exp(rng.standard_normal((40, 3))) * (rng.random((40, 3)) < 0.8)
        demand[~demand.any(axis=1), 0] = 1.0
        limits = np.where(rng.random(40) < 0.3, rng.uniform(0.1, 3, 40), np.inf)
        cluster = Cluster(20 * np.exp(rng.standard_normal((25, 3))), demand, max_tasks=limits)
        monkeypatch.setattr(rule, "applies", lambda *_: False)
        whole = get("drfh").solve(cluster, engine="native")
        monkeypatch.setattr(rule, "applies", always)
        left.clear()
        found = get("drfh").solve(cluster, engine="native")
        assert found.certify().residual < 1e-6
        assert found.user_tasks == pytest.approx(whole.user_tasks, rel=1e-6), f"seed {seed}"
        runs += max(left) > 0
    assert runs >= 3


@pytest.mark.parametrize("last", [True, False])
def test_nobody_loses_all_pairs(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user on so many servers, which idle, that it has less than a thousandth of its tasks on any of them."""
    monkeypatch.setattr(rule, "applies", always)
    few, many, users = 20, 1500, 61
    rng, one = np.random.default_rng(0), users - 1 if last else 0
    pairs = [many if n == one else few for n in range(users)]
    server = np.concatenate([np.arange(few, few + many) if n == one else np.arange(few) for n in range(users)])
    problem = level.Level(
        np.concatenate([[0], np.cumsum(pairs)]), server, rng.uniform(0.99, 1.01, (len(server), 2)), few + many,
        np.ones(users, dtype=bool), np.zeros(users), np.full(users, np.inf),
    )  # fmt: skip
    left = []

    def drop_columns(point: level_point.LevelPoint, gap: float, *options: ScreeningOptions) -> None:
        level_screening.drop_columns(point, gap, *options)
        assert (np.diff(point.start) > 0).all()
        left.append(len(point.at))

    monkeypatch.setattr(level_interior, "drop_columns", drop_columns)
    found = level_interior.highest(problem, rng)
    assert found is not None
    assert found.gap < 1e-9
    assert left[-1] < left[0]


def test_what_left_is_carried_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pairs that left had is in the equations until others have it: in all they hold as without leaving."""
    monkeypatch.setattr(rule, "applies", always)
    monkeypatch.setattr(levels, "highest", varied(sharp=0.0))  # steps are refined to rounding
    seen = []
    original = level_interior.advance

    def step(point: level_point.LevelPoint, gap: float, options: LevelOptions) -> float:
        length = original(point, gap, options)
        q, amount = point.problem, point.screened_out.copy()
        amount[point.at] += point.y
        load = np.zeros(point.row.shape)
        np.add.at(load, q.server, q.use * amount[:, None])
        have = np.add.reduceat(amount, q.start[:-1])
        assert np.abs(np.where(point.row, 1 - load - point.w, 0.0)).max() < 1e-8
        assert np.abs(have - point.t - point.v).max() < 1e-8 * point.t
        seen.append((len(point.at), float(point.screened_out.sum() / have.sum())))
        return length

    monkeypatch.setattr(level_interior, "advance", step)
    rng = np.random.default_rng(0)
    cluster = Cluster(20 * np.exp(rng.standard_normal((25, 3))), np.exp(rng.standard_normal((40, 3))))
    assert get("drfh").solve(cluster, engine="native").stats.engine == "native"
    pairs, screened = np.array(seen).T
    assert pairs[-1] < 0.6 * pairs[0]
    assert screened.max() > 1e-6
    assert screened[-1] < 1e-9
