"""`alpha_path`: the same answers as one by one, for less work."""

from __future__ import annotations

import io
import math
import pickle
import sys
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from game.clusters import plain
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.core.engines import small
from fairopt.errors import DataError, NotConverged, SolverError
from fairopt.mechanisms import REGISTRY, Mechanism, _solve
from fairopt.mechanisms.reference import server_problem
from fairopt.study.alpha_path import AlphaPath, refined
from fairopt.study.follower import Follower

PATH = [*(float(alpha) for alpha in np.geomspace(0.2, 64, 9)), math.inf]


def cluster(seed: int = 0, users: int = 12, servers: int = 5, resources: int = 3) -> fo.Cluster:
    """A plain random cluster."""
    return plain(seed, users, servers, resources)


@pytest.mark.parametrize("seed", range(3))
def test_same_answers_as_one_by_one(seed: int) -> None:
    shared = cluster(seed)
    frame = fo.alpha_path(shared, PATH, tol=1e-8)  # tasks may be off by a hundred times the certificate
    assert (list(frame.index), frame.index.name) == (PATH, "alpha")
    for alpha, found in frame.allocations.items():
        assert not found.flagged
        assert found.certify().passes(1e-8)
        assert found.criterion.alpha == alpha
        alone = fo.AlphaPFVDS(alpha).solve(shared, tol=1e-8)
        assert_allclose(found.arrays.user_tasks, alone.arrays.user_tasks, rtol=1e-6)


def test_alphas_of_a_small_cluster_are_answered_at_once() -> None:
    """Half of the seconds of one by one; what a stack took is told by the steps of its alphas."""
    shared, alphas = cluster(4, 20, 10), np.geomspace(0.1, 64, 24)
    frames = [fo.alpha_path(shared, alphas, details=True) for _ in range(2)]
    alone = [sum(fo.AlphaPFVDS(alpha).solve(shared).stats.total for alpha in alphas) for _ in range(2)]
    assert min(frame["seconds"].sum() for frame in frames) < 0.75 * min(alone)
    seconds = frames[0]["seconds"] / frames[0]["steps"]
    assert seconds.max() < 8 * seconds.median()


