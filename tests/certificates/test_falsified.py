"""Falsified allocation files: neither `certify` nor `tools/check.py` passes one that exact arithmetic refuses.

All parts are falsified: tasks, prices in size and sign, shares, weights, limits, floors, alpha. What is wrong is told
by the optimality conditions, in fractions and decimals of 40 digits, at ten times the tolerance.
"""

from __future__ import annotations

import contextlib
import copy
import decimal
import json
import tempfile
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import check as tool
import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.certificates import rational
from fairopt.errors import DataError
from fairopt.mechanisms import Mechanism

MECHANISMS: list[Mechanism] = [
    *(fo.AlphaFair(alpha, scope="servers") for alpha in (0, 0.5, 1, 2, 7)),
    *(fo.AlphaPFVDS(alpha) for alpha in (0, 0.5, 2)),
    *(fo.GuaranteedAlphaFair(2), fo.GuaranteedAlphaFair(np.inf), fo.FDS(2, -2), fo.FDS(0.5, 2.0)),
    *(fo.DRF(), fo.DRFH(), fo.TSF(), fo.PSDSF(), fo.PerServerDRF()),
]
LOOSE = Fraction(1, 100_000)  # ten times the tolerance
Rng = np.random.Generator
Content = dict[str, Any]


@cache
def honest(mechanism: Mechanism, seed: int) -> str:
    """The text of the file of an answer to a drawn cluster, the next that it is defined on."""
    cluster = draw(("plain", "nice")[seed % 2], seed, 4, 3, 3)
    if len(cluster.users) > 1 and cluster.runnable.all():
        with contextlib.suppress(DataError), tempfile.TemporaryDirectory() as folder:
            mechanism.solve(cluster).save(path := Path(folder) / "honest.json")
            return path.read_text()
    return honest(mechanism, seed + 1000)


# -- what is falsified --------------------------------------------------------------------------------


def size(rng: Rng) -> float:
    """A number of any size, as well as those at which doubles end or lose digits."""
    exponent = rng.choice([rng.uniform(-3, 3), rng.uniform(-323.3, 308.2), 15, 20, -20, 2.8718, -323.3])
    return float(rng.choice([-1, 1]) * 10.0**exponent)


def spoiled(content: Content, rng: Rng) -> Content:
    """The same with one to three parts falsified."""
    f = copy.deepcopy(content)
    c, g = f["criterion"], f["cluster"]
    x, demand, capacity = (np.array(each, dtype=float) for each in (f["tasks"], g["demand"], g["capacity"]))
    users, prices = len(x), f["log_prices"] or [[0.0] * capacity.shape[1]] * len(capacity)
    flat = [None if p is None else float(p) for p in np.array(prices, dtype=object).ravel()]
    for what in rng.choice(12, rng.integers(1, 4), replace=False):
        some = rng.random(users) < 0.5
        if what == 0:  # another full allocation
            x = np.maximum(x * rng.uniform(0.3, 2, x.shape), 0)
            with np.errstate(all="ignore"):
                x /= np.nanmax(np.where(capacity > 0, x.T @ demand / capacity, np.nan), axis=1, initial=1e-300)
        elif what == 1:
            x = x * np.where(rng.random(x.shape) < 0.5, 1 - rng.choice([1e-2, 1e-4, 1e-9, 1.0]), 1)
        elif what == 2:
            x[rng.integers(users), rng.integers(x.shape[1])] *= abs(size(rng))
        elif what == 3:
            add = size(rng)
            flat = [None if p is None else p + add for p in flat]
        elif what == 4:
            flat = [size(rng) if rng.random() < 0.5 else p for p in flat]
        elif what == 5:
            flat = [(size(rng), -744.44, 0.0, None)[rng.integers(4)]] * len(flat)
        elif what == 6:
            flat = [p and p * float(rng.choice([-1, 1e3, 1e-3, 1e17])) for p in flat]
        elif what == 7 and c.get("share"):
            c["share"] = [u and float(np.clip(u * abs(size(rng)), 5e-324, 1e308)) for u in c["share"]]
        elif what == 8:
            c["weight"] = [abs(size(rng))] * users if rng.random() < 0.5 else [abs(size(rng)) for _ in range(users)]
        elif what == 9 and c["scope"] in ("pool", "servers"):
            c["floor"] = np.where(some, x.sum(axis=1), c.get("floor", [0.0] * users)).clip(0).tolist()
        elif what == 10:
            c["cap"] = [float(t) if here and t > 0 else None for t, here in zip(x.sum(axis=1), some, strict=True)]
        elif what == 11 and c["alpha"] != "inf":
            c["alpha"] = abs(size(rng))
    ends = np.finfo(float).max
    inside = [None if p is None else float(np.clip(p, -ends, ends)) for p in flat]
    f["log_prices"] = np.array(inside, dtype=object).reshape(np.shape(prices)).tolist()
    f["tasks"] = np.nan_to_num(x, posinf=ends).tolist()
    return f


