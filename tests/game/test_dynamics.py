"""The distributed game: every order ends at the equilibrium, is deterministic, can be interrupted and goes on."""

from __future__ import annotations

import itertools
import math
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import DataError, NotConverged
from fairopt.game import Network, Trace, best_response, multi_start
from fairopt.game import best_responses as distributed
from fairopt.papers import instance

from .clusters import plain

ORDERS = ["elastic", "cyclic", "random", "jacobi", "over-relaxed", "asynchronous"]
COLUMNS = ["residual", "exploitability", "utilization", "seconds", "messages", "numbers"]


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_reaches_the_equilibrium(order: str, alpha: float) -> None:
    for seed in range(2):
        shared = plain(seed)
        expected = fo.AlphaPFVDS(alpha).solve(shared).arrays.user_tasks
        found = best_response(shared, alpha, order=order, rng=seed, max_rounds=5000)
        assert not found.flagged
        np.testing.assert_allclose(found.arrays.user_tasks, expected, rtol=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_maxmin_ends_at_a_psdsf_allocation(order: str) -> None:
    """Which one depends on the order: the certificate decides."""
    found = best_response(plain(3), math.inf, order=order, rng=1, tol=1e-5, max_rounds=5000)
    assert fo.PSDSF().certify(found.cluster, found.tasks)[0].passes(1e-4)


def test_trace() -> None:
    found = best_response(plain(0), 2.0, order="random", rng=1)
    trace = found.trace
    frame = trace.frame
    assert list(frame.columns) == COLUMNS
    assert frame.index.name == "round"
    assert trace.rounds == len(frame) == found.stats.rounds
    assert frame["messages"].iloc[-1] == 6 * len(frame)  # each of 3 servers tells the 2 others
    assert frame["numbers"].iloc[-1] == 6 * 5 * len(frame)  # of 5 users
    assert frame["utilization"].between(0, 1 + 1e-9).all()
    assert frame["residual"].iloc[-1] <= 1e-6 < frame["residual"].iloc[0]
    assert frame["exploitability"].iloc[-1] <= 1e-6
    assert f"{len(frame)} rounds" in repr(trace)
    axes = trace.plot().axes[0]
    assert [np.size(line.get_xdata()) for line in axes.get_lines()] == [trace.rounds] * 2
    assert axes.get_yscale() == "log"


def test_rounds_to() -> None:
    frame = pd.DataFrame({name: [1.0, 1e-3, 1e-2, 1e-4] for name in COLUMNS}, index=pd.RangeIndex(1, 5, name="round"))
    trace = Trace(frame, "done")
    assert trace.rounds_to(2.0) == 1
    assert trace.rounds_to(1e-2) == 2
    assert trace.rounds_to(1e-3) == 4  # not round 2: it rose again
    assert trace.rounds_to(1e-9) is None
    assert Trace(frame.iloc[:0], "nothing").rounds_to(1) is None
    assert repr(Trace(frame.iloc[:0], "nothing")) == "Trace(no rounds; nothing)"


@pytest.mark.parametrize("order", ["random", "asynchronous"])
def test_deterministic_by_seed(order: str) -> None:
    network = Network(loss=0.1, delay=2) if order == "asynchronous" else None
    runs = [
        best_response(plain(1), 2.0, order=order, rng=seed, network=network, max_rounds=15, tol=1e-12, throw=False)
        for seed in (5, 5, 6)
    ]
    assert (runs[0].tasks == runs[1].tasks).all()
    assert not (runs[0].tasks == runs[2].tasks).all()


@pytest.mark.parametrize("order", ["elastic", "cyclic", "jacobi"])
def test_interrupted_and_resumed(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    shared = plain(4)
    whole = best_response(shared, 2.0, order=order)
    measured, calls = distributed._measured, 0

    def impatient(*given: Any) -> dict[str, float]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return measured(*given)

    with monkeypatch.context() as patch:
        patch.setattr(distributed, "_measured", impatient)
        stopped = best_response(shared, 2.0, order=order)
    assert stopped.flagged
    assert stopped.trace.rounds == 2
    assert "interrupted" in stopped.trace.reason
    resumed = best_response(shared, 2.0, order=order, start=stopped)
    assert not resumed.flagged
    frame = resumed.trace.frame
    pd.testing.assert_frame_equal(frame.iloc[:2], stopped.trace.frame)
    assert list(frame.index) == list(range(1, len(frame) + 1))
    assert all(frame[name].is_monotonic_increasing for name in ("seconds", "messages"))
    np.testing.assert_allclose(resumed.arrays.user_tasks, whole.arrays.user_tasks, rtol=1e-5)


def test_throw_and_flag_agree() -> None:
    """Stopped anywhere, what is not flagged is not raised: the certificate decides both."""
    flags = set()
    named = r"order 'elastic'.*max_rounds=\d+ reached: allow more, .*(exploitability|backward error)"
    for alpha, rounds in itertools.product((2.0, math.inf), range(1, 40, 4)):
        found = best_response(plain(0), alpha, tol=1e-4, max_rounds=rounds, throw=False)
        flags.add(found.flagged)
        assert found.certificate.feasibility <= 1e-9
        assert ("allow more" in found.trace.reason) == found.flagged
        with pytest.raises(NotConverged, match=named) if found.flagged else nullcontext():
            again = best_response(plain(0), alpha, tol=1e-4, max_rounds=rounds)
            np.testing.assert_array_equal(again.tasks, found.tasks)
    assert flags == {True, False}


def test_what_ends_the_game_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the trace is content and the judge is not, the game goes on until both are."""
    measured = distributed._measured
    content = dict.fromkeys(("residual", "exploitability"), 1e-12)
    monkeypatch.setattr(distributed, "_measured", lambda *given: measured(*given) | content)
    found = best_response(plain(0), 2.0)
    assert not found.flagged
    with pytest.raises(NotConverged, match="allow more"):
        best_response(plain(0), 2.0, max_rounds=2)


def test_only_the_same_game_continues_a_trace() -> None:
    shared = plain(0)
    start = best_response(shared, 2.0, max_rounds=4, throw=False)
    changes: list[tuple[fo.Cluster, dict[str, Any]]] = [
        (plain(0), {}), (shared, {"alpha": 8.0}), (shared, {"order": "random", "rng": 0}), (plain(1), {}),
    ]  # fmt: skip
    again, *others = (
        best_response(one, **({"alpha": 2, "start": start} | more), max_rounds=1, throw=False) for one, more in changes
    )
    assert again.trace.rounds == again.stats.rounds == 5
    for other in others:
        assert other.trace.rounds == other.stats.rounds == 1
        assert other.trace.frame["messages"].iloc[0] in (6, 6 + 4)  # elastic ones tell a tree of two edges, too
    fresh = best_response(shared, 8.0, start=start.tasks, max_rounds=1, throw=False)
    np.testing.assert_array_equal(others[0].tasks, fresh.tasks)
    with pytest.raises(DataError, match=r"their users differ, first .*; it must be of the same names"):
        best_response(plain(0, 4), 2.0, start=start)


@pytest.mark.parametrize("demand", [[[1.0, 1.0]], [[1.0, 1.0], [1.0, 0.0], [0.0, 2.0]]])
def test_notes_name_those_who_can_run_nowhere(demand: list[list[float]]) -> None:
    shared = fo.Cluster([[1.0, 0.0]], demand)
    found = best_response(shared, 2.0)
    assert not found.flagged
    assert found.notes == fo.AlphaPFVDS(2.0).solve(shared).notes
    assert "user1" in found.notes[0]
    if len(demand) == 1:
        assert "no user" in found.trace.reason


def test_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    best_response(plain(0), 1.0, progress=True)
    assert "best response" in capsys.readouterr().err
    best_response(plain(0), 1.0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("start", ["zero", "too much"])
def test_any_start_will_do(start: str) -> None:
    shared = plain(5)
    given = np.zeros((5, 3)) if start == "zero" else 10 * shared.gamma
    found = best_response(shared, 2.0, start=given)
    np.testing.assert_allclose(found.arrays.user_tasks, fo.AlphaPFVDS(2.0).solve(shared).arrays.user_tasks, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.5, pytest.param(1.0, marks=pytest.mark.long), 2.0])
def test_asynchronous_with_losses_delays_and_an_outage(alpha: float) -> None:
    """20% of messages lost, delays up to 10 rounds, a server that stops and comes back; PF section 5.2 at size."""
    rng = np.random.default_rng(0)
    eligible = rng.random((50, 20)) < 2.5 / 20
    eligible[np.arange(50), rng.integers(20, size=50)] = True
    shared = fo.Cluster(100 * rng.lognormal(0, 0.5, (20, 4)), rng.lognormal(0, 0.5, (50, 4)), eligible=eligible)
    network = Network(loss=0.2, delay=10, outages=((0, 5.0, 30.0),))
    found = best_response(
        shared, alpha, order="asynchronous", network=network, damping=0.5, tol=1e-4, max_rounds=3000, rng=0
    )
    assert not found.flagged
    frame = found.trace.frame
    assert len(frame) > 30
    assert frame["residual"].iloc[-1] <= 1e-4 < frame["residual"].iloc[0]
    assert (frame["messages"].diff().dropna() > 0).all()
    np.testing.assert_allclose(found.arrays.user_tasks, fo.AlphaPFVDS(alpha).solve(shared).arrays.user_tasks, rtol=5e-3)


class _Post(np.random.Generator):
    """Generator that loses the messages of some numbers, delays others as long as possible, and the rest not at all."""

    def __init__(self, lost: tuple[int, ...] = (), late: tuple[int, ...] = ()) -> None:
        super().__init__(np.random.PCG64(0))
        self.lost, self.late, self.sent = lost, late, -1

    def standard_normal(self, size: Any = None, *_: Any) -> Any:
        return np.zeros(size)

    def random(self, *_: Any) -> Any:
        self.sent += 1
        return 0.0 if self.sent in self.lost else 1.0

    def uniform(self, low: Any = 0, high: Any = 1, *_: Any) -> Any:
        first_clock = self.sent < 0
        return low + (high - low) * (super().uniform() if first_clock else float(self.sent in self.late))


def test_a_message_that_a_later_one_overtakes_counts_as_lost() -> None:
    def after(**messages: tuple[int, ...]) -> Any:
        network = Network(loss=0.5, delay=2.1, drift=0)
        return best_response(
            plain(0), 2.0, order="asynchronous", network=network, max_rounds=5, throw=False, rng=_Post(**messages)
        ).tasks

    np.testing.assert_array_equal(after(late=(2, 5)), after(lost=(2, 5)))
    assert np.abs(after(late=(2, 5)) - after()).max() > 1e-6


@pytest.mark.parametrize("server", [1, np.int64(1), "server2"])
def test_a_server_that_is_out_keeps_what_it_serves(server: Any) -> None:
    given = 0.3 * plain(6).gamma / 5
    network = Network(outages=((server, 0.0, math.inf),))
    found = best_response(
        plain(6), 2.0, order="asynchronous", network=network, start=given, max_rounds=5, throw=False, rng=0
    )
    np.testing.assert_allclose(found.tasks[:, 1], given[:, 1], rtol=1e-9)
    assert (np.abs(found.tasks[:, 0] / given[:, 0] - 1) > 0.01).any()


def test_multi_start_tells_unique_from_not() -> None:
    found_41 = instance("found-41")
    psdsf = multi_start(found_41, math.inf, rng=0)
    assert psdsf["converged"].all()
    assert psdsf["apart"].max() > 1e-2
    smooth = multi_start(found_41, 2.0, rng=0)
    assert smooth["converged"].all()
    assert smooth["apart"].max() < 1e-5
    assert smooth.attrs["user_tasks"].shape == (10, 3)
    with pytest.raises(DataError, match="at least 2"):
        multi_start(found_41, 2.0, 1, rng=0)
