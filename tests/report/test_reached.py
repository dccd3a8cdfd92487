"""Medians of games of which some never end, and their intervals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairopt import harness, report
from fairopt.errors import DataError
from fairopt.report import Results, median_interval, reached, tables_of


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8, 9, 20, 25, 100])
def test_the_interval_is_the_narrowest_that_covers(n: int) -> None:
    """Coverage of [x_k, x_(n+1-k)] is `1 - 2 P(B < k)`, B binomial: at least 95%, and less for the next k."""
    frame = pd.DataFrame({"of": "a", "x": np.random.default_rng(n).permutation(n) + 1.0})
    row = median_interval(frame, ["of"], "x").iloc[0]
    assert (row["median"], row["n"]) == ((n + 1) / 2, n)
    if n < 6:
        assert np.isnan([row["low"], row["high"]]).all()
        return
    k = int(row["low"])  # values are their ranks
    assert row["high"] == n + 1 - k
    assert 2 * stats.binom.cdf(k - 1, n, 0.5) <= 0.05 < 2 * stats.binom.cdf(k, n, 0.5)


def test_twenty_draws_and_those_that_never_come() -> None:
    x = [*range(1, 14), *[math.inf] * 7]
    row = median_interval(pd.DataFrame({"of": 1, "x": x}), ["of"], "x").iloc[0]
    assert row[["low", "median", "high"]].tolist() == [6, 10.5, math.inf]
    half = pd.DataFrame({"of": 1, "x": [1.0, 2.0, math.inf, math.inf]})
    assert median_interval(half, ["of"], "x")["median"].tolist() == [math.inf]


EXPERIMENT = """
title = "Games"
repetitions = 6
clusters.a = "lognormal?users=5&servers=3"
[[grid]]
mechanisms = "alphapf-vds"
alphas = [0.5, 2]
engines = "best-response"
orders = ["cyclic", "jacobi"]
dampings = 0.9
tols = 1e-3
max_rounds = 12
residuals = [0.1, 1e-3, 1e-5]
"""


def test_games_of_a_sweep(tmp_path: Path) -> None:
    """Against the curves themselves: when each residual is at or below the level for good."""
    path = tmp_path / "games.toml"
    path.write_text(EXPERIMENT)
    harness.sweep(path, store=tmp_path / "store", progress=False)
    results = Results(tmp_path / "store")
    found = results.of(path)
    table = reached(found)
    assert len(table) == 2 * 2 * 2  # a game that stops at 1e-3 says nothing of 1e-5
    assert table["n"].eq(6).all()
    assert table["there"].min() < 6  # some are late
    curves = dict(list(found.long("curve").groupby(["alpha", "order"])))
    for row in table.to_dict("records"):
        rounds = []
        for _, of in curves[row["alpha"], row["order"]].groupby("key"):
            late = of["round"][of["residual"] > row["level"]].max()
            rounds.append(min(of["round"][of["round"] > np.nan_to_num(late)], default=math.inf))
        rounds.sort()
        assert row["there"] == np.isfinite(rounds).sum()
        assert row["rounds"] == np.median(rounds)
        assert (row["rounds low"], row["rounds high"]) == (rounds[0], rounds[-1])
    means, games = tables_of(str(path), results)
    assert (means.name, games.name) == ("games", "games-reached")
    assert games.frame.pop("mechanism").unique().tolist() == ["alphapf-vds"]  # alpha has a column of its own
    pd.testing.assert_frame_equal(games.frame, table.drop(columns="mechanism"), check_like=True)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.2, math.nan])
def test_a_level_that_is_none(level: float) -> None:
    frame = pd.DataFrame({"a": [1, 1, 1], "x": [1.0, 2.0, 3.0]})
    for by in (report.interval, report.median_interval):
        with pytest.raises(DataError, match="it must be between 0 and 1"):
            by(frame, ["a"], "x", level=level)
