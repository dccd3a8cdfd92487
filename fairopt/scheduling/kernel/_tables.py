"""The arrays that the loops share, in four bundles; `compiled.py` makes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]


class Servers(NamedTuple):
    """What is there and free, and the index that finds room in it.

    table : (servers, columns); capacity, free : (servers, amounts); pool : (amounts,), of all servers
    eligible : (placements, servers); near : servers of placements of few, from `near_first[p]` on
    touched, dirty : servers that gained room at this instant; servers whose index is stale
    known, lowest, envelope, order : room for what rounds and the index keep in mind
    holder, cursor : of groups that a round has looked for (`_places.py`), (slots, what) and (slots, trees)
    tree : maxima of `free`, a tree for all servers or for each type, in rows from `tree_at[t, 0]` on; it has
        `tree_at[t, 1]` leaves, which are servers `leaf[tree_at[t, 2]]` and following
    mix : (more, amounts), factors of amounts whose least products are columns more of these trees, and of demands
    directory, ratios, ids, have, filled, most, ratio, seen : the index of ratios (`_ratios.py`)
    aim : (2, amounts), of a demand that is looked for (`_best.aim_at`)
    moved : servers where a task started or ended at this instant; and where tasks may run slower (else these are empty)
    amount, level : (servers, resources), what servers really have; (resources,), room
    """

    table: Whole
    capacity: Whole
    free: Whole
    pool: Whole
    eligible: NDArray[np.bool_]
    everyone: Whole
    near: Whole
    near_first: Whole
    touched: Whole
    dirty: Whole
    known: Whole
    lowest: Numbers
    envelope: Whole
    order: Whole
    tree: Whole
    tree_at: Whole
    leaf: Whole
    holder: Whole
    cursor: Whole
    mix: Whole
    directory: Whole
    ratios: Numbers
    ids: Whole
    have: Whole
    filled: Whole
    most: Whole
    ratio: Numbers
    seen: Whole
    aim: Numbers
    moved: Whole
    amount: Whole
    level: Numbers


class Queues(NamedTuple):
    """Who holds what, and how far behind it is.

    table : (queues, columns); allocated : (queues, costs); total : (costs,); weight, limit : (queues,)
    placed : (queues, servers, amounts), empty unless values need it
    tree : maxima of minus what waiting groups demand, a tree for each queue, over its groups
    all_tree : a tree of roots of these (`_queues.py`)
    key : (rows, columns), a tree of the lowest share, or of the least that is held of every amount per weight;
        a queue that waits for nothing is infinite
    seated : queues by their leaves in these trees
    level_size, level_cap : of MQDRF
    chosen : room for rounds: (columns, queues)
    values, stack, bounds : likewise
    """

    table: Whole
    allocated: Whole
    total: Whole
    weight: Numbers
    limit: Numbers
    placed: Whole
    tree: Whole
    all_tree: Whole
    key: Numbers
    seated: Whole
    level_size: Whole
    level_cap: Numbers
    chosen: Whole
    values: Numbers
    stack: Whole
    bounds: Numbers


class Tasks(NamedTuple):
    """Groups of tasks, and their runs.

    group : (groups, columns); demand : (groups, amounts and more, see `Servers.mix`); cost : (groups, costs)
    duration, again : (tasks,); `again` links tasks of a group that wait again
    arrival, arriving : (groups,), by time; change : (time / what / index, changes)
    run : (runs, columns); heap : (ends, time / run); fresh : groups that may fit anywhere
    pace, amount : (runs, columns), how fast they are, and (groups, resources), what they really demand; or empty
    released : groups whose job before has just ended; and where jobs come after others (else these are empty)
    comes, job, before : (groups,), when it may come at first, its job, the one that must be done before, or -1
    to_do : (jobs,), tasks that are not done
    following_first, following : groups by the job they come after
    """

    group: Whole
    demand: Whole
    cost: Whole
    duration: Whole
    again: Whole
    arrival: Whole
    arriving: Whole
    change: Whole
    run: Whole
    heap: Whole
    fresh: Whole
    released: Whole
    pace: Numbers
    amount: Whole
    comes: Whole
    job: Whole
    before: Whole
    to_do: Whole
    following_first: Whole
    following: Whole