@pytest.mark.parametrize("shape", [(20, 32), pytest.param((200, 50), marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [kind for kind in REGISTRY.values() if "alpha" in kind.__dataclass_fields__])
def test_paths_to_both_ends_and_back(kind: type[Mechanism], shape: tuple[int, int]) -> None:
    """An answer at alpha = 0 or infinity is no start for others, whose prices follow from levels."""
    shared = cluster(1, *shape)
    for alphas in ([0.0, 0.5, 2.0, math.inf, 3.0], [0.5, 0.0, 0.7]):
        path = fo.alpha_path(shared, alphas, mechanism=kind)
        assert not any(found.flagged for found in path.allocations)
    apart = kind(0.5).solve(shared, start=kind(0.0).solve(shared)).arrays.user_tasks  # type: ignore[call-arg]
    assert_allclose(apart, kind(0.5).solve(shared).arrays.user_tasks, rtol=1e-4)  # type: ignore[call-arg]


def test_frame() -> None:
    path = fo.alpha_path(cluster(), [0.0, 0.5, 2.0], details=True)  # a linear program is on the path
    assert not any(found.flagged for found in path.allocations)
    assert (path["steps"] > 0).all()
    assert path["tasks"].tolist() == [found.user_tasks.sum() for found in path.allocations]
    assert path["utilization"].tolist() == [fo.metrics.mean_utilization(found) for found in path.allocations]
    assert path[["min_share", "max_share", "use_resource1", "jain"]].stack().between(0, 1 + 1e-9).all()
    assert all(kind.kind in "fib" for kind in path.dtypes)
    again = pd.read_csv(io.StringIO(path.to_csv()), index_col="alpha")
    assert_allclose(again.astype(float), path.astype(float), rtol=1e-15)
    for frame in (path[path["tasks"] > 0], path.copy(), path.round(3), pd.concat([path, path]), path[["jain"]]):
        assert type(frame) is pd.DataFrame
    assert pickle.loads(pickle.dumps(path)).mechanism == "alphaPF-VDS"


def test_order_is_kept(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    path = [3.0, math.inf, 0.5, 3.0]
    frame = fo.alpha_path(cluster(), path, progress=True)
    assert "alpha path" in capsys.readouterr().err
    assert list(frame.index) == path
    first, last = frame.allocations.iloc[[0, -1]]
    assert_allclose(first.user_tasks, last.user_tasks, rtol=1e-6)


def test_default_path() -> None:
    frame = fo.alpha_path(cluster(2, 5, 3))
    assert (len(frame), frame.index[0], frame.index[-1]) == (40, pytest.approx(0.1), math.inf)
    assert not any(found.flagged for found in frame.allocations)


@pytest.mark.parametrize(
    ("alphas", "mechanism", "message"),
    [
        ([], fo.AlphaPFVDS, "give at least one"),
        (2, fo.AlphaPFVDS, r"alphas is 2; give a list of them, such as alpha_path\(cluster, \[1, 3\]\)"),
        ([1, "x"], fo.AlphaPFVDS, r"alpha is 'x', of type str; it must be a number from 0"),
        ([1, -2], fo.AlphaPFVDS, r"alpha is -2; it must be a number from 0"),
        ([1, 2], fo.DRF, "DRF has no parameter alpha to follow; AlphaPFVDS and AlphaFair have one"),
        ([1, 2], fo.AlphaFair(), r"mechanism is one alpha-fair\(alpha=2\); give the class, mechanism=AlphaFair"),
        ([1, 2], "alpha-fear", "no mechanism 'alpha-fear'; .*; did you mean alpha-fair?"),
        ([1, 2], "alpha-fair(alpha=2)", "leave alpha out of its brackets"),
        ([1, 2], None, "mechanism is None; it must be a class of mechanisms"),
    ],
)
def test_what_cannot_be_followed(alphas: Any, mechanism: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.alpha_path(cluster(), alphas, mechanism=mechanism)
    with pytest.raises(DataError, match="seconds is None"):
        fo.alpha_path(cluster(), seconds=None)


def test_out_of_reach(monkeypatch: pytest.MonkeyPatch, out_of_reach: float) -> None:
    monkeypatch.setattr(
        server_problem, "solutions", partial(server_problem.solutions, max_rounds=2)
    )  # or it tries for long
    shared = cluster(0, 4, 2)
    with pytest.raises(NotConverged, match="misses tol"):
        fo.alpha_path(shared, [1.5], tol=out_of_reach)
    frame = fo.alpha_path(shared, [1.5], tol=out_of_reach, throw=False)
    assert all(found.flagged for found in frame.allocations)


def test_a_name_is_followed_with_its_parameters() -> None:
    shared = cluster(0, 4, 2)
    path = fo.alpha_path(shared, [1.0, 2.0], mechanism="alpha-fair(share=asset)")
    assert path.mechanism == "alpha-fair(share=asset)"
    for alpha, found in path.allocations.items():
        alone = fo.AlphaFair(alpha=alpha, share="asset").solve(shared)
        assert_allclose(found.user_tasks, alone.arrays.user_tasks, rtol=1e-6)


@pytest.fixture(scope="module")
def path() -> AlphaPath:
    return fo.alpha_path(cluster(0, 12, 2), [0.5, 2.0, math.inf])


def test_plot(path: AlphaPath) -> None:
    other = fo.alpha_path(cluster(), [0.5, 2.0, math.inf], mechanism=fo.AlphaFair)
    figure = path.draw(other, measures=["utilization", "jain"], marks={"here": 1.5})
    assert [axes.get_title() for axes in figure.axes] == ["utilization", "Jain's index"]
    first, second, mark = figure.axes[0].lines
    for line, frame in ((first, path), (second, other)):
        assert_allclose(line.get_xydata().T, [[1 / 3, 2 / 3, 1], frame["utilization"]])
    assert mark.get_xdata()[0] == pytest.approx(0.6)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["alphaPF-VDS", "alpha-fair", "here"]
    mine = fo.Allocation.of(cluster(), cluster().gamma / len(cluster().users), "mine")
    _, level = path.draw(mine, measures=["jain"]).axes[0].lines
    assert (level.get_label(), {*level.get_ydata()}) == ("mine", {mine.summary()["jain"]})
    assert [axes.get_title() for axes in path.draw(path, "jain", "welfare").axes] == ["Jain's index", "welfare"]
    with pytest.raises(DataError, match=r"no column 'taks'; it has tasks, .*; did you mean tasks"):
        path.draw("taks")


def test_tasks_along_alpha(path: AlphaPath) -> None:
    for alpha, found in path.allocations.items():
        assert path.user_tasks.loc[alpha].equals(found.user_tasks.rename(alpha))
    figure = path.draw("user_tasks", most=5)
    assert figure.legends[0].get_texts()[-1].get_text() == "7 others, mean"
    order = path.user_tasks.max().sort_values(ascending=False, kind="stable").index
    expected = [*(path.user_tasks[user] for user in order[:5]), path.user_tasks[order[5:]].mean(axis=1)]
    assert_allclose([line.get_ydata() for line in figure.axes[0].lines], expected)
    for most in (0, 20, 2.5):
        with pytest.raises(DataError, match="most is"):
            path.draw("user_tasks", most=most)
    for wrong in (path, fo.compare(cluster(), ["drfh"])):
        with pytest.raises(DataError, match=r"plot\.tasks\(path\.user_tasks\)"):
            fo.plot.tasks(wrong)


def test_plot_is_that_of_pandas(path: AlphaPath) -> None:
    axes = Figure().subplots()
    assert path.plot(y="jain", ax=axes) is path.plot.line(y="jain", ax=axes) is axes


def test_refined_paths_are_as_straight_as_they_say() -> None:
    """Fresh solves between neighbours: never further from the line than the path says, nor than was asked."""
    shared, ends = cluster(1, 6, 3, 2), [0.2, 1, 8, math.inf]
    path = fo.alpha_path(shared, ends, mechanism=fo.AlphaFair, refine=1e-2)
    assert set(ends) <= set(path.index)
    assert path.index.is_monotonic_increasing
    assert path.errors is not None
    assert path.errors.dropna().max() <= 1e-2
    at = np.array([1.0 if math.isinf(alpha) else alpha / (1 + alpha) for alpha in path.index])
    tasks = np.log([found.user_tasks for found in path.allocations])
    for middle, between in zip((at[1:] + at[:-1]) / 2, (tasks[1:] + tasks[:-1]) / 2, strict=True):
        fresh = np.log(fo.AlphaFair(middle / (1 - middle)).solve(shared).arrays.user_tasks)
        assert np.abs(fresh - between).max() <= 1e-2
    assert fo.alpha_path(shared, ends, mechanism=fo.AlphaFair).errors is None
    for refine in (0, math.inf):
        with pytest.raises(DataError, match=f"refine is {refine}"):
            fo.alpha_path(shared, ends, refine=refine)


def test_refining_goes_on_where_one_alpha_has_no_answer() -> None:
    follower = Follower(cluster(1, 6, 3, 2), fo.AlphaFair, None)

    def solve(alpha: float) -> fo.Allocation:
        if alpha < 1:
            raise SolverError("none")
        return follower(alpha)

    found, errors = refined(solve, [(alpha, follower(alpha)) for alpha in (0.2, 1.0, 8.0)], 1e-2)
    assert [alpha for alpha, _ in found[:2]] == [0.2, 1]
    assert errors[0] == math.inf
    assert max(errors[1:-1]) <= 1e-2


def test_refined_paths_of_users_who_run_nothing() -> None:
    """Errors are those of the others; where nobody runs anything there are none."""
    some = fo.Cluster([[9.1, 18], [0, 3]], [[1, 4], [3, 1], [1, 1]], eligible=[[1, 1], [1, 1], [0, 1]])
    for shared, most in ((some, 1e-2), (fo.Cluster([[0.0, 1]], [[1, 1]]), 0)):
        path = fo.alpha_path(shared, [0.5, 4.0], mechanism=fo.AlphaFair, refine=1e-2)
        assert path.errors is not None
        assert path.errors.iloc[:-1].max() <= most
    assert len(path) == 2


def test_digits_that_a_page_does_not_show_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit that binds the dense method is tried once, and its answer rejected, not at every alpha."""
    shared, calls = cluster(), list[str]()
    tasks = fo.AlphaPFVDS(1).solve(shared).arrays.user_tasks
    shared = shared.replace(max_tasks=np.where(np.arange(len(tasks)) % 2, math.inf, 0.7 * tasks))

    def counted(module: Any, name: str) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: calls.append(name) or function(*given))  # type: ignore[func-returns-value]

    counted(small, "finite")
    counted(_solve, "with_refinement")
    found, refinements = [], []
    for refine in (True, False):
        follower = Follower(shared, fo.AlphaPFVDS, None, refine=refine)
        follower(0.7)
        calls.clear()
        found.append([follower(alpha).arrays.user_tasks for alpha in (1.5, 2.0, 3.0)])
        assert calls.count("finite") == 1
        refinements.append(calls.count("with_refinement"))
    assert refinements[0] == 3 > refinements[1]
    assert_allclose(found[0], found[1], rtol=1e-6)