# -- what exact arithmetic refuses ---------------------------------------------------------------------


class Exact:
    """Numbers of a file as fractions, and what they say of it."""

    def __init__(self, f: Content, log_prices: Any) -> None:
        g, rule = f["cluster"], f["criterion"]
        self.c, self.d, self.x = (
            np.vectorize(Fraction, otypes=[object])(t) for t in (g["capacity"], g["demand"], f["tasks"])
        )
        self.N, self.K = self.x.shape
        some = [None] * self.N
        self.q = [min([Fraction(v) for v in both if v is not None], default=None)
                  for both in zip(g.get("max_tasks") or some, rule.get("cap") or some, strict=True)]  # fmt: skip
        self.floor = [Fraction(v) for v in rule.get("floor") or [0] * self.N]
        self.phi = [Fraction(v) for v in rule.get("weight") or g.get("weight") or [1] * self.N]
        self.u = [v if v is None else Fraction(v) for v in rule.get("share") or some]
        self.rule, self.scope, self.X = rule, rule["scope"], self.x.sum(axis=1)
        self.alpha = rule["alpha"] if rule["alpha"] == "inf" else Fraction(rule["alpha"])
        eligible = g.get("eligible") or [[1] * self.K] * self.N
        self.gamma = np.array([[min(c / d for c, d in zip(self.c[i], self.d[n], strict=True) if d) * int(eligible[n][i])
                                for i in range(self.K)] for n in range(self.N)])  # fmt: skip
        self.pairs = [k for k in np.ndindex(self.x.shape) if self.gamma[k] and self.q[k[0]] != 0]
        self.rows = {(i, r) for n, i in self.pairs for r in np.flatnonzero(self.d[n]).tolist()}
        self.use, self.L = self.x.T @ self.d, log_prices
        self.own = self.scope in ("game", "per_server")

    def infeasible(self) -> bool:
        over = any(self.use[k] > self.c[k] * (1 + LOOSE) for k in np.ndindex(self.c.shape))
        users = zip(self.X, self.q, self.floor, strict=True)
        wrong = any((q is not None and q * (1 + LOOSE) < X) or low * (1 - LOOSE) > X for X, q, low in users)
        pairs = zip(self.x.flat, self.gamma.flat, strict=True)
        return over or wrong or any(x < -g * LOOSE or (x and not g) for x, g in pairs)

    def refused(self) -> bool:
        if self.infeasible():
            return True
        if self.alpha != "inf":
            return all(self.off(tau) for tau in (LOOSE, Fraction(1e-6), Fraction(1e-9), Fraction(1e-12)))
        return any(map(self.owed, range(self.K))) if self.own else self.apart()

    def worth(self) -> Any:
        """log m of every pair."""
        a, log = (
            Decimal(self.alpha.numerator) / Decimal(self.alpha.denominator),
            lambda v: Decimal(v.numerator).ln() - Decimal(v.denominator).ln(),
        )
        who = {n for n, _ in self.pairs}
        if "fair" in self.rule:
            s = {n: log(self.u[n] * self.X[n]) for n in who}
            fair = {n: a * log(self.phi[n]) - a * s[n] for n in who}
            top = max(fair[n] + s[n] for n in who)
            total, all_s = sum((fair[n] + s[n] - top).exp() for n in who).ln() + top, sum(v.exp() for v in s.values())
            f, e = Decimal(self.rule["fair"]), Decimal(self.rule["efficient"])
            return {(n, i): log(self.u[n]) + (f * (fair[n] - total).exp() + e / all_s).ln() for n, i in self.pairs}
        return {(n, i): (1 - a) * (-log(self.gamma[n, i]) if self.own else log(self.u[n]))
                + (a * (log(self.phi[n]) - log(self.X[n])) if a else 0) for n, i in self.pairs}  # fmt: skip

    def off(self, tau: Fraction) -> bool:
        """Are conditions of finite alpha missed, at prices of rows that are full to within tau?"""
        game, A = self.own, 1 if "fair" in self.rule else max(self.alpha, 1)
        if self.alpha and any(self.X[n] <= 0 for n, _ in self.pairs):
            return True
        priced = [k for k in self.rows if self.use[k] >= self.c[k] * (1 - tau) and self.L[k[0]][k[1]] is not None]
        price, worth = {}, self.worth()
        for i in range(self.K):
            tops = [Fraction(self.L[j][r]) for j, r in priced if j == i or not game]
            for n in (n for n, j in self.pairs if j == i):
                parts = [
                    (Fraction(self.L[i][r]) - max(tops), self.d[n, r]) for j, r in priced if j == i and self.d[n, r]
                ]
                total = sum(
                    (Decimal(int(v)) + Decimal(float(v - int(v)))).exp()
                    * (Decimal(d.numerator) / Decimal(d.denominator))
                    for v, d in parts
                )
                price[n, i] = total.ln() if total else Decimal("-inf")
        unit = {n: self.X[n] if self.alpha else sum(self.gamma[n]) for n, _ in self.pairs}
        least = price if game else {k: min(price[j] for j in self.pairs if j[0] == k[0]) for k in self.pairs}
        high, low = defaultdict(list), defaultdict(list)
        for n, i in self.pairs:
            o, seller = worth[n, i] - least[n, i], i if game else 0
            if self.q[n] is None or self.X[n] < self.q[n] * (1 - LOOSE):
                high[seller].append(o)
            part = (self.x[n, i] if game else self.X[n]) > LOOSE * unit[n]
            if part and (game or self.X[n] > self.floor[n] * (1 + LOOSE)):
                low[seller].append(o)
            if not game and self.x[n, i] > LOOSE * unit[n] and price[n, i] - least[n, i] > LOOSE:
                return True
        wide = Decimal(float(2 * A * LOOSE))
        return any(not max(some) - min(low[seller], default=max(some)) <= wide for seller, some in high.items())

    def owed(self, i: int) -> bool:
        """Could a user of server i have more, at the cost of those above it?"""
        here = [n for n, j in self.pairs if j == i]
        alone = self.scope == "per_server"
        X = {n: self.x[n, i] if alone else self.X[n] for n in here}
        level = {n: X[n] / self.gamma[n, i] / self.phi[n] for n in here}
        idle = [max(c - use, Fraction(0)) for c, use in zip(self.c[i], self.use[i], strict=True)]
        above = {h: [idle[r] + sum(self.x[m, i] * self.d[m, r] for m in here if level[m] > level[h])
                     for r in range(len(idle))] for h in here}  # fmt: skip
        for n in here:
            room = self.q[n] is None or alone or self.q[n] * (1 - LOOSE) > X[n]
            needs = np.flatnonzero(self.d[n]).tolist()
            if X[n] <= 0 or (room and min(
                max(level[h] / level[n] - 1, min(above[h][r] / (self.d[n, r] * X[n]) for r in needs))
                for h in here if level[h] >= level[n]) > LOOSE):  # fmt: skip
                return True
        return False

    def apart(self) -> bool:
        """Are tasks of max-min further than 1e-3 from the exact optimum?"""
        if any(self.floor):
            return False  # not known
        usable, rate = np.zeros(self.x.shape, dtype=bool), [Fraction(0)] * self.N
        for n, i in self.pairs:
            usable[n, i], rate[n] = True, self.phi[n] / self.u[n]
        limits = np.array([Fraction(10) ** 999 if q is None else q for q in self.q], dtype=object)
        found = rational.optimum(self.c, self.d, usable, np.array(rate), limits)
        best = found.tasks.sum(axis=1) if found else self.X
        return any(abs(X - most) * 1000 > most for X, most in zip(self.X, best, strict=True))


