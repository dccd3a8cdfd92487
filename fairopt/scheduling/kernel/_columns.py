"""Columns of the tables that the loops share, codes of what policies do, and counters."""

from __future__ import annotations

import numpy as np

#: No demand, no time, no group: larger than any.
BIG = int(np.iinfo(np.int64).max)

# Groups: `group[g, column]`.
QUEUE, USER, PLACEMENT, NEXT, WAIT, AGAIN, LEAF, FRESH = range(8)
GROUP_COLUMNS = 8
# Queues: `queue[q, column]`; SINCE is when it became active, CHANGED counts its starts, LOOK: all its groups are fresh,
# LISTED: it has fresh groups in this round of pairs, SEAT: its leaf in trees of queues, or -1 (`_queues.py`).
RUNS, WAITS, SINCE, BASE, SIZE, FIRST, GROUPS, CHANGED, LOOK, LISTED, SEAT = range(11)
QUEUE_COLUMNS = 11
# Servers: `server[s, column]`; TREE and SLOT are its tree and leaf, DIRTY: its index is stale, TOUCHED in this round,
# MOVED: a task started or ended there at this instant (where tasks may run slower); a line of the cache each.
TREE, SLOT, THERE, HEAD, DIRTY, TOUCHED, MOVED = range(7)
SERVER_COLUMNS = 8
# Runs: `run[r, column]`, a line of the cache each.
TASK, SERVER, START, END, HOW, GROUP, BEFORE, AFTER = range(8)
RUN_COLUMNS = 8
# How fast runs are: `pace[r, column]`, microseconds of work left, as of when, and whether slower.
LEFT, SINCE_THEN, SLOW = range(3)
PACE_COLUMNS = 3
# The heap of ends: `heap[row, time / run]`; the root is in row 3, the children of row k are `4 (k - 2)` and following.
ROOT = 3
# Counters; NSEATS queues wait, and TOP is the row above their seats (`_queues.py`).
(
    TIME, NRUNS, NHEAP, NCHANGE, NARRIVAL, INSTANTS, ENDED, OPEN, NTOUCHED, NFRESH, NDIRTY, NBLOCKS, ACTIVITY,
    NRELEASED, NMOVED, NSEATS, TOP,
) = range(17)  # fmt: skip
COUNTERS = 17
# Options: `option[column]`.
SHARE, PLACE, PAIR, STRICT, LIMITED, TRACKED, FURTHEST, LINKED, SLOWS, SEATS = range(10)
OPTIONS = 10
# Parameters: `parameter[column]`.
FAIRNESS, FACTOR = range(2)
# Tasks that run slower on an over-committed server: none, those that are short of something, or all.
SLOWS_NONE, SLOWS_SHORT, SLOWS_ALL = range(3)
# Shares.
DOMINANT, UNWEIGHTED, AFTER_TASK = range(3)
# How a server is found: by a scan, or an index of free vectors.
FIRST_SCAN, FIRST_INDEX, BEST_SCAN, BEST_INDEX = range(4)
# Values of pairs.
NO_PAIRS, VIRTUAL, PER_SERVER, ALIGNMENT = range(4)
# How a call of the kernel ends.
FINISHED, GOES_ON, GROW = range(3)

# Rows of `Queues.chosen` in a round: the queues with fresh groups, and where these begin and end in `Tasks.fresh`;
# in rounds of pairs also candidates: the group that is next, its best server, the queue, the same places.
WHO, FROM, UNTIL, NEXT_GROUP, BEST, ONE, BEGIN, STOP = range(8)
# Rows of `Queues.values`.
BY_SHARE, VALUE = range(2)
