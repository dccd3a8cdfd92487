"""What the distributed game is given: numbers of any kind, networks and starts, or an error that says what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.game import Network, best_response
from fairopt.game.responses import _response, _rounds

from .clusters import plain


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"alpha": 0}, r"use AlphaPFVDS\(0\)"),
        ({"alpha": -1.0}, "must be a number > 0"),
        ({"alpha": math.nan}, "must be a number > 0"),
        ({"alpha": True}, "alpha is True, a truth value; it must be a number > 0"),
        ({"alpha": "2"}, "alpha is '2', of type str; it must be a number > 0"),
        ({"order": "x"}, "choose one of them"),
        ({"order": ["cyclic"]}, "choose one of them"),
        ({"damping": "a"}, "damping is 'a', of type str; it must be between 0"),
        ({"damping": True}, "damping is True, a truth value; it must be between 0"),
        ({"tol": "small"}, "tol is 'small', of type str; it must be a number > 0"),
        ({"max_rounds": 2.5}, "max_rounds is 2.5; it must be a whole number"),
        ({"max_rounds": True}, "max_rounds is True; it must be a whole number"),
        ({"rng": "x"}, "rng is 'x'; it must be a seed"),
        ({"network": 3}, r"network is 3; it must be a fairopt.game.Network"),
        ({"order": "elastic", "network": Network(loss=0.1)}, r"no part in order 'elastic': leave it out"),
        ({"network": Network()}, r"order 'elastic': leave it out, or choose order='asynchronous'"),
        ({"order": "elastic", "damping": 0.5}, r"'elastic' has no damping.*or choose order='cyclic'"),
        ({"order": "elastic", "server_solver": "cvxpy"}, r"server_solver='native' only: leave them out"),
        ({"start": "x"}, r"start is 'x'; it must be an allocation or tasks"),
        ({"damping": 0}, "must be between 0"),
        ({"damping": 2.5}, "must be between 0"),
        ({"damping": math.nan}, "must be between 0"),
        ({"tol": 0}, "must be a number > 0"),
        ({"tol": math.inf}, "must be a number > 0"),
        ({"max_rounds": 0}, "at least 1"),
        ({"server_solver": "magic"}, "not one of native, cvxpy; choose one"),
        ({"start": np.ones((2, 2))}, r"shape \(5, 3\)"),
        ({"start": -np.ones((5, 3))}, r"tasks >= 0"),
        ({"start": np.full((5, 3), np.nan)}, r"tasks >= 0"),
    ],
)
def test_bad_input_says_what_to_do(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(DataError, match=remedy):
        best_response(plain(0), **({"alpha": 2.0} | changes))


OUTAGE = r"an outage is \(server, first round, last round\)"
OUTSIDE = [("loss", 1.0), ("loss", -0.1), ("delay", -1.0), ("drift", math.nan)]


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        *(({name: value}, r"give a loss in \[0, 1\)") for name, value in OUTSIDE),
        ({"delay": math.inf}, "delay inf.*finite delay and drift"),
        ({"drift": math.inf}, "drift inf.*finite delay and drift"),
        ({"loss": "a"}, "loss of the network is 'a'"),
        ({"delay": True}, "delay of the network is True"),
        ({"outages": 3}, f"outages is 3.*{OUTAGE}"),
        ({"outages": (0, 5, 30)}, f"outage 0 of the network: {OUTAGE}"),
        ({"outages": ((0, 5),)}, f"outage .0, 5. of the network: {OUTAGE}"),
        ({"outages": ((0.5, 5, 30),)}, "names no server"),
        ({"outages": ((0, "a", 30),)}, "a round of outage .* is 'a'"),
        ({"outages": ((0, 5, math.nan),)}, "a round of outage .* is nan"),
        ({"outages": ((0, 30, 5),)}, "ends before it begins"),
    ],
)
def test_bad_network_says_what_to_do(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(DataError, match=remedy):
        Network(**changes)


@pytest.mark.parametrize("server", [3, 9, -1, "server4", "Server1"])
def test_an_outage_of_no_server(server: int | str) -> None:
    network = Network(outages=((server, 0, 3),))
    with pytest.raises(DataError, match=r"which the cluster has not.*server1, server2, server3.*from 0 to 2"):
        best_response(plain(0), 2.0, order="asynchronous", network=network)


def test_outages_by_name() -> None:
    servers: list[Any] = [1, np.int64(1), "server2"]
    runs = [
        best_response(
            plain(6), 2.0, order="asynchronous", network=Network(outages=((server, 0, math.inf),)),
            start=np.zeros((5, 3)), max_rounds=3, throw=False, rng=0,
        )
        for server in servers
    ]  # fmt: skip
    for run in runs:
        assert run.tasks[:, 1].sum() == 0
        assert (run.tasks[:, 0] > 0).any()
        np.testing.assert_array_equal(run.tasks, runs[0].tasks)


def test_numbers_of_any_kind_are_compiled_once() -> None:
    """An int for alpha or damping once had every loop compiled again."""
    loops = [_rounds.sweep, _rounds.play, _response.respond]
    best_response(plain(0), 2.0, damping=1.0)
    before = [len(loop.signatures) for loop in loops]
    given: dict[str, Any] = {"damping": 1, "tol": np.float32(1e-6), "max_rounds": np.int64(500)}
    two: Any
    for two in (2, np.int64(2), np.float32(2)):
        assert best_response(plain(0), two, **given).mechanism == "alphaPF-VDS(alpha=2)"
    best_response(plain(0), 2, **given | {"damping": np.float32(1)})
    assert [len(loop.signatures) for loop in loops] == before
