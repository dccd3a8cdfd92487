"""All levels of lexicographic max-min over several servers: raise, freeze whom prices hold, take apart, go on.

One stage raises the common level of a block (`level`). Its prices bound the level from above, and with it every single
user: any point that keeps the levels lifts n by at most `gap / p_n`, and puts at most `gap / z_ni` on a pair that costs
`z_ni` more than the user's cheapest. Whoever cannot rise is frozen, pairs that carry nothing are dropped, and the rest
falls apart into blocks. Who has a floor above the level is held there in a stage, and rises in later ones unless prices
hold it. A block in which nobody rises is done; in another the frozen users stay and keep their levels.
Where demands are positive that takes whole servers away; zero demands leave frozen users among those who rise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import csgraph, sp
from ...errors import SolverError
from ...model._pointers import by_group, row_pointers
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from .level import BoundedLevel, Budget, Level
from .level_interior import highest
from .options import LEVELS, LevelsOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass
class Block:
    """Users and pairs that are raised together; the frozen hold a level, the others their floors at least."""

    users: Index
    pairs: Index
    rising: Mask  # (users,)
    floor: Array  # (users,)
    amount: Array  # (pairs,), what was found last


@dataclass
class Piece:
    """Prices that a stage left on the servers of one of its parts, and the pairs that they keep out."""

    servers: Index
    prices: Array  # (its servers, resources), of whole capacities
    users: Index
    user_price: Array  # (its users,), the least cost of a pair
    dropped: Index  # pairs on its servers, of users here or elsewhere
    surplus: Array  # (dropped,), what they cost above their user's worth


@dataclass
class Stage:
    """Prices that prove one level, and how many pieces there were before."""

    servers: Index
    prices: Array
    users: Index
    user_price: Array
    before: int


class Levels:
    """Solves; `amount` (pairs,) in units of level, `level` (users,), and the stages' prices.

    `loose`: somebody was frozen with a weaker proof than asked for.
    """

    def __init__(
        self,
        polytope: Polytope,
        criterion: Criterion,
        freeze: float = 1e-8,
        options: LevelsOptions = LEVELS,
        budget: Budget | None = None,
    ) -> None:
        own = criterion.restrict(polytope.users)
        self.polytope, self.freeze, self.options = polytope, freeze, options
        self.tasks_per_level: Array = own.weight / own.share
        self.use: Array = polytope.pair_use * (self.tasks_per_level[polytope.pair_user] / polytope.gamma)[:, None]
        self.cap: Array = polytope.limit / self.tasks_per_level
        # What prices hold is exact but for the gap: floors that leave no room at all would leave no interior.
        self.floor: Array = (1 - freeze * options.room) * own.floor / self.tasks_per_level
        count = len(polytope.users)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(polytope.gamma))
        self.pieces: list[Piece] = []
        self.stages: list[Stage] = []
        self.steps, self.gap, self.loose = 0, 0.0, False
        self.rng, self.budget = np.random.default_rng(0), budget or Budget(options.simplex_seconds)
        everything = Block(np.arange(count), np.arange(len(self.amount)), np.ones(count, bool), self.floor, self.amount)
        waiting = list(self._parts(everything))
        while waiting:
            waiting.extend(self._stage(waiting.pop()))

    def _parts(self, block: Block) -> Iterator[Block]:
        """The connected parts of a block."""
        _, user = _numbered(self.polytope.pair_user[block.pairs], block.users)
        names, server = _numbered(self.polytope.pair_server[block.pairs])
        size = len(block.users)
        graph = sp.csr_matrix((np.ones(len(user)), (user, size + server)), shape=(size + len(names),) * 2)
        count, part = csgraph.connected_components(graph, directed=False)
        if count == 1:
            yield block
            return
        by_user, users = by_group(part[:size], count)
        by_pair, pairs = by_group(part[user], count)
        for k in range(count):
            mine = by_user[users[k] : users[k + 1]]
            own = by_pair[pairs[k] : pairs[k + 1]]
            if len(mine):
                yield Block(
                    block.users[mine], block.pairs[own], block.rising[mine], block.floor[mine], block.amount[own]
                )

    def _stage(self, block: Block) -> Iterator[Block]:
        """Raise a block's level, freeze, take apart; yields what is left to raise."""
        polytope = self.polytope
        _, user = _numbered(polytope.pair_user[block.pairs], block.users)
        servers, server = _numbered(polytope.pair_server[block.pairs])
        start = row_pointers(user, len(block.users))
        use = self.use[block.pairs]
        cheap = np.minimum.reduceat(use.sum(axis=1), start[:-1])
        # Of the order of the level, so that the numbers of the interior point are of the order of 1.
        unit = use.shape[1] * len(servers) / cheap[block.rising].sum()
        problem = Level(
            start, server, use * unit, len(servers), block.rising, block.floor / unit, self.cap[block.users] / unit
        )
        problem, found = self._highest(problem, block.amount / unit)
        self.gap = max(self.gap, found.gap)
        here = found.low * unit
        floor = np.where(found.problem.rising, here, found.problem.floor * unit)
        waiting, stopped = block.rising & ~problem.rising, problem.rising & ~found.problem.rising
        freeze, most = self.freeze, found.user_price[found.problem.rising].max(initial=0.0)
        if not stopped.any() and most * freeze < found.gap:
            # Nobody is proved to stand still so well: those who do less well are; the certificate will say how well.
            freeze, self.loose = max(self.options.weaker, found.gap / most) if most > 0 else np.inf, True
            if freeze > self.options.worst:
                raise SolverError("nobody could be proved to be unable to rise")
        need = found.gap / freeze
        free = found.problem.rising | waiting
        proved = free & (found.user_price >= need)
        rising = free & ~proved
        floor = np.where(rising, self.floor[block.users], floor)
        cost = (use * unit * found.prices[server]).sum(axis=1)
        surplus = cost - found.user_price[user]
        dropped = surplus >= need
        user_price, surplus = found.user_price / unit, surplus / unit
        self.stages.append(Stage(servers, found.prices, block.users, user_price, len(self.pieces)))
        amount = found.amounts * unit
        remaining = Block(block.users, block.pairs[~dropped], rising, floor, amount[~dropped])
        where = np.full(polytope.cluster.shape[1], -1)
        where[servers] = np.arange(len(servers))
        lost = np.flatnonzero(dropped)
        for part in self._parts(remaining):
            mine, _ = _numbered(polytope.pair_server[part.pairs])
            local = where[mine]
            inside = np.zeros(len(servers), bool)
            inside[local] = True
            keep = lost[inside[server[lost]]]
            at = np.searchsorted(block.users, part.users)
            prices = found.prices[local]
            if prices.any():
                self.pieces.append(Piece(mine, prices, part.users, user_price[at], block.pairs[keep], surplus[keep]))
            if part.rising.any():
                yield part
            else:
                self.level[part.users] = part.floor
                k = np.searchsorted(block.pairs, part.pairs)
                self.amount[part.pairs] = amount[k]

    def _highest(self, problem: Level, known: Array) -> tuple[Level, BoundedLevel]:
        """The level of a block, and who is held at floors above it: those above the level that is found without them.

        Holding some leaves less to the others, and so the level falls, or stays, from one solve to the next.
        """
        while True:
            found = highest(problem, self.rng, options=self.options.level, budget=self.budget, known=known)
            if found is None or not found.gap < self.options.worst:
                raise SolverError("a level could not be bounded, or not in the time that a simplex method may take")
            self.steps += found.steps
            after = problem.waiting(found.high)
            if (after.rising == problem.rising).all():
                return problem, found
            if not after.rising.any():
                raise SolverError("floors leave no level to anybody")
            problem = after

    def tasks(self) -> Array:
        """The allocation, (all users, servers): levels exactly those found, capacities kept."""
        polytope = self.polytope
        fractions = self.amounts() * self.tasks_per_level[polytope.pair_user] / polytope.gamma
        return polytope.allocation(polytope.inside(fractions))

    def amounts(self) -> Array:
        """y (pairs,), nobody above its level."""
        have = np.bincount(self.polytope.pair_user, self.amount, len(self.level))
        return self.amount * np.minimum(self.level / have, 1.0)[self.polytope.pair_user]

    def prices(self) -> Array:
        """One array (servers, resources) of prices per unit for every stage, (stages, servers, resources)."""
        polytope = self.polytope
        capacity = polytope.cluster.capacity
        result = np.zeros((len(self.stages), *capacity.shape))
        for at, stage in zip(result, self.stages, strict=True):
            self._prove(stage, at)
            np.divide(at, capacity, out=at, where=capacity > 0)
        return result

    def _prove(self, stage: Stage, prices: Array) -> None:
        """Add to the stage's prices those of earlier pieces, as high as it takes to keep dropped pairs out."""
        user, server = self.polytope.pair_user, self.polytope.pair_server
        prices[stage.servers] = stage.prices
        user_price = np.zeros(len(self.level))
        user_price[stage.users] = stage.user_price
        for piece in reversed(self.pieces[: stage.before]):
            if not len(piece.dropped):
                continue
            pairs = piece.dropped
            cost = (self.use[pairs] * prices[server[pairs]]).sum(axis=1)
            factor = self.options.margin * float(((user_price[user[pairs]] - cost) / piece.surplus).max())
            if factor > 0:
                prices[piece.servers] += factor * piece.prices
                user_price[piece.users] += factor * piece.user_price


def _numbered(values: Index, names: Index | None = None) -> tuple[Index, Index]:
    """The names of small non-negative values (by default those that occur, sorted), and the place of each value."""
    names = np.flatnonzero(np.bincount(values)) if names is None else names
    place = np.empty(int(names.max(initial=-1)) + 1, dtype=np.intp)
    place[names] = np.arange(len(names))
    return names, place[values]
