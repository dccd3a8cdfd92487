"""The arrays that a simulation runs on, and the columns of those that hold several things."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.loops import bundle, compiled
from ...model._arrays import Array, Mask
from ..workload import Whole

#: No demand, no time, no group: larger than any.
BIG = int(np.iinfo(np.int64).max)
#: What happens to a server, a user or a group, in this order at one instant.
DOWN, UP, LEAVES, COMES = 0, 1, 2, 3
#: How a run ended: it goes on when the simulation ends; the task is done; its server left; its user left.
RUNNING, DONE, EVICTED, GONE = 0, 1, 2, 3

# Rows of `Tables.lists`, the lengths of these in `Tables.n`, and columns that say who is listed: servers whose index is
# stale, that gained room at this instant, where other tasks run than before; groups that may fit anywhere, and that
# come as the job before has ended; and candidates of a round.
STALE, GAINED, MOVED, FRESH, RELEASED, STACK, CHOSEN = range(7)
# More of `n`: counts, positions, and options.
NOW, STARTED, ENDS, CHANGE, INSTANTS, ENDED, OPEN, BLOCKS, ACTIVE, STRICT, TRACKED, LINKED, EXACT, SLOWS = range(7, 21)
# Servers, a line of the cache each; of a row its tree and leaf, whether it is there, and the last run that began there.
TREE, SLOT, THERE, HEAD = range(3, 7)
# Groups, likewise; NEXT is the task that never ran, AGAIN the first that waits again.
QUEUE, USER, PLACEMENT, _, NEXT, WAIT, AGAIN, TASKS = range(8)
# Queues; SINCE is when it became active, BASE and SIZE are those of its tree, LOOK: its groups may be below its limit
# now, LISTED: it has fresh groups in this round; of candidates the next group, its best server, and where in the list
# of fresh groups theirs begin and stop.
RUNS, WAITS, SINCE, BASE, SIZE, FIRST, GROUPS, LOOK, LISTED, WHICH, WHERE, BEGIN, STOP = range(13)
# Runs, a line of the cache each: BEFORE and AFTER are those beside it on its server.
TASK, SERVER, START, END, HOW, GROUP, BEFORE, AFTER = range(8)
# How fast they are: microseconds of work left, as of when, and whether slower.
LEFT, SINCE_THEN, SLOW = range(3)
# Rows of `links`; of `jobs`.
MAY_COME, JOB, JOB_BEFORE, FOLLOWS = range(4)
TO_DO, FOLLOWING = range(2)
#: Tasks that run slower on an over-committed server: those that are short of something, or all.
SHORT, ALL = 1, 2


@bundle
class Tables(NamedTuple):
    """The state of a simulation; what a policy's rules read.

    n, lists : counters; (lists, places)
    servers : (servers, columns); capacity, free : (servers, amounts); pool : (amounts,), of all servers
    eligible : (placements, servers); near : servers of placements that are scanned, from `near_first[p]` on
    tree : maxima of `free` and of mixtures of it, a tree for each type of servers: row `types[t, 0]` is below its root,
        it has `types[t, 1]` leaves, which are servers `member[types[t, 2]]` and following; mix, need : weights of
        mixtures (mixtures, amounts); what groups demand of both
    directory, ratios, ids, have, filled, most, seen, aim : the index of ratios (`places.py`)
    queues : (queues, columns); allocated : (queues, costs); total : (costs,); weight, limit : (queues,)
    placed : (queues, servers, amounts), empty unless the policy needs it
    waits : maxima of minus what waiting groups demand, a tree for each queue; roots : a tree of their roots
    rank : a tree of what is larger the earlier a queue is served; of those that wait for nothing minus infinity
    values : (queues, value / share) of candidates; envelope : room for rounds
    numbers : of the policy
    groups : (groups, columns); demand : (groups, amounts); cost : (groups, costs); duration, again : (tasks,), `again`
        links tasks of a group that wait again
    changes : (time / what / index, changes), arrivals among them
    runs : (runs, columns); heap : (ends, time / run)
    pace, amount, really, level : of runs, groups, servers and resources, where tasks may run slower
    links : (when it may come at first / its job / the job before / groups by that, groups); jobs : (tasks to do / where
        the groups after it begin, jobs)
    """

    n: Whole
    lists: Whole
    servers: Whole
    capacity: Whole
    free: Whole
    pool: Whole
    eligible: Mask
    near: Whole
    near_first: Whole
    tree: Whole
    mix: Array
    need: Whole
    types: Whole
    member: Whole
    directory: Whole
    ratios: Array
    ids: Whole
    have: Whole
    filled: Whole
    most: Whole
    seen: Whole
    aim: Array
    queues: Whole
    allocated: Whole
    total: Whole
    weight: Array
    limit: Array
    placed: Whole
    waits: Whole
    roots: Whole
    rank: Array
    values: Array
    envelope: Whole
    numbers: Array
    groups: Whole
    demand: Whole
    cost: Whole
    duration: Whole
    again: Whole
    changes: Whole
    runs: Whole
    heap: Whole
    pace: Array
    amount: Whole
    really: Whole
    level: Array
    links: Whole
    jobs: Whole


@compiled(inline=True)
def put(t, table, k, flag):  # type: ignore[no-untyped-def]
    """List a row of a table, once."""
    if table[k, flag] == 0:
        table[k, flag] = 1
        t.lists[flag, t.n[flag]] = k
        t.n[flag] += 1


# Trees of maxima of vectors, side by side in one table. One of `size` leaves (a power of two) has its root in row
# `base + 1`; the children of row `k` are `2 k` and `2 k + 1`. Trees of servers hold what is free, trees of groups minus
# what they demand: one fits the other where it is larger.


@compiled(inline=True)
def sufficient(tree, row, sign, need, k):  # type: ignore[no-untyped-def]
    """True if a row of a tree has at least `sign * need[k]` of everything."""
    for r in range(need.shape[1]):
        if tree[row, r] < sign * need[k, r]:
            return False
    return True


@compiled(inner=True)
def raised(tree, base, node):  # type: ignore[no-untyped-def]
    """Put maxima right from the parent of `node` to the root."""
    node >>= 1
    while node >= 1:
        same = True
        for r in range(tree.shape[1]):
            left, right = tree[base + 2 * node, r], tree[base + 2 * node + 1, r]
            most = left if left > right else right
            if tree[base + node, r] != most:
                tree[base + node, r] = most
                same = False
        if same:
            return
        node >>= 1


@compiled(inner=True)
def next_leaf(tree, base, size, sign, need, k, begin):  # type: ignore[no-untyped-def]
    """The first leaf from `begin` on with enough, or -1."""
    if begin >= size:
        return -1
    node = size + begin if begin > 0 else 1
    while True:
        if sufficient(tree, base + node, sign, need, k):
            if node >= size:
                return node - size
            node = 2 * node
            continue
        while node & 1:  # a right child: everything below its parent is done
            node >>= 1
        if node == 0:
            return -1
        node += 1


@compiled(inner=True)
def first_of(t, q):  # type: ignore[no-untyped-def]
    """The first waiting group of a queue, or -1."""
    base, size, node = t.queues[q, BASE], t.queues[q, SIZE], 1
    if t.waits[base + 1, 0] == -BIG:
        return -1
    while node < size:
        node = 2 * node if t.waits[base + 2 * node, 0] > -BIG else 2 * node + 1
    return t.queues[q, FIRST] + node - size
