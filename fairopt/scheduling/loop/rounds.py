"""Rounds of decisions, and the loop over instants.

After a round no waiting task fits any server. The next round therefore searches all servers only for *fresh* groups,
and for other groups only servers with released capacity.
"""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from .events import down, end, leave, next_end, pop, settle, share, start, up, wait
from .gangs import gangs
from .places import find, scan
from .tables import (  # fmt: skip
    ACTIVE,
    BASE,
    BEGIN,
    CHANGE,
    CHOSEN,
    COMES,
    DONE,
    DOWN,
    ENDS,
    FIRST,
    FRESH,
    GAINED,
    GROUPS,
    INFINITE,
    INSTANTS,
    JOB_BEFORE,
    LEAVES,
    LIMIT_RAISED,
    LINKED,
    LISTED,
    NOW,
    OPEN,
    PLACEMENT,
    QUEUE,
    RELEASED,
    SINCE,
    SIZE,
    SLOWS,
    STACK,
    STARTED,
    STOP,
    STRICT,
    TASKS,
    TO_DO,
    TRACKED,
    UP,
    USER,
    WAIT,
    WAITS,
    WHERE,
    WHICH,
    first_of,
    next_leaf,
    put,
    sufficient,
)

#: Options of the policy. PAIRS: (queue, server) pairs are compared. FURTHEST: only pairs of the queues of lowest shares
#: are compared (`Policy.competing`). INDEXED: servers are found by an index. LIMITED: queues have limits. ANEW: the
#: policy has methods on the whole state. GANGS: see `gangs.GANGS`.
PAIRS, FURTHEST, INDEXED, LIMITED, ANEW, GANGS = False, False, True, False, False, 0
#: Results of a call of the loop.
FINISHED, GOES_ON, GROW = range(3)


@compiled(inline=True)
def limit(t, q):  # type: ignore[no-untyped-def]
    """Upper bound of the policy on every cost of a queue, relative to the total of the cost."""
    return np.inf


@compiled(inline=True)
def anew(t):  # type: ignore[no-untyped-def]
    """Evaluate shares and limits of a policy with methods before a decision; rules are evaluated on demand."""


@compiled(inline=True)
def among(t, count):  # type: ignore[no-untyped-def]
    """Sort candidates by share and index, and return the number of candidates that compete."""
    if not FURTHEST:
        return count
    chosen = t.lists[CHOSEN]
    for k in range(count):
        t.values[chosen[k], 1] = share(t, chosen[k])
    for k in range(1, count):  # insertion sort, as candidates are nearly sorted
        q, j = chosen[k], k
        while j > 0 and _before(t, q, chosen[j - 1]):
            chosen[j] = chosen[j - 1]
            j -= 1
        chosen[j] = q
    # Rounding errors, as in (1 - 0.7) 10 = 3, must not add a candidate.
    return min(max(1, int(np.ceil(t.numbers[0, 0] * count - 1e-9))), count)


@compiled(inline=True)
def _before(t, one, other):  # type: ignore[no-untyped-def]
    """True if a queue precedes another by its share, or by its index if their shares are equal."""
    a, b = t.values[one, 1], t.values[other, 1]
    return a < b or (a == b and one < other)


@compiled(inline=True)
def _allowed(t, g):  # type: ignore[no-untyped-def]
    """True if the queue of a group is within its limit after the start of one more task of the group."""
    q = t.groups[g, QUEUE]
    for j in range(len(t.total)):
        if (t.allocated[q, j] + t.cost[g, j]) / t.total[j] > t.limit[q]:
            return False
    return True


@compiled(inline=True)
def _first_that_fits(t, q, few):  # type: ignore[no-untyped-def]
    """First waiting group of a queue that may start on one of `few` servers with released capacity, or `INFINITE`."""
    base, size, first, found = t.queues[q, BASE], t.queues[q, SIZE], t.queues[q, FIRST], INFINITE
    for i in range(few):
        s, k = t.lists[GAINED, i], -1
        while True:
            k = next_leaf(t.waits, base, size, np.int64(-1), t.free, s, k + 1)
            if k < 0:
                break
            if t.eligible[t.groups[first + k, PLACEMENT], s] and (not LIMITED or _allowed(t, first + k)):
                found = min(found, first + k)
                break
    return found


