"""Compiled: the equilibria of one cell, a face for every server: components one by one, then all conditions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ._cells import bits, components, priced
from ._component import roots
from ._equations import Part


class Members(NamedTuple):
    """Numbers of what a component has: users, pairs as (server, user), rows as (server, resource)."""

    users: np.ndarray
    pairs: np.ndarray
    rows: np.ndarray


@compiled
def _members(g, chosen, label, c):  # type: ignore[no-untyped-def]
    """Those of component c; pairs by user."""
    servers, users, resources = g.use.shape
    who, pairs, rows = np.empty(users, np.int64), np.empty((users * servers, 2), np.int64), 0
    at = np.empty((servers * resources, 2), np.int64)
    count, taken = 0, 0
    for n in range(users):
        here = False
        for i in range(servers):
            if label[i] == c and g.support[chosen[i]] >> n & 1:
                pairs[taken, 0], pairs[taken, 1] = i, n
                taken += 1
                here = True
        if here:
            who[count] = n
            count += 1
    for i in range(servers):
        if label[i] == c:
            for r in range(resources):
                if g.rows[chosen[i]] >> r & 1:
                    at[rows, 0], at[rows, 1] = i, r
                    rows += 1
    return Members(who[:count], pairs[:taken], at[:rows])


@compiled
def _middles(g, own):  # type: ignore[no-untyped-def]
    """What log prices are measured from, (servers,): such that a user who ties two servers gains the same on both."""
    middle, known = g.middle.copy(), np.zeros(len(g.middle), np.bool_)
    known[own.pairs[0, 0]] = True
    for _ in range(len(middle)):
        for p in range(len(own.pairs)):
            for q in range(len(own.pairs)):
                i, j, n = own.pairs[p, 0], own.pairs[q, 0], own.pairs[p, 1]
                if own.pairs[q, 1] == n and known[i] and not known[j]:
                    middle[j], known[j] = middle[i] + g.gain[j, n] - g.gain[i, n], True
    return middle


@compiled
def _part(g, own, middles):  # type: ignore[no-untyped-def]
    """The equations of a component."""
    pairs, rows = len(own.pairs), len(own.rows)
    user, first = np.empty(pairs, np.int64), np.empty(len(own.users), np.int64)
    log_use, per_task = np.full((pairs, rows), -np.inf), np.zeros((pairs, rows))
    gain, middle, k = np.empty(pairs), np.empty(rows), -1
    for r in range(rows):
        middle[r] = middles[own.rows[r, 0]]
    for p in range(pairs):
        i, n = own.pairs[p, 0], own.pairs[p, 1]
        if k < 0 or own.users[k] != n:
            k += 1
            first[k] = p
        user[p], gain[p] = k, g.gain[i, n]
        for r in range(rows):
            if own.rows[r, 0] == i and g.use[i, n, own.rows[r, 1]] > 0:
                use = g.use[i, n, own.rows[r, 1]]
                log_use[p, r], per_task[p, r] = np.log(use), use / g.size[i, n]
    return Part(g.alpha, user, first, log_use, per_task, gain, middle)


@compiled
def _bounds(g, chosen, label, c, own, part, middle):  # type: ignore[no-untyped-def]
    """What a component's cell asks of its prices from the middles, (conditions, rows): `bounds @ prices >= 0`."""
    rows, most = len(own.rows), len(own.rows) + len(own.users) * len(label)
    table, k = np.zeros((most, rows)), rows
    for r in range(rows):
        table[r, r] = 1.0
    for a in range(len(own.users)):
        home, n = part.first[a], own.users[a]
        i = own.pairs[home, 0]
        for j in range(len(label)):
            if label[j] != c or g.support[chosen[j]] >> n & 1 or g.gain[j, n] == -np.inf:
                continue
            apart = g.alpha * ((g.gain[j, n] - middle[j]) - (g.gain[i, n] - middle[i]))
            for r in range(rows):
                if own.rows[r, 0] == j:
                    table[k, r] = g.use[j, n, own.rows[r, 1]] * np.exp(min(-apart, 0.0))
                elif own.rows[r, 0] == i:
                    table[k, r] = -g.use[i, n, own.rows[r, 1]] * np.exp(min(apart, 0.0))
            table[k] /= np.abs(table[k]).max()
            k += 1
    return table[:k]


