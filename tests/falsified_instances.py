"""Falsified answers of instances, which tools/check.py must refuse:

    PYTHONPATH=.:tests:tools python tests/falsified_instances.py fairopt-instances-2.zip 1000

Tasks, prices in size and sign, levels, shares, weights, limits, capacities, labels and fractions. Where tasks, data or
labels are falsified, the checksum, shares, levels and the scale of prices are made to fit. What is still an answer, as
the mechanism itself or the optimality conditions in exact arithmetic decide, is drawn anew.
"""

from __future__ import annotations

import contextlib
import copy
import decimal
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import check as tool
import numpy as np
from certificates.test_falsified import Exact

import fairopt as fo
from fairopt import mechanisms
from fairopt.errors import DataError

Content = dict[str, Any]
Rng = np.random.Generator
#: What can be falsified of an answer: entries of it, or of its cluster.
PARTS = ("tasks", "prices", "levels", "share", "weight", "max_tasks", "capacity", "label", "fraction")


def factor(rng: Rng) -> Fraction:
    """A factor of another size or sign; relative changes are 1e-4 and more."""
    some = [1 + Fraction(1, 10 ** int(rng.integers(1, 5))), Fraction(int(rng.integers(2, 1000))), Fraction(-1)]
    found = some[rng.integers(3)]
    return 1 / found if rng.random() < 0.5 else found


def changed(value: Any, by: Fraction) -> Any:
    """A number times a factor: of a text a text."""
    return str(Fraction(value) * by) if isinstance(value, str) else float(value * by)


def spoil(f: Content, answer: Content, part: str, rng: Rng) -> bool:
    """Falsify a part in place; False if there is nothing to falsify, or nothing that matters."""
    by, g = factor(rng), f["cluster"]
    if part in ("tasks", "fraction"):
        entry = answer["tasks"][rng.integers(len(answer["tasks"]))] if answer["tasks"] else [0, 0, 0]
        if part == "fraction" and isinstance(entry[2], str):
            exact = Fraction(entry[2])
            near = Fraction(exact.numerator + 1, exact.denominator), exact.limit_denominator(10**6), exact + 10**-12
            entry[2] = str(Fraction(near[rng.integers(3)]))
            return Fraction(entry[2]) != exact
        entry[2] = changed(entry[2], by)
        return part == "tasks" and entry[2] not in (0, "0")
    if part == "prices":
        if not (tables := answer.get("prices")) or not (table := tables[rng.integers(len(tables))]):
            return False
        entry = table[rng.integers(len(table))]
        worth = Fraction(entry[2]) * Fraction(g["capacity"][entry[0]][entry[1]])
        entry[2] = changed(entry[2], by)
        return isinstance(entry[2], str) or abs(worth * (by - 1)) > Fraction(1, 10**6)  # at which all is worth 1
    if part in ("levels", "share"):
        values = answer.get(part) or [None]
        n = int(rng.integers(len(values)))
        if values[n] not in (None, 0, 0.0, "0"):
            values[n] = changed(values[n], by)
            return True
        return False
    if part == "label":
        kind, before = tool.RULES[answer["mechanism"]][1], answer["mechanism"]
        answer["mechanism"] = str(rng.choice([name for name, rule in tool.RULES.items() if rule[1] == kind]))
        return answer["mechanism"] != before
    if part not in g:
        return False
    row = g[part] if part != "capacity" else g[part][rng.integers(len(g[part]))]
    k = int(rng.integers(len(row)))
    row[k] = row[k] and changed(row[k], abs(by))
    f["digest"] = tool.digest(f)
    return bool(row[k]) and abs(by) != 1