@compiled(inline=True)
def _envelope(t, few):  # type: ignore[no-untyped-def]
    """Compute the largest free amounts among the first `few` servers with released capacity."""
    for r in range(t.free.shape[1]):
        t.envelope[0, r] = -1
        for i in range(few):
            t.envelope[0, r] = max(t.envelope[0, r], t.free[t.lists[GAINED, i], r])


@compiled(inline=True)
def _next_queue(t, q):  # type: ignore[no-untyped-def]
    """Index of the next queue with a group that may fit the amounts of `_envelope`, or -1."""
    return next_leaf(t.roots, np.int64(0), len(t.roots) // 2, np.int64(-1), t.envelope, np.int64(0), q + 1)


@compiled(inner=True)
def _update_limits(t):  # type: ignore[no-untyped-def]
    """Update limits, and mark as fresh the waiting groups of queues whose tasks ended or whose limits increased."""
    for q in range(len(t.queues)):
        if t.n[ACTIVE] and not ANEW:
            most = limit(t, q) if t.queues[q, SINCE] >= 0 else t.limit[q]
            if most > t.limit[q]:
                t.queues[q, LIMIT_RAISED] = 1
            t.limit[q] = most
    for q in range(len(t.queues)):
        if (ANEW or t.queues[q, LIMIT_RAISED]) and t.queues[q, WAITS] > 0:
            for g in range(t.queues[q, FIRST], t.queues[q, FIRST] + t.queues[q, GROUPS]):
                if t.groups[g, WAIT] > 0:
                    put(t, t.groups, g, FRESH)
        t.queues[q, LIMIT_RAISED] = 0
    t.n[ACTIVE] = 0


@compiled(inner=True)
def _all_fresh(t):  # type: ignore[no-untyped-def]
    """Mark as fresh all waiting groups that fit the largest free amounts of servers with released capacity."""
    _envelope(t, t.n[GAINED])
    q = _next_queue(t, -1)
    while q >= 0:
        base, size, k = t.queues[q, BASE], t.queues[q, SIZE], -1
        while True:
            k = next_leaf(t.waits, base, size, np.int64(-1), t.envelope, np.int64(0), k + 1)
            if k < 0:
                break
            put(t, t.groups, t.queues[q, FIRST] + k, FRESH)
        q = _next_queue(t, q)


@compiled(inline=True)
def _candidates(t, few):  # type: ignore[no-untyped-def]
    """List queues with a fresh group (for pairs, also with a group that may fit) as candidates; return their number.

    Fresh groups are sorted by index, and the range of fresh groups of each candidate is recorded.
    """
    fresh, chosen, count, last = t.lists[FRESH], t.lists[CHOSEN], 0, -1
    for k in range(1, t.n[FRESH]):  # insertion sort, as fresh groups are nearly sorted
        g, j = fresh[k], k
        while j > 0 and fresh[j - 1] > g:
            fresh[j] = fresh[j - 1]
            j -= 1
        fresh[j] = g
    for k in range(t.n[FRESH]):
        q = t.groups[fresh[k], QUEUE]
        if q != last:
            chosen[count], t.queues[q, WHERE], t.queues[q, BEGIN] = q, -1, k
            t.queues[q, LISTED], last = 1, q
            count += 1
        t.queues[q, STOP] = k + 1
    if PAIRS and few > 0:
        _envelope(t, few)
        q = _next_queue(t, -1)
        while q >= 0:
            if not t.queues[q, LISTED]:
                chosen[count], t.queues[q, WHERE] = q, -1
                t.queues[q, BEGIN] = t.queues[q, STOP] = 0
                count += 1
            q = _next_queue(t, q)
    return count


@compiled(inner=True)
def _best(t, q, few):  # type: ignore[no-untyped-def]
    """Find the next group of a candidate that fits, and its best server; False if there is none."""
    queue, s, value = t.queues[q], -1, np.inf
    g = _first_that_fits(t, q, few)
    while queue[BEGIN] < queue[STOP]:
        fresh = t.lists[FRESH, queue[BEGIN]]
        if fresh > g:
            break
        if t.groups[fresh, WAIT] > 0 and (not LIMITED or _allowed(t, fresh)):
            s, value = find(t, fresh)
            if s >= 0:
                g = fresh
                break
        queue[BEGIN] += 1
    if s < 0 and g < INFINITE:
        s, value = scan(t, g, t.lists[GAINED, :few])
    queue[WHICH], queue[WHERE], t.values[q, 0] = g, s, value
    return s >= 0


@compiled(inline=True)
def _kept(t, count, few, q, s):  # type: ignore[no-untyped-def]
    """Update values of candidates, remove candidates without a task that fits, and return the number of the rest.

    The best server of a queue remains the best until the queue or the server is served, as values do not decrease.
    """
    chosen, left = t.lists[CHOSEN], 0
    for k in range(count):
        who, keep = chosen[k], True
        if not PAIRS:
            t.values[who, 0] = -t.rank[len(t.rank) // 2 + who, 0]
        elif ANEW or who == q or t.queues[who, WHERE] == s:  # the best server is unknown (-1) or was served
            keep = t.queues[who, WAITS] > 0 and _best(t, who, few)
        if keep:
            chosen[left] = who
            left += 1
    return left


@compiled(inline=True)
def _search(t, few):  # type: ignore[no-untyped-def]
    """Find the queue of lowest share among queues without fresh groups that have a group that fits.

    Returns the queue, the group and the share, or -1, -1 and infinity if there is no such queue. The search is a branch
    and bound over the tree of queues, lower shares first; subtrees whose smallest demands do not fit are skipped.
    """
    stack, leaves = t.lists[STACK], len(t.roots) // 2
    found, group, lowest = -1, -1, np.inf
    _envelope(t, few)
    stack[0], top = 1, 1
    while top > 0:
        top -= 1
        node = stack[top]
        share = -t.rank[node, 0]  # lower bound of the shares of all queues in the subtree
        if share > lowest or not sufficient(t.roots, node, -1, t.envelope, 0):
            continue
        if node < leaves:
            first = 2 * node if t.rank[2 * node, 0] >= t.rank[2 * node + 1, 0] else 2 * node + 1
            stack[top], stack[top + 1] = first ^ 1, first
            top += 2
            continue
        q = node - leaves
        if not t.queues[q, LISTED] and (share < lowest or q < found or found < 0):
            g = _first_that_fits(t, q, few)
            if g < INFINITE:
                found, group, lowest = q, g, share
    return found, group, lowest


@compiled(inline=True)
def _lowest(t, count, found, lowest):  # type: ignore[no-untyped-def]
    """Position of the candidate of lowest value, if it precedes the queue `found` of value `lowest`; or -1."""
    best = np.int64(-1)
    for k in range(count):
        q = t.lists[CHOSEN, k]
        value = t.values[q, 0]
        if found < 0 or value < lowest or (value == lowest and q < found):
            best, found, lowest = np.int64(k), q, value
    return best


@compiled(inner=True)
def _decide(t):  # type: ignore[no-untyped-def]
    """Serve queues with a group that fits, the queue (or pair) of lowest value first."""
    few, chosen = t.n[GAINED], t.lists[CHOSEN]
    # With many servers with released capacity, the index is faster than an inspection of each server.
    if few > 6 and INDEXED:
        _all_fresh(t)
        few = 0
    count, q, s, g = _candidates(t, few), -1, -1, -1
    while True:
        anew(t)
        count = _kept(t, count, few, q, s)
        q, g, s, lowest = -1, -1, -1, np.inf
        if few > 0 and not PAIRS:
            q, g, lowest = _search(t, few)
        competing = among(t, count)
        while True:
            k = _lowest(t, competing, q, lowest)
            if k >= 0:
                one = chosen[k]
                if not PAIRS and not (t.queues[one, WAITS] > 0 and _best(t, one, few)):
                    count -= 1
                    competing, chosen[k] = count, chosen[count]
                    continue
                q, g, s = one, t.queues[one, WHICH], t.queues[one, WHERE]
            break
        if q < 0:
            return
        if s < 0:
            s, lowest = scan(t, g, t.lists[GAINED, :few])
        start(t, g, s)


@compiled(inner=True)
def _strict(t):  # type: ignore[no-untyped-def]
    """Repeatedly start a task of the first group of the queue of lowest share, until that task may not start."""
    leaves = len(t.rank) // 2
    while True:
        anew(t)
        if t.rank[1, 0] == -np.inf:
            return
        node = 1
        while node < leaves:
            node = 2 * node if t.rank[2 * node, 0] == t.rank[node, 0] else 2 * node + 1
        g = first_of(t, node - leaves)
        if LIMITED and not _allowed(t, g):
            return
        s, _ = find(t, g)
        if s < 0:
            return
        start(t, g, s)


@compiled(inline=True)
def _round(t):  # type: ignore[no-untyped-def]
    """Run one round, and clear its lists."""
    if LIMITED:
        _update_limits(t)
    if GANGS:
        gangs(t)
    elif t.n[STRICT]:
        _strict(t)
    elif t.n[GAINED] > 0 or t.n[FRESH] > 0:
        _decide(t)
    for k in range(t.n[GAINED]):
        t.servers[t.lists[GAINED, k], GAINED] = 0
    for k in range(t.n[FRESH]):
        g = t.lists[FRESH, k]
        t.groups[g, FRESH] = t.queues[t.groups[g, QUEUE], LISTED] = 0
    t.n[GAINED] = t.n[FRESH] = 0


@compiled(inner=True)
def _come(t, g):  # type: ignore[no-untyped-def]
    """Add the tasks of an arriving group to its queue, unless the user has departed."""
    if t.groups[g, USER] >= 0:
        wait(t, g, t.groups[g, TASKS])


@compiled(borrows=True)
def advance(t, until, instants):  # type: ignore[no-untyped-def]
    """Process up to `instants` instants (ends, changes, arrivals, one round); returns the reason to stop."""
    n, changes = t.n, t.changes
    for _ in range(instants):
        now = next_end(t.heap, t.runs, n)
        if n[CHANGE] < changes.shape[1]:
            now = min(now, changes[0, n[CHANGE]])
        if now == INFINITE or now > until:
            return FINISHED
        # At most so many tasks start at this instant: tasks that wait or will arrive, and running tasks whose server
        # fails.
        if n[STARTED] + n[OPEN] + n[TRACKED] * n[ENDS] > len(t.runs):
            return GROW
        n[NOW] = now
        while next_end(t.heap, t.runs, n) == now:
            end(t, pop(t.heap, n), np.int64(DONE))
        while n[CHANGE] < changes.shape[1] and changes[0, n[CHANGE]] == now:
            what, index = changes[1, n[CHANGE]], changes[2, n[CHANGE]]
            if what == COMES and (
                not n[LINKED] or t.links[JOB_BEFORE, index] < 0 or t.jobs[TO_DO, t.links[JOB_BEFORE, index]] == 0
            ):
                _come(t, index)
            elif what == UP:
                up(t, index)
            elif what == DOWN:
                down(t, index)
            elif what == LEAVES:
                leave(t, index)
            n[CHANGE] += 1
        for k in range(n[RELEASED]):
            _come(t, t.lists[RELEASED, k])
        n[RELEASED] = 0
        _round(t)
        if n[SLOWS]:
            settle(t)
        n[INSTANTS] += 1
    return GOES_ON
