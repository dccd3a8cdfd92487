"""Arrays of the state of a simulation, and the meaning of their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.loops import bundle, compiled
from ...model._arrays import Array, Mask
from ..workload import Whole

#: Larger than every demand, every time and every index of a group.
INFINITE = int(np.iinfo(np.int64).max)
#: Events of a server, a user or a group, in their order at one instant.
DOWN, UP, LEAVES, COMES = 0, 1, 2, 3
#: Outcome of a run: still running, task completed, server failed, user departed.
RUNNING, DONE, EVICTED, GONE = 0, 1, 2, 3

# Rows of `Tables.lists`; also entries of `Tables.n` with the lengths of lists, and columns with flags of listed rows.
# STALE, GAINED, MOVED: servers with an outdated index, with released capacity at this instant, and with changed running
# tasks. FRESH, RELEASED: groups that may fit any server, and groups that arrive since the preceding job is completed.
# STACK: the stack of `_search`. CHOSEN: candidate queues of a round.
STALE, GAINED, MOVED, FRESH, RELEASED, STACK, CHOSEN = range(7)
# Further entries of `n`. NOW: time. STARTED, ENDED, INSTANTS: numbers of started runs, of completed tasks and of
# processed instants. ENDS: size of the heap of ends. CHANGE: index of the next change. OPEN: number of tasks that may
# still start. BLOCKS: number of blocks of the index of ratios. ACTIVE: whether queues became active or idle. STRICT,
# TRACKED, LINKED, EXACT, SLOWS: options (`Setup.tables`).
NOW, STARTED, ENDS, CHANGE, INSTANTS, ENDED, OPEN, BLOCKS, ACTIVE, STRICT, TRACKED, LINKED, EXACT, SLOWS = range(7, 21)
# Columns of servers (one cache line per row): tree and leaf of the index, availability, and the latest run.
TREE, SLOT, AVAILABLE, HEAD = range(3, 7)
# Columns of groups: NEXT is the first task that never ran, AGAIN the first evicted task that waits; `_` is FRESH.
QUEUE, USER, PLACEMENT, _, NEXT, WAIT, AGAIN, TASKS = range(8)
# Columns of queues: RUNS and WAITS are the numbers of running and of waiting tasks, SINCE is the time of activation.
# BASE and SIZE describe the tree of the queue in `waits`, FIRST and GROUPS the range of groups. LIMIT_RAISED marks a
# queue whose groups may now be within the limit, LISTED a queue with fresh groups in this round. For candidates WHICH
# is the next group, WHERE the best server for it, and BEGIN and STOP are the range of fresh groups in the list FRESH.
RUNS, WAITS, SINCE, BASE, SIZE, FIRST, GROUPS, LIMIT_RAISED, LISTED, WHICH, WHERE, BEGIN, STOP = range(13)
# Columns of runs (one cache line per row): BEFORE and AFTER link the runs of a server.
TASK, SERVER, START, END, HOW, GROUP, BEFORE, AFTER = range(8)
# Columns of `pace`: LEFT is the remaining work in microseconds at the time UPDATED_AT, SLOW whether the run is slowed.
LEFT, UPDATED_AT, SLOW = range(3)
# Rows of `Tables.links`, in the order of its description.
MAY_COME, JOB, JOB_BEFORE, FOLLOWS = range(4)
# Rows of `Tables.jobs`, in the order of its description.
TO_DO, FOLLOWING = range(2)
#: Slowed tasks on an over-committed server: SHORT for tasks that are short of a resource, ALL for all tasks.
SHORT, ALL = 1, 2


@bundle
class Tables(NamedTuple):
    """State of a simulation; rules of policies may read the arrays that `policies._base.READ` names.

    n, lists : counters; (lists, entries)
    servers : (servers, columns); capacity, free : (servers, amounts); pool : (amounts,), total over servers
    eligible : (placements, servers); near : servers of placements that are scanned, from `near_first[p]` on
    tree : maxima of `free` and of its mixtures (`mix`), a tree for every type t of servers: row `types[t, 0]` precedes
        the root, and the `types[t, 1]` leaves are the servers from `member[types[t, 2]]` on; mix : (mixtures, amounts),
        weights of mixtures; need : (groups, amounts + mixtures), demands and their mixtures
    directory, ratios, ids, have, filled, most, seen, aim : the index of ratios (`places.py`)
    queues : (queues, columns); allocated : (queues, costs); total : (costs,); weight, limit : (queues,)
    placed : (queues, servers, amounts), empty unless the policy uses it
    waits : maxima of negative demands of waiting groups, a tree per queue; roots : a tree of their roots
    rank : a tree of negative shares of queues, minus infinity for queues without waiting tasks
    values : (queues, value / share) of candidates; envelope : workspace of rounds
    numbers : parameters of the policy
    groups : (groups, columns); demand : (groups, amounts); cost : (groups, costs); duration, again : (tasks,), `again`
        links evicted tasks of a group that wait; lasts : (groups,), how long a task may last; plan : (3, servers,
        amounts), workspace of gangs, empty for other policies
    changes : (time / kind / index, changes), including arrivals
    runs : (runs, columns); heap : (ends, time / run)
    pace, amount, really, level : by run, group, server and resource, if tasks can be slowed
    links : (earliest arrival / job / preceding job / groups in the order of preceding jobs, groups); jobs : (remaining
        tasks / position in the last row of `links` of the first group that follows, jobs)
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
    lasts: Whole
    plan: Whole
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
    """Add row k of a table to the list of a flag, unless the row is already listed."""
    if table[k, flag] == 0:
        table[k, flag] = 1
        t.lists[flag, t.n[flag]] = k
        t.n[flag] += 1


# Trees of componentwise maxima of vectors, stored in one table. A tree of `size` leaves (a power of two) has its root
# in row `base + 1`; the children of row `k` are `2 k` and `2 k + 1`. Trees of servers have free amounts, trees of
# groups have negative demands: in both cases every vector that is larger than a sufficient vector is sufficient.


@compiled(inline=True)
def sufficient(tree, row, sign, need, k):  # type: ignore[no-untyped-def]
    """True if a row of a tree is at least `sign * need[k]` in every component."""
    for r in range(need.shape[1]):
        if tree[row, r] < sign * need[k, r]:
            return False
    return True


@compiled(inner=True)
def raised(tree, base, node):  # type: ignore[no-untyped-def]
    """Update the maxima from the parent of `node` to the root."""
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
    """Index of the first leaf from `begin` on that is `sufficient`, or -1."""
    if begin >= size:
        return -1
    node = size + begin if begin > 0 else 1
    while True:
        if sufficient(tree, base + node, sign, need, k):
            if node >= size:
                return node - size
            node = 2 * node
            continue
        while node & 1:  # a right child: the subtree of its parent is exhausted
            node >>= 1
        if node == 0:
            return -1
        node += 1


@compiled(inner=True)
def first_of(t, q):  # type: ignore[no-untyped-def]
    """Index of the first waiting group of a queue, or -1."""
    base, size, node = t.queues[q, BASE], t.queues[q, SIZE], 1
    if t.waits[base + 1, 0] == -INFINITE:
        return -1
    while node < size:
        node = 2 * node if t.waits[base + 2 * node, 0] > -INFINITE else 2 * node + 1
    return t.queues[q, FIRST] + node - size
