"""`infer_alpha`: alpha comes back from its own answers, intervals cover it under noise, and wrong data are named."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError, SolverError
from fairopt.study import infer_alpha as inference
from fairopt.study.follower import Follower
from fairopt.study.infer_alpha import GRID, interval, minima

KINDS = ("alphapf-vds", "alpha-fair")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer alphas to begin with, and one minimum to refine."""
    monkeypatch.setattr(inference, "GRID", GRID[::4])
    monkeypatch.setattr(inference, "MINIMA", 1)


@pytest.fixture
def coarse(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, and a coarse search."""
    monkeypatch.setattr(inference, "ACCURACY", 1e-4)


def cluster(seed: int, users: int = 10, servers: int = 4) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(1, 5, (servers, 3)) * users, rng.uniform(0.25, 5, (users, 3)))


def answer(kind: str, alpha: float, shared: fo.Cluster) -> np.ndarray:
    return fo.mechanisms.get(kind, alpha=alpha).solve(shared, 1e-8).arrays.user_tasks


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 9.0])
def test_alpha_comes_back_from_its_own_answer(kind: str, alpha: float) -> None:
    """The interval is no narrower than what solvers leave open."""
    shared = cluster(2, 6, 3)
    found = fo.infer_alpha(shared, answer(kind, alpha, shared), kind)
    assert found.alpha == pytest.approx(alpha, rel=1e-3)
    assert found.low / (1 + 1e-6) <= alpha <= found.high * (1 + 1e-6)
    assert found.threshold >= 1e-7 * math.sqrt(5 / 6)
    assert not found.flat
    assert found.sigma < 1e-5
    assert found.allocation.certificate.passes(1e-6)
    assert found.curve["misfit"].idxmin() == found.alpha


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", KINDS)
def test_max_min_is_an_alpha_too(kind: str) -> None:
    shared = cluster(0, 6, 3)
    found = fo.infer_alpha(shared, answer(kind, math.inf, shared), kind)
    assert (found.alpha, found.flat, str(found)) == (math.inf, True, f"alpha at least {found.low:.4g}")
    assert found.low >= 1000


@pytest.mark.usefixtures("few")
def test_where_alpha_changes_nothing_any_alpha_does() -> None:
    """Equal users of one resource have equal parts at every alpha."""
    found = fo.infer_alpha(fo.Cluster([[12.0], [6.0]], [[1.0]] * 4), [4.4, 4.6, 4.5, 4.5])
    assert (found.low, found.high, str(found), found.flat) == (0.0, math.inf, "any alpha", True)


@pytest.mark.usefixtures("few")
def test_where_no_alpha_fits_the_misfit_is_said_first() -> None:
    """Not "any alpha": no alpha comes near to these tasks, so that none can be excluded."""
    shared = fo.Cluster([[9, 18], [20, 5]], [[1, 4], [3, 1], [1, 1]])
    found = fo.infer_alpha(shared, [1, 5, 2], overuse=5.0)
    assert (found.low, found.high) == (0.0, math.inf)
    first, second = repr(found).splitlines()
    assert re.match(r"nearest: alpha = .*; tasks are off by 1\.1 ", first)
    assert second.startswith("no alpha can be excluded, as tasks are off by 1.1 at best")
    equal = fo.infer_alpha(fo.Cluster([[12.0], [6.0]], [[1.0]] * 4), [1, 8, 1, 8])
    assert str(equal) == "no alpha can be excluded, as tasks are off by 1.3 at best"


@pytest.mark.usefixtures("coarse")
def test_intervals_cover_alpha_about_as_often_as_they_say() -> None:
    """95% of 12: 8 or fewer would be chance once in 400; and large alphas are told apart from small ones only."""
    found = []
    for seed in range(2):
        shared, rng = cluster(seed, 6, 1), np.random.default_rng([seed, 7])
        for alpha in (1.0, 3.0, 16.0):
            tasks = answer("alphapf-vds", alpha, shared)
            for noise in (0.01, 0.05):
                one = fo.infer_alpha(shared, tasks * np.exp(noise * rng.standard_normal(len(tasks))))
                found.append((one.low <= alpha <= one.high, alpha == 16 and math.isinf(one.high)))
    covered, at_least = np.sum(found, axis=0)
    assert covered >= 9
    assert at_least >= 2


@pytest.mark.usefixtures("few")
def test_a_common_factor_may_be_left_free_and_pass_what_is_feasible() -> None:
    shared = cluster(2)
    tasks = answer("alpha-fair", 2.0, shared)
    found = fo.infer_alpha(shared, 3 * tasks, "alpha-fair", free_scale=True)
    assert (found.alpha, found.scale) == (pytest.approx(2, rel=1e-3), pytest.approx(3, rel=1e-4))
    assert found.overuse == pytest.approx(2, abs=1e-3)
    assert_allclose(found.residuals["fitted"], 3 * tasks, rtol=1e-4)
    message = r"infeasible: they need 3 times .* of 'resource\d' of 'server\d'.*overuse=2\.[01]"
    with pytest.raises(DataError, match=message):
        fo.infer_alpha(shared, 3 * tasks, "alpha-fair")


@pytest.mark.usefixtures("few")
def test_some_users_by_name() -> None:
    shared = cluster(2, 6, 3)
    tasks = pd.Series(answer("alpha-fair", 2.0, shared), index=shared.users)
    tasks.iloc[0] *= 2
    some = list(shared.users[:0:-1])
    found = fo.infer_alpha(shared, tasks[some[::-1]], "alpha-fair", users=some)
    assert found.alpha == pytest.approx(2, rel=1e-3)
    assert set(found.residuals.index) == set(some)
    assert fo.infer_alpha(shared, tasks, "alpha-fair").alpha != pytest.approx(2, rel=1e-2)


@pytest.mark.usefixtures("few")
def test_it_is_shown_in_words_and_drawn() -> None:
    shared = cluster(0, 5, 2)
    found = fo.infer_alpha(shared, answer("alpha-fair", 2.0, shared), fo.AlphaFair)
    assert str(found).startswith("alpha 2 (")
    assert repr(found).splitlines()[0].endswith("of alpha-fair, with confidence 0.95")
    figure = found.plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 2
    assert_allclose(figure.axes[1].lines[-1].get_xdata(), found.residuals["observed"])


SHARED = fo.Cluster(
    [[9, 18], [4, 4]],
    [[1, 4], [3, 1], [1, 1], [1, 1]],
    users=["a", "b", "c", "d"],
    eligible=[[1, 1], [1, 1], [1, 1], [0, 0]],
    max_tasks=[np.inf, 2.0, np.inf, np.inf],
)


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        ([2, 1, 0, 0], {}, r"tasks of user 'c' is 0.*leave it out with users"),
        ([2, np.inf, 1, 0], {}, r"tasks of user 'b' is inf"),
        ([2, 3, 1, 0], {}, r"user 'b' has 3 tasks, and only 2 to run"),
        ([20, 1, 1, 0], {}, r"infeasible: they need"),
        ([2, 1, 1, 0], {"confidence": 1}, r"confidence is 1"),
        ([2, 1, 1, 0], {"mechanism": fo.DRF}, r"DRF has no parameter alpha"),
        ([2], {"users": ["a"]}, r"tasks of 1 users .* too few .* at least 2"),
        ([2, 1], {"users": ["a", "b"], "free_scale": True}, r"at least 3"),
    ],
)
def test_wrong_data_are_named(tasks: object, options: dict[str, object], message: str) -> None:
    """How tasks are read is tested with `find_weights`, which reads them so too."""
    with pytest.raises(DataError, match=message):
        fo.infer_alpha(SHARED, tasks, **options)  # type: ignore[arg-type]


def test_google_2011_is_explained_by_no_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running tasks of 505 users: off by a factor of ten at every alpha, and by next to the same."""
    folder = Path(os.environ.get("FAIROPT_TRACES", "/nowhere"))
    if not folder.is_dir():
        pytest.skip("no real traces: set FAIROPT_TRACES to their folder")
    from fairopt.workloads import google2011

    shared, running = google2011.cluster(folder).cluster, google2011.running(folder)
    assert set(shared.users) <= set(running.index)
    for name, value in (("GRID", tuple(np.geomspace(0.1, 8, 5))), ("MINIMA", 1), ("ACCURACY", 1e-1)):
        monkeypatch.setattr(inference, name, value)
    found = fo.infer_alpha(shared, running[list(shared.users)], "alpha-fair", free_scale=True)
    assert found.sigma > 2
    assert found.overuse == pytest.approx(0.04, abs=0.02)
    near = found.curve["misfit"].loc[1.0:]
    assert near.max() / near.min() < 1.02


def test_a_refinement_that_misses_is_no_better_than_what_was_looked_at() -> None:
    """Brent's method passes a dip that is narrower than its steps; an alpha of the first look is in it."""
    at = GRID[12]

    def misfit(alpha: float) -> float:
        return 0.1 if alpha == at else 1 + (math.log(alpha / at) - 0.2) ** 2 if alpha < math.inf else 9.0

    best, others = minima(misfit)  # type: ignore[arg-type]
    assert best == at
    assert math.inf in others


def test_an_interval_passes_alphas_without_an_answer() -> None:
    gap = GRID[18]

    def misfit(alpha: float) -> float:
        return math.nan if abs(alpha / gap - 1) < 1e-6 else math.log(alpha) ** 2 if alpha < math.inf else 99.0

    low, high = interval(misfit, 1.0, (math.log(gap) - 0.01) ** 2 + 1.0)  # type: ignore[arg-type]
    assert high == pytest.approx(1 / low)
    assert high > gap


@pytest.mark.usefixtures("coarse")
def test_what_fits_as_well_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minimum inside of the interval is no other one."""
    shared = cluster(6, 6, 3)
    seen = answer("alpha-fair", 2.0, shared) * np.exp(0.02 * np.random.default_rng(1).standard_normal(6))
    found = fo.infer_alpha(shared, seen, "alpha-fair")
    monkeypatch.setattr(inference, "minima", lambda *_: (found.alpha, [found.alpha * 1.0001]))
    assert found.low < found.alpha * 1.0001 < found.high
    assert fo.infer_alpha(shared, seen, "alpha-fair").others == ()


@pytest.mark.usefixtures("coarse")
def test_noise_may_pass_limits() -> None:
    shared = cluster(7, 6, 3)
    few = np.arange(6) < 2
    shared = shared.replace(max_tasks=np.where(few, 0.9 * answer("alpha-fair", 2.0, shared), np.inf))
    tasks = answer("alpha-fair", 2.0, shared)
    assert tasks[0] == pytest.approx(shared.max_tasks[0])
    found = fo.infer_alpha(shared, tasks * np.where(np.arange(6) == 0, 1.1, 1), "alpha-fair")
    assert found.low < 2 < found.high


@pytest.mark.usefixtures("coarse")
def test_alphas_that_fail_are_said_and_servers_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are alike are one while alphas are looked at."""
    whole = Follower.__call__

    def fails(self: Follower, alpha: float) -> fo.Allocation:
        if alpha > 100:
            raise SolverError("not today")
        return whole(self, alpha)

    monkeypatch.setattr(Follower, "__call__", fails)
    one = cluster(8, servers=1)
    shared = fo.Cluster([*one.capacity, *one.capacity], one.demand)
    found = fo.infer_alpha(shared, answer("alpha-fair", 2.0, shared), "alpha-fair")
    assert found.allocation.cluster.servers == shared.servers
    [note] = found.notes
    assert re.search("alphas could not be solved for, such as .*: not today$", note)