def made_to_fit(f: Content, answer: Content) -> None:
    """Shares, levels and the scale of prices that fit what is falsified, in place."""
    p, share = tool.claimed(f, answer)
    form = str if p.exact else float
    if share is not None:
        level = [
            x * (u or 0) / (1 if p.queues is not None else phi) for x, u, phi in zip(p.X, share, p.phi, strict=True)
        ]
        answer["share"] = [None if u is None else form(u) for u in share]
        answer["levels"] = [None if u is None else form(one) for u, one in zip(share, level, strict=True)]
    for table in answer.get("prices", ()):
        worth = Counter[int]()
        for i, r, price in table:
            worth[i * p.own] += Fraction(price) * Fraction(p.c[i][r])
        for entry in table:
            entry[2] = changed(entry[2], 1 / worth[entry[0] * p.own] if worth[entry[0] * p.own] else Fraction(1))


def wrong(f: Content, answer: Content) -> bool:
    """Is it no answer: are tasks others than those of the mechanism, or are optimality conditions missed?"""
    g, name, given = f["cluster"], answer["mechanism"], dict(answer.get("parameters", {}))
    try:
        p = tool.claimed(f, answer)[0]
    except ValueError:  # no such mechanism of such a cluster
        return True
    limits = [np.inf if most is None else most for most in g.get("max_tasks", [None] * len(g["users"]))]
    cluster = fo.Cluster(**{key: g[key] for key in g if key != "max_tasks"}, max_tasks=limits)
    if name in ("fds", "gfj"):
        given = {"beta": 2.0, "lam": -2.0}
    if name in ("ceei", "asset-fairness"):
        given["scope"] = "servers"
    if "alpha" in given:
        given["alpha"] = float(given["alpha"])
    if name == "tree":
        given = {"queues": fo.Queues(f["queues"]), "combine": f["combine"]}
    try:
        mechanism = mechanisms.get(name, **given)
        found = mechanism.solve(cluster, 1e-9, throw=False)
    except DataError:
        return True
    table = np.array(p.f["tasks"], dtype=float)
    stated, solved = table.sum(axis=1), found.arrays.user_tasks
    if (abs(stated - solved) <= 1e-6 * np.maximum(solved, 1e-9)).all():
        return False
    if found.criterion.scope in ("servers", "pool") and found.criterion.alpha > 0:
        return True
    logs: list[list[float | None]] = [[None] * p.M for _ in range(p.K)]
    for i, r, price in answer["prices"][0] if answer.get("prices") else ():
        logs[i][r] = float(np.log(float(Fraction(price))))
    with decimal.localcontext(decimal.Context(prec=40, traps=[])):
        return Exact(p.f | {"tasks": table.tolist()}, logs).refused()


def refused(f: Content, answer: Content) -> bool:
    """Does the verifier refuse the answer?"""
    try:
        p, *errors = tool.verify(f, answer)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return True
    return any(error[0] > p.tol for error in errors)


def falsification(files: Sequence[Content], rng: Rng) -> tuple[str, Content, Content]:
    """A falsified answer of one of the instances, and what is falsified."""
    while True:
        f = copy.deepcopy(files[rng.integers(len(files))])
        if not f["answers"]:
            continue
        part, answer = str(rng.choice(PARTS)), f["answers"][rng.integers(len(f["answers"]))]
        stated = part in ("prices", "levels", "share", "fraction")  # these are wrong by their size
        if spoil(f, answer, part, rng) and (stated or wrong(f, answer)):
            if not stated:
                with contextlib.suppress(ArithmeticError, ValueError):
                    made_to_fit(f, answer)
            return part, f, answer


def main(path: str, count: int, seed: int = 0) -> None:
    files, rng, drawn, passed = tool.archive(path), np.random.default_rng(seed), Counter[str](), []
    begun = time.process_time()
    for k in range(count):
        part, f, answer = falsification(files, rng)
        drawn[part] += 1
        if not refused(f, answer):
            passed.append(part)
            print(f"{k}: {f['name']}, {answer['mechanism']}: {part}", json.dumps(answer)[:300], flush=True)
    print(f"{count - len(passed)} of {count} refused, {time.process_time() - begun:.0f} CPU seconds: {dict(drawn)}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
