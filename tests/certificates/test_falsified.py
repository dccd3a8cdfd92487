"""Falsified allocation files: what `certify` passes, `tools/check.py` does, and the reverse; they share no code.

All parts are falsified: tasks, prices in size and sign, shares, weights, limits, floors, alpha. Refused is an error of
ten times the tolerance. That the number itself is right is tested in `test_backward.py`.
"""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
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
LOOSE = 1e-5  # ten times the tolerance
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


# -- who passes it ------------------------------------------------------------------------------------


def by_checker(content: Content, path: Path) -> float:
    path.write_text(json.dumps(content))
    try:
        with np.errstate(all="ignore"):
            problem = tool.read(path)
            return float(max(tool.feasibility(problem)[0], tool.error(problem)[0]))
    except ValueError:
        return np.inf


def by_certificate(content: Content, path: Path) -> tuple[float, float]:
    """The error, and that of the checker, which is also shown the prices that are found; of max-min none may be."""
    others = by_checker(content, path)
    try:
        allocation = fo.Allocation.load(path)
    except DataError:
        return np.inf, others
    cluster, rule = allocation.cluster, allocation.criterion
    certificate, prices = allocation.judge(cluster, allocation.tasks, allocation.log_prices)
    if prices is not None:
        shown = np.where(np.isfinite(prices), prices, None).tolist()
        return certificate.residual, min(others, by_checker(content | {"log_prices": shown}, path))
    if certificate.passes(1e-6) and np.isinf(rule.alpha) and rule.scope in ("pool", "servers") and not rule.floor.any():
        best = rational.leximin(cluster, rule, rule.limits(cluster))
        if best is not None:
            others = min(
                others, np.abs(allocation.arrays.user_tasks / best.tasks.sum(axis=1).astype(float) - 1).max() / 100
            )
    return certificate.residual, others if not rule.floor.any() else certificate.residual


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_lie_passes(mechanism: Mechanism, tmp_path: Path) -> None:
    refused = 0
    for seed in range(20):
        lie = spoiled(json.loads(honest(mechanism, seed % 4)), np.random.default_rng(seed))
        own, others = by_certificate(lie, tmp_path / "a.json")
        assert own > 1e-6 or others <= LOOSE, seed
        assert others > 1e-6 or own <= LOOSE, seed
        refused += min(own, others) > LOOSE
    assert refused >= 2