def judged(f: Content, path: Path, always: bool = True) -> tuple[bool, bool, bool]:
    """Do fairopt and the checker pass a file, and does exact arithmetic refuse it, asked `always` or if one passes?"""
    path.write_text(json.dumps(f))
    prices = [f["log_prices"]]
    try:
        allocation = fo.Allocation.load(path)
        passes = not allocation.flagged
        found = allocation.judge(allocation.cluster, allocation.tasks, allocation.log_prices)[1]
        if found is not None and found.ndim == 2:
            prices.append(np.where(np.isfinite(found), found, None).tolist())  # of proportional servers those of one
    except DataError:
        passes = False
    try:
        checked = all(found[0] <= 1e-6 for found in tool.judge(tool.read(path)))
    except ValueError:
        checked = False
    with decimal.localcontext(decimal.Context(prec=40, traps=[])):
        wrong = (always or passes or checked) and all(Exact(f, some).refused() for some in prices)
    return passes, checked, wrong


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_lie_passes(mechanism: Mechanism, tmp_path: Path) -> None:
    refused = 0
    for seed in range(20):
        content = json.loads(honest(mechanism, seed % 4))
        lie = spoiled(content, np.random.default_rng(seed))
        passes, checked, wrong = judged(lie, tmp_path / "a.json", seed < 6)
        assert not ((passes or checked) and wrong), seed
        refused += wrong
    assert refused >= 2