@compiled
def _tasks(g, own, part, w, tasks, prices):  # type: ignore[no-untyped-def]
    """Fill tasks (servers, users) and log level prices (servers, resources) of a component; are they what fills it?

    Splits are the shortest that fill rows; a part of -1e-9 is none.
    """
    pairs, users, rows = len(own.pairs), len(own.users), len(own.rows)
    total = np.zeros(users)
    for r in range(rows):
        prices[own.rows[r, 0], own.rows[r, 1]] = w[r]
    for a in range(users):
        home, top, whole = part.first[a], -np.inf, 0.0
        for r in range(rows):
            top = max(top, part.log_use[home, r] + part.alpha * w[r])
        for r in range(rows):
            whole += np.exp(part.log_use[home, r] + part.alpha * w[r] - top)
        total[a] = np.exp(part.gain[home] - (top + np.log(whole)) / part.alpha)
    if not np.isfinite(total.sum()):
        return False
    matrix, rhs = np.zeros((users + rows, pairs)), np.ones(users + rows)
    for p in range(pairs):
        matrix[part.user[p], p] = 1.0
        for r in range(rows):
            matrix[users + r, p] = part.per_task[p, r] * total[part.user[p]]
    if not np.isfinite(matrix.sum()):
        return False
    share = np.linalg.lstsq(matrix, rhs, 1e-12)[0]
    if not np.isfinite(share.sum()) or np.abs(matrix @ share - rhs).max() > 1e-7 or share.min() < -1e-9:
        return False
    for p in range(pairs):
        tasks[own.pairs[p, 0], own.pairs[p, 1]] = max(share[p], 0.0) * total[part.user[p]]
    return True


@compiled
def holds(g, tasks, prices):  # type: ignore[no-untyped-def]
    """Does everything fit, and does no server owe a user more tasks?"""
    servers, users, resources = g.use.shape
    for i in range(servers):
        for r in range(resources):
            used = 0.0
            for n in range(users):
                if tasks[i, n] > 0:
                    used += g.use[i, n, r] / g.size[i, n] * tasks[i, n]
            if used > 1 + 1e-8:
                return False
    for n in range(users):
        total = tasks[:, n].sum()
        for i in range(servers):
            if g.gain[i, n] == -np.inf:
                continue
            top, whole = -np.inf, 0.0
            for r in range(resources):
                if g.use[i, n, r] > 0:
                    top = max(top, np.log(g.use[i, n, r]) + g.alpha * prices[i, r])
            if top == -np.inf:
                return False
            for r in range(resources):
                if g.use[i, n, r] > 0:
                    whole += np.exp(np.log(g.use[i, n, r]) + g.alpha * prices[i, r] - top)
            if np.log(total) + (top + np.log(whole)) / g.alpha < g.gain[i, n] - 1e-8:
                return False
    return True


@compiled
def solutions(g, chosen, tasks, prices, seen):  # type: ignore[no-untyped-def]
    """Fill tasks (solutions, servers, users) and log level prices (solutions, servers, resources) of a cell; how many.

    `seen` counts components that were solved, and those in which solutions were searched for by Newton's method.
    """
    servers, users, resources = g.use.shape
    label, start = np.empty(servers, np.int64), np.empty(servers * resources)
    count = components(g, chosen, servers, label)
    every = np.arange(servers)
    if not priced(g, every, chosen, True, start) and (g.strict or not priced(g, every, chosen, False, start)):
        return 0
    first = np.empty(servers + 1, np.int64)
    first[0] = 0
    for i in range(servers):
        first[i + 1] = first[i] + bits(g.rows[chosen[i]])
    many, most_kept = np.zeros(count, np.int64), 8
    levels = np.full((count, most_kept, servers * resources), -np.inf)
    for c in range(count):
        own = _members(g, chosen, label, c)
        middle = _middles(g, own)
        part = _part(g, own, middle)
        begin, k = np.empty(len(own.rows)), 0
        for i in range(servers):
            if label[i] == c:
                for r in range(first[i], first[i + 1]):
                    begin[k] = start[r] * np.exp(g.alpha * (g.middle[i] - middle[i]))
                    k += 1
        found = np.empty((most_kept, len(own.rows)))
        most = begin.max()
        begin /= most if most > 0 else 1.0
        many[c], searched = roots(part, begin, _bounds(g, chosen, label, c, own, part, middle), found)
        seen[0] += 1
        seen[1] += searched
        good = 0
        at_tasks, at_prices = np.zeros((servers, users)), np.full((servers, resources), -np.inf)
        for k in range(many[c]):
            if _tasks(g, own, part, found[k], at_tasks, at_prices):
                levels[c, good, : len(own.rows)] = found[k]
                good += 1
        many[c] = good
        if good == 0:
            return 0
    total, kept = 1, 0
    for c in range(count):
        total *= many[c]
    for k in range(total):
        tasks[kept], prices[kept], remaining = 0.0, -np.inf, k
        for c in range(count):
            own = _members(g, chosen, label, c)
            _tasks(
                g,
                own,
                _part(g, own, g.middle),
                levels[c, remaining % many[c], : len(own.rows)],
                tasks[kept],
                prices[kept],
            )
            remaining //= many[c]
        if holds(g, tasks[kept], prices[kept]):
            kept += 1
            if kept == len(tasks):
                break
    return kept
