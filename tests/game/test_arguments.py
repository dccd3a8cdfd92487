"""What the distributed game is given: numbers of any kind, networks and starts, or an error that says what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fairopt.core.game import response, rounds
from fairopt.errors import DataError
from fairopt.game import Network, best_response

from .clusters import plain


@pytest.mark.parametrize(
    ("name", "values", "remedy"),
    [
        ("alpha", [0], r"use AlphaPFVDS\(0\)"),
        ("alpha", [-1.0, math.nan, True, "2"], "alpha is .*it must be a number from 0"),
        ("order", ["x", ["cyclic"]], "choose one of them"),
        ("damping", [0, 2.5, math.nan, "a"], "damping is .*it must be between 0"),
        ("tol", [0, math.inf, "small"], "must be a number > 0"),
        ("max_rounds", [0, 2.5, True], "max_rounds is .*whole number, at least 1"),
        ("rng", ["x"], "rng is 'x'; it must be a seed"),
        ("network", [3], "it must be a fairopt.game.Network"),
        ("network", [Network()], "order 'elastic': leave it out, or choose order='asynchronous'"),
        ("server_solver", ["magic"], "not one of native, cvxpy; choose one"),
        ("start", ["x", np.ma.ones((5, 3)), [[10**400] * 3] * 5], "start: tasks must be numbers"),
        ("start", [np.ones((2, 2))], r"\(5, 3\); got \(2, 2\)"),
        ("start", [np.full((5, 3), np.nan)], "start: .*tasks must be finite"),
        ("start", [-np.ones((5, 3))], "start: some tasks are below 0; it must be an allocation or tasks >= 0"),
    ],
)
def test_bad_input_says_what_to_do(name: str, values: list[Any], remedy: str) -> None:
    for value in values:
        with pytest.raises(DataError, match=remedy):
            best_response(plain(0), **({"alpha": 2.0} | {name: value}))


@pytest.mark.parametrize("more", [{"damping": 0.5}, {"server_solver": "cvxpy"}])
def test_elastic_order_has_no_damping_and_one_solver(more: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"'elastic' has no damping.*'native' only: leave them out, or choose order="):
        best_response(plain(0), 2.0, order="elastic", **more)


@pytest.mark.parametrize(
    ("name", "values", "remedy"),
    [
        ("loss", [1.0, -0.1, "a"], r"give a loss in \[0, 1\)"),
        ("delay", [-1.0, math.inf, True], "finite delay and drift"),
        ("drift", [math.inf, math.nan], "finite delay and drift"),
        ("outages", [3, (0, 5, 30), ((0, 5),)], r"an outage is \(server, first round, last round\)"),
        ("outages", [((0.5, 5, 30),)], "server 0.5, which names none"),
        ("outages", [((0, "a", 30),), ((0, 5, math.nan),)], "a round of the outage of server 0 .* is"),
        ("outages", [((0, 30, 5),)], "is 5; it must be a number from the first round on"),
    ],
)
def test_bad_network_says_what_to_do(name: str, values: list[Any], remedy: str) -> None:
    for value in values:
        with pytest.raises(DataError, match=remedy):
            Network(**{name: value})


@pytest.mark.parametrize("server", [3, -1, "Server1"])
def test_an_outage_of_no_server(server: int | str) -> None:
    network = Network(outages=((server, 0, 3),))
    with pytest.raises(DataError, match=r"which the cluster has not.*server1, server2, server3.*from 0 to 2"):
        best_response(plain(0), 2.0, order="asynchronous", network=network)


def test_numbers_of_any_kind_are_compiled_once() -> None:
    """An int for alpha or damping once had every loop compiled again."""
    loops = [rounds.sweep, rounds.play, response.respond]
    best_response(plain(0), 2.0, damping=1.0)
    before = [len(loop.signatures) for loop in loops]
    given: dict[str, Any] = {"damping": 1, "tol": np.float32(1e-6), "max_rounds": np.int64(500)}
    two: Any
    for two in (2, np.int64(2), np.float32(2)):
        assert best_response(plain(0), two, **given).mechanism == "alphaPF-VDS(alpha=2)"
    best_response(plain(0), 2, **given | {"damping": np.float32(1)})
    assert [len(loop.signatures) for loop in loops] == before
