r"""Lexicographic max-min over several servers: maximise the common level, freeze users with a price, and continue.

A user is *rising* while its level is to be increased, and *held* at a fixed level otherwise: at an earlier level at
which it was *frozen*, at its limit, or at its floor. Each level is a linear program,

.. math::
    \max t, \quad \sum_i y_{ni} \ge t \ (n \text{ rising}), \quad \sum_i y_{ni} \ge held_n \ (n \text{ held}), \quad
    \sum_n a_{nir} y_{ni} \le 1, \quad y \ge 0,

with amounts y in units of level, the level :math:`held_n` at which user n is held, and the fraction a of a whole
capacity that a unit of y uses. The program is solved by an interior-point method (`level`), which converges to the
analytic centre of the optimal face. The prices of all constraints that are inactive at the centre are the barrier
parameter mu divided by their slacks, so that the centre is a warm start of the next level: frozen users, pairs with a
reduced cost and full servers are removed, prices are divided by the sum of prices p of the remaining users, and about
five more steps suffice. Where zero demands keep frozen users and rising users in one component, levels of frozen users
and full rows become equations with prices of either sign, so that the face has an interior. Components of users and
servers are solved one after the other; a component with a single server is solved by progressive filling.

A user whose limit is less than a level that all rising users can attain is held at the limit; a user whose floor
exceeds the level is held at the floor. Freezing is a numerical decision, which certificates verify by the prices in
`stages`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ..base.errors import SolverError
from ..base.libraries import csgraph, sp
from ..model._arrays import Array, Index, Mask, by_group
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import simplex
from .accuracy import ACCURATE, HALF_PRECISION, NEGLIGIBLE, REFINED, SOLVE_ROUNDING
from .algebra import Pairs
from .central_path import LEAST, PROGRESS
from .factors import TINY
from .level import Faces, Point, State, advance, cold_start, warm_start

#: Relative gap at which a level has converged if users to be frozen are separated from others (`_CONVERGED`), and gap
#: at which iterations end in any case, since smaller gaps are due to rounding (`_ROUNDED`).
_CONVERGED, _ROUNDED = ACCURATE, SOLVE_ROUNDING
#: Relative gap above which a level that no longer improves is a failure.
_UNBOUNDED = 1e-2
#: Users to be frozen are separated once the absolute log ratio of price to slack exceeds this value for every user.
_LOG_SEPARATION = np.log(1e5)
#: Number of successive steps without progress after which iterations on a component end.
_PATIENCE = 8
#: Once a level has converged, further steps are taken as long as each step reduces the gap to at most this fraction.
_POLISHED = 0.3
#: Components whose simplex tableau has at most this number of entries are solved by the simplex method, which is faster
#: for them than the steps of `level`. If the tableau of the whole problem is within this size, only components of one
#: user are solved in this way: the problem occurs here only if the simplex method for small clusters has failed.
_TABLEAU = 20_000
#: Levels that must leave more than half of the users in one component before pairs are predicted, as that takes as long
#: as several levels: `_LEVELS_FIRST` for 1 to `_PER_SERVER` users per server, and 1 otherwise, when levels are many.
_LEVELS_FIRST, _PER_SERVER = 2, 2
#: Prices of an earlier level are added to prices of a later level in the least multiple that proves the later level,
#: times this factor, so that the proof holds despite rounding.
_STRICT = 1.001


class Stage(NamedTuple):
    """Dual solution of one level: prices (servers, resources) of whole capacities, and the pairs that they exclude.

    `user_price` (users,) is the least cost of a unit of level, `dropped` are the indices of excluded pairs, and
    `surplus` (dropped,) their excess costs. `full` is the mask (servers, resources) of rows that complementarity makes
    equations, whose prices in later stages may be negative. `determined` lists, round by round, pairs whose amounts are
    determined by equations: their indices, and the resource of the full row, or -1 for the equation of the user.
    """

    level: float
    servers: Index
    prices: Array
    full: Mask
    users: Index
    user_price: Array
    dropped: Index
    surplus: Array
    determined: list[tuple[Index, Index]]


def _gap(low: float, high: float) -> float:
    """Relative gap of a lower and an upper bound, infinite unless the lower bound is positive."""
    return abs(high / low - 1) if low > 0 else np.inf


def _entries(pairs: Pairs) -> int:
    """Number of entries of a simplex tableau, with two rows for each user: its limit and its level."""
    return len(pairs.user) * (pairs.inverse.size + 2 * len(pairs.demand))


def _levelled(pairs: Pairs, some: Mask, prices: Array) -> Array:
    """Prices (servers, resources) at which pairs `some` (pairs,) of a user cost the same, to fewer rounding errors.

    Relative changes of prices solve these equations with least norm.
    """
    least = pairs.of_user(pairs.least(pairs.cost(prices)))
    chosen = np.flatnonzero(some & (least > NEGLIGIBLE * least.max()))
    priced = np.flatnonzero(prices > NEGLIGIBLE * prices.max())
    parts = pairs.matrix[chosen][:, priced].toarray() * prices.ravel()[priced] / least[chosen, None]
    _, first, place = np.unique(pairs.user[chosen], return_index=True, return_inverse=True)
    parts -= parts[first[place]]
    change, result = np.linalg.lstsq(parts, parts.sum(axis=1), rcond=REFINED)[0], prices.copy()
    if np.abs(change).max(initial=0.0) < HALF_PRECISION:
        result.ravel()[priced] *= 1 - change
    return np.asarray(result)


class Levels:
    """Lexicographic max-min solution: `amount` (pairs,) in units of level, `level` (users,), and `stages`.

    Parameters
    ----------
    pairs : usable pairs, with demands (users, resources) per unit of level
    cap, floor : (users,), limits and lower bounds in units of level
    candidates : function that predicts the mask (pairs,) of pairs with tasks, for problems with many levels. Components
        of predicted pairs are solved separately; components that a neglected pair should have connected are solved
        again together, so that the prediction need not be correct

    Raises
    ------
    SolverError
        If a level could not be bounded.
    """

    @np.errstate(all="ignore")  # steps to the boundary, and levels that fail, cause floating-point warnings
    def __init__(self, pairs: Pairs, cap: Array, floor: Array, candidates: Callable[[], Mask] | None = None) -> None:
        self.pairs, self.cap, self.floor, self.inverse = pairs, cap, floor, pairs.inverse
        count = len(pairs.demand)
        self.level: Array = np.zeros(count)
        self.amount: Array = np.zeros(len(pairs.user))
        #: Sums (users,) of amounts that equations determine.
        self.given: Array = np.zeros(count)
        self.stages: list[Stage] = []
        self.steps, self.gap = 0, 0.0
        if not count:
            return
        self.candidates, self.large_levels = candidates, 0
        user, server, pair = (np.arange(size) for size in (count, len(pairs.inverse), len(self.amount)))
        #: Components for the simplex method: pairs, faces, and the level at which the component was split off.
        self.small: list[tuple[Pairs, Faces, float]] = []
        #: Indices of the components of predicted pairs to which users and servers belong.
        self.of_user, self.of_server, least = 0 * user, 0 * server, 0.0
        #: Pairs of users to be raised again that lower levels exclude, and which are therefore left out.
        self.neglected = pair < 0
        raised, stay, full = user >= 0, pair >= 0, np.zeros(pairs.inverse.shape, dtype=bool)
        while raised.any():
            self.stages = [one for one in self.stages if one.level < least or not raised[one.users].any()]
            self.amount[raised[self.pairs.user]], self.given[:] = 0.0, 0.0
            faces = Faces(user, server, pair, raised.astype(float), user < 0, full, self.level)
            left = self._split(pairs, faces, stay, self.amount)
            while left or self.small:
                left += self._advance(left.pop()) if left else self._vertices()
            raised, stay, least = self._linked()

    def _linked(self) -> tuple[Mask, Mask, float]:
        """Mask of users to be raised again jointly with other components, mask of their pairs, and the initial level.

        A pair between two components is excluded by the lowest level that fills a resource which the pair needs, if
        this level is less than the level at which its user is frozen; the pair is then added to the excluded pairs of
        that stage. The mask of users is all False if no components have to be solved again.
        """
        pairs, user, server = self.pairs, self.pairs.user, self.pairs.server
        apart = self.neglected | (self.of_user[user] != self.of_server[server])
        if not apart.any():
            return np.zeros(len(self.level), bool), apart, 0.0
        frozen_at, excluded_by, excluded_at = self._exclusions()
        user_level = frozen_at * (1 - NEGLIGIBLE)
        connected = apart & (user_level[user] <= excluded_at) & np.isfinite(user_level)[user]
        if connected.any():
            _, self.of_user, self.of_server = self._connected(pairs, ~apart | connected)
            again = np.isin(self.of_user, self.of_user[user[connected]])
            stay = again[user] & (self.of_user[user] == self.of_server[server])
            # Users at lower levels than all users of connecting pairs stay frozen, unless they have tasks on servers of
            # pairs that are to be solved again.
            least = float(user_level[user[connected]].min())
            upper, above = again & (frozen_at >= least), stay & (excluded_at >= least)
            use_below = (self.amount * pairs.takes.max(axis=1))[~upper[user] & np.isin(server, server[above])]
            if use_below.max(initial=0.0) > NEGLIGIBLE:
                upper, above, least = again, stay, 0.0
            above &= upper[user]
            self.neglected = (apart | upper[user]) & ~above
            return upper, above, least
        for number in np.unique(excluded_by[apart & (excluded_by >= 0)]):
            stage, excluded = self.stages[number], np.flatnonzero(apart & (excluded_by == number))
            cost = (pairs.takes[excluded] * stage.prices[np.searchsorted(stage.servers, server[excluded])]).sum(axis=1)
            dropped, surplus = np.append(stage.dropped, excluded), np.append(stage.surplus, cost)
            self.stages[number] = stage._replace(dropped=dropped, surplus=surplus)
        return np.zeros(len(self.level), bool), apart, 0.0

    def _exclusions(self) -> tuple[Array, Index, Array]:
        """Lowest level at which each user is frozen, (users,), infinite if never, and the stage excluding each pair.

        A pair is excluded by the lowest stage that fills a resource which the pair needs: the index of that stage
        (pairs,), -1 if there is none, and its level (pairs,), infinite if there is none.
        """
        pairs, level = self.pairs, np.array([stage.level for stage in self.stages] + [np.inf])
        frozen_at, filled_by = np.full(len(self.level), np.inf), np.full(self.inverse.shape, -1)
        for number in np.argsort(-level[:-1], kind="stable"):
            stage = self.stages[number]
            row, resource = np.nonzero(stage.full)
            filled_by[stage.servers[row], resource] = number
            frozen_at[stage.users[stage.user_price > NEGLIGIBLE * stage.user_price.max()]] = stage.level
        stages = np.where(pairs.demand[pairs.user] > 0, filled_by[pairs.server], -1)
        excluded_by = stages[np.arange(len(stages)), level[stages].argmin(axis=1)]
        return frozen_at, excluded_by, level[excluded_by]

    # --- one step of a component

    def _advance(self, at: State) -> list[State]:
        """Take one step of a component, or split it at a converged level; return the unfinished components.

        Raises `SolverError` if the level could not be bounded.
        """
        low, high, least_cost = at.bounds()
        at_limit = (at.rising > 0) & (self.cap[at.user] < low)
        if at_limit.any():
            self._hold_at_limits(at, at_limit)
            if not at.rising.any():
                at.y = at.rescaled()[0]
                return self._freeze(at, low, high, least_cost)
            low, high, least_cost = at.bounds()
        # Bounds may cross where equations are inconsistent by rounding: complementarity products then estimate the gap.
        gap = max(_gap(low, high), at.mu * at.count / abs(at.t))
        improved = gap < (1.0 if at.bounded else PROGRESS) * at.best_gap
        at.stalled = 0 if improved else at.stalled + 1
        if improved:
            at.best_gap, at.best_point = gap, at.now
        failed = not at.bounded and (at.stalled > _PATIENCE or not np.isfinite(at.t))
        if failed and at.best_gap > _UNBOUNDED:
            raise SolverError("a level could not be bounded")
        # After convergence further steps reduce the slacks of active constraints to rounding errors.
        if failed or (at.bounded and not _ROUNDED < gap <= _POLISHED * at.last_gap):
            if not gap <= at.best_gap:
                at.set(at.best_point)
                low, high, least_cost = at.bounds()
            if failed:
                at.bounded_point = at.now
            return self._freeze(at, low, high, least_cost)
        separated = np.abs(at.log_multiplier_ratio(at.now))[~at.exact].min(initial=np.inf) > _LOG_SEPARATION
        if not at.bounded and gap <= _CONVERGED and (separated or at.stalled > 1):
            at.bounded_point, at.bounded = at.now, True
        at.last_gap = gap
        advance(at, gap)
        self.steps += 1
        return [at]

    def _hold_at_limits(self, at: State, at_limit: Mask) -> None:
        """Hold users of the mask `at_limit` at their limits, in place, so that their levels are no longer raised.

        Prices are divided by the sum of prices p of the remaining rising users, which the dual constraint sets to 1.
        The slack of a user at its limit becomes the amount in excess of the limit, and at least the fraction `LEAST` of
        the limit, as slacks of an interior point are positive.
        """
        at.rising = np.where(at_limit, 0.0, at.rising)
        at.held = np.where(at_limit, self.cap[at.user], at.held)
        at.s = np.where(at_limit, np.maximum(at.attained - at.held, LEAST * at.held), at.s)
        total_price = max(float(at.rising @ at.p), TINY)
        at.z, at.lam, at.p = at.z / total_price, at.lam / total_price, at.p / total_price
        at.best_gap = np.inf
        at.residuals()

    # --- converged levels

    def _freeze(self, at: State, low: float, high: float, least_cost: Array) -> list[State]:
        """Freeze users with a price at a converged level, record prices, and split the remaining component.

        Active constraints are identified at the last iterate before slacks were reduced to rounding: users with a price
        are frozen, pairs with a reduced cost removed, and rows with a price become equations. If floors of some users
        exceed the level, these users are held at their floors instead, and the level is computed again. Without rising
        users no prices are recorded.

        Parameters
        ----------
        low, high : bounds of the level
        least_cost : (users,), least costs of a unit of level
        """
        pairs, rising, optimum = at.pairs, at.rising > 0, at.bounded_point
        below_floor = rising & (self.floor[at.user] > high * (1 + NEGLIGIBLE))
        if below_floor.any():
            return [self._hold_at_floors(at, below_floor)]
        # A constraint is active if its price exceeds its slack, both relative to the level.
        rising_count, frozen = int(rising.sum()), ~at.exact & (at.log_multiplier_ratio(optimum) > 0)
        dropped, filled, overuse = np.zeros(len(at.y), dtype=bool), np.zeros(at.full.shape, dtype=bool), 1.0
        if rising_count:
            self.gap = max(self.gap, _gap(low, high))
            if not (frozen & rising).any():
                frozen |= rising & (optimum.p >= optimum.p[rising].max())
            dropped = optimum.z * rising_count > optimum.y / at.t
            filled = at.row & (optimum.lam * (pairs.present.sum() / at.t) > optimum.w)
            total = max(float(least_cost[rising].sum()), TINY)
            excluded = np.flatnonzero(dropped)
            prices, user_price, surplus = (each / total for each in (at.lam, least_cost, at.z[excluded]))
            at.lower_level = max(low, at.lower_level)
            self._record(at.lower_level, pairs, at.faces, prices, filled, user_price, at.pair[excluded], surplus)
        else:
            overuse = max(float(at.use.max()), 1.0)
        held, exact = np.where(frozen & rising, low, at.held), at.exact | frozen
        # Users that were held at their floors, and have less than their limits, become rising users again.
        released = ~rising & ~exact & (at.held < self.cap[at.user] * (1 - NEGLIGIBLE))
        start = optimum._replace(s=np.where(released, np.maximum(at.held + optimum.s - at.t, TINY), optimum.s))
        faces = at.faces._replace(
            rising=np.where(frozen, 0.0, np.where(released, 1.0, at.rising)),
            exact=exact,
            full=at.full | filled,
            held=held,
        )
        stay, y = ~dropped, at.y / overuse
        if rising_count:
            pairs, faces, start = self._determined(pairs, faces, start, stay, y)
        return self._split(pairs, faces, stay, y, start, at.lower_level)

    def _record(
        self,
        level: float,
        pairs: Pairs,
        faces: Faces,
        prices: Array,
        full: Mask,
        user_price: Array,
        dropped: Index,
        surplus: Array,
    ) -> None:
        """Record a stage; `prices` of remaining capacities are converted to prices of whole capacities."""
        whole = self.inverse[faces.server]
        prices = prices * np.divide(pairs.inverse, whole, out=np.zeros(whole.shape), where=whole > 0)
        self.stages.append(Stage(level, faces.server, prices, full, faces.user, user_price, dropped, surplus, []))

    def _determined(self, pairs: Pairs, faces: Faces, start: Point, stay: Mask, y: Array) -> tuple[Pairs, Faces, Point]:
        """Remove from `stay` pairs of frozen users whose amounts are determined, and from capacities the use by them.

        Full rows and levels of frozen users are equations; an equation with a single remaining pair determines the
        amount y of that pair.
        """
        size, users, fixed = pairs.inverse.shape[1], len(pairs.demand), np.zeros(len(stay), dtype=bool)
        of_user = sp.csr_matrix((np.ones(len(stay)), pairs.user, np.arange(len(stay) + 1)), (len(stay), users))
        equations = sp.hstack([of_user, pairs.matrix > 0]).T.tocsr()
        active = np.flatnonzero(np.append(faces.exact, faces.full))
        equations, exact, number = equations[active], faces.exact[pairs.user], np.arange(len(stay))
        while True:
            single = np.flatnonzero(equations @ (1.0 * stay) == 1)
            pair = (equations[single] @ (number * stay)).astype(np.intp)
            pair, first = np.unique(pair, return_index=True)
            pair, equation = pair[exact[pair]], active[single[first]][exact[pair]]
            if not len(pair):
                break
            self.stages[-1].determined.append(
                (faces.pair[pair], np.where(equation < users, -1, (equation - users) % size))
            )
            stay[pair], fixed[pair] = False, True
        if not fixed.any():
            return pairs, faces, start
        given, left = pairs.sums(y * fixed), 1 - pairs.use(y * fixed)
        left = np.where(left > 0, left, 1.0)  # rows without other pairs
        self.amount[faces.pair[fixed]] = y[fixed]
        self.given[faces.user] += given
        rest = Pairs(pairs.user, pairs.server, pairs.demand, pairs.inverse / left, per=pairs.per)
        start = start._replace(w=start.w / left, lam=start.lam * left)
        return rest, faces._replace(held=np.maximum(faces.held - given, 0.0)), start

    def _hold_at_floors(self, at: State, below_floor: Mask) -> State:
        """Hold users whose floors exceed the level, and restart the component.

        Raises `SolverError` if no rising user remains.
        """
        rising = np.where(below_floor, 0.0, at.rising)
        if not rising.any():
            raise SolverError("the floors of all users exceed the level that capacities allow")
        faces = at.faces._replace(rising=rising, held=np.where(below_floor, self.floor[at.user], at.held))
        return State(at.pairs, faces, cold_start(at.pairs, faces), at.lower_level)

    # --- connected components

    def _split(
        self, pairs: Pairs, faces: Faces, stay: Mask, y: Array, start: Point | None = None, lower_level: float = 0.0
    ) -> list[State]:
        """Split into connected components, and return states of components with rising users.

        Levels of the other components are recorded, components of one server are solved at once, and small components
        are added to `small`.
        """
        count, of_user, of_server = self._connected(pairs, stay)
        rises = np.bincount(of_user, faces.rising, count) > 0
        finished = ~rises[of_user]
        self.level[faces.user[finished]] = (faces.held + self.given[faces.user])[finished]
        of_finished = finished[pairs.user]
        self.amount[faces.pair[of_finished]] = y[of_finished]
        states, staying = [], np.flatnonzero(stay)
        labels = of_user, of_server, of_user[pairs.user[staying]]
        members = [np.split(order, ends[1:-1]) for order, ends in (by_group(label, count) for label in labels)]
        for part in np.flatnonzero(rises):
            u, s, p = members[0][part], members[1][part], staying[members[2][part]]
            indices = np.searchsorted(u, pairs.user[p]), np.searchsorted(s, pairs.server[p])
            per = None if pairs.per is None else pairs.per[p]
            own_pairs = Pairs(*indices, pairs.demand[u], pairs.inverse[s], per=per)
            own_faces = faces.restricted(u, s, p)
            own_faces = own_faces._replace(full=own_faces.full & own_pairs.present)
            if len(s) == 1 and not self.floor[own_faces.user].any():
                self._single_server(own_pairs, own_faces, lower_level)
                continue
            constrained = own_faces.exact.any() or own_faces.full.any() or self.floor[own_faces.user].any()
            largest = _TABLEAU if len(u) == 1 or _entries(self.pairs) > _TABLEAU else 0
            if _entries(own_pairs) <= largest and own_faces.rising.all() and not constrained:
                self.small.append((own_pairs, own_faces, lower_level))
                continue
            large = start is not None and own_pairs.order.endswith("listed") and 2 * len(u) > len(self.level)
            self.large_levels += large
            few_levels = len(s) <= len(u) <= _PER_SERVER * len(s)
            predicts = large and (not few_levels or self.large_levels >= _LEVELS_FIRST)
            if predicts and self.candidates is not None and not (own_faces.exact.any() or own_faces.full.any()):
                states += self._split(
                    own_pairs, own_faces, self._predicted(own_pairs, own_faces), y[p], None, lower_level
                )
                continue
            at = State(
                own_pairs,
                own_faces,
                cold_start(own_pairs, own_faces) if start is None else start.restricted(u, s, p),
                lower_level,
            )
            if start is not None:
                warm_start(at)
            states.append(at)
        return states

    def _predicted(self, pairs: Pairs, faces: Faces) -> Mask:
        """Mask (pairs,) of pairs within the components of predicted pairs; indices of components are recorded."""
        assert self.candidates is not None
        candidates, self.candidates = self.candidates()[faces.pair], None
        # Users at fixed levels keep all pairs, without which their levels may be infeasible.
        missing = np.bincount(pairs.user[candidates], minlength=len(faces.user)) == 0
        candidates |= (missing | (faces.rising == 0))[pairs.user]
        _, by_user, by_server = self._connected(pairs, candidates)
        self.of_user[faces.user], self.of_server[faces.server] = by_user + 1, by_server + 1
        return np.asarray(by_user[pairs.user] == by_server[pairs.server])

    @staticmethod
    def _connected(pairs: Pairs, stay: Mask) -> tuple[int, Index, Index]:
        """Number of connected components, and the index of the component of each user and of each server."""
        users, servers = len(pairs.demand), len(pairs.inverse)
        if stay.all() and pairs.full:
            return 1, np.zeros(users, dtype=np.intp), np.zeros(servers, dtype=np.intp)
        edges = pairs.user[stay], users + pairs.server[stay]
        graph = sp.csr_matrix((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(users + servers,) * 2)
        count, label = csgraph.connected_components(graph, directed=False)
        return count, label[:users], label[users:]

    def _vertices(self) -> list[State]:
        """Solve the components in `small` by the simplex method; return states of components for which it fails.

        Components with similar numbers of pairs are solved as a stack.
        """

        def doublings(one: tuple[Pairs, Faces, float]) -> int:
            return len(one[0].user).bit_length()

        failed: list[State] = []
        for _, of_similar in groupby(sorted(self.small, key=doublings), key=doublings):
            stack = list(of_similar)
            sizes = [(pairs.inverse.size, len(pairs.demand), len(pairs.user)) for pairs, *_ in stack]
            height, users, columns = np.max(sizes, axis=0)
            rows, levels = np.zeros((len(stack), height + users, columns)), np.zeros((len(stack), users, columns))
            for k, (pairs, faces, _) in enumerate(stack):
                every = np.arange(len(pairs.user))
                rows[k, : pairs.inverse.size, every] = pairs.matrix.toarray()
                rows[k, height + pairs.user, every] = 1 / self.cap[faces.user[pairs.user]]
                levels[k, pairs.user, every] = 1.0
            found = simplex.lexicographic(rows, levels, levels.any(axis=2).astype(float))
            for (pairs, faces, lower_level), y, prices, rounds in zip(stack, *found, strict=True):
                if rounds < 0:
                    failed.append(State(pairs, faces, cold_start(pairs, faces), lower_level))
                else:
                    self._record_vertex(pairs, faces, lower_level, y, prices[:rounds])
        self.small = []
        return failed

    def _record_vertex(self, pairs: Pairs, faces: Faces, level: float, y: Array, prices: Array) -> None:
        """Record the solution y (columns,) and the prices (rounds, rows) of a component by the simplex method."""
        y, nothing = y[: len(pairs.user)], np.zeros(0)
        attained = pairs.sums(y)
        self.level[faces.user], self.amount[faces.pair] = attained, y
        for of_round in prices[:, : pairs.inverse.size].reshape(-1, *pairs.inverse.shape):
            of_round = _levelled(pairs, y > NEGLIGIBLE * pairs.of_user(attained), of_round)
            cost, full = pairs.least(pairs.cost(of_round)), of_round > NEGLIGIBLE * of_round.max()
            if cost.max() > NEGLIGIBLE:  # else only limits have prices, which sum to 1 with those of rows
                level = float(attained[cost > NEGLIGIBLE * cost.max()].max(initial=level))
                self._record(level, pairs, faces, of_round, full, cost, np.flatnonzero(nothing), nothing)

    def _single_server(self, pairs: Pairs, faces: Faces, lower_level: float) -> None:
        """Solve a component of one server by progressive filling, in which each level exhausts one more resource.

        Raises `SolverError` if nothing bounds the level.
        """
        rising, held, cap, none = faces.rising > 0, faces.held.copy(), self.cap[faces.user], np.zeros(0, dtype=np.intp)
        while rising.any():
            rate, available = rising @ pairs.takes, np.maximum(1 - np.where(rising, 0.0, held) @ pairs.takes, 0.0)
            levels = np.divide(available, rate, out=np.full(len(rate), np.inf), where=rate > 0)
            scarce = np.arange(len(rate)) == levels.argmin()
            frozen = rising & (cap < levels.min())
            if frozen.any():
                frozen &= cap == cap[frozen].min()
                held[frozen] = cap[frozen]
            elif not levels.min() < np.inf:
                raise SolverError("a level could not be bounded")
            else:
                frozen, cost = rising & (pairs.takes @ scarce > 0), pairs.takes @ scarce / rate[scarce]
                held[frozen] = levels.min()
                prices = (scarce / rate[scarce])[None]
                lower_level = max(float(levels.min()), lower_level)
                self._record(lower_level, pairs, faces, prices, scarce[None], cost, none, np.zeros(0))
            rising &= ~frozen
        self.level[faces.user] = held + self.given[faces.user]
        self.amount[faces.pair] = held / max(float((held @ pairs.takes).max()), 1.0)

    # --- results

    def amounts(self) -> Array:
        """Amounts y (pairs,), scaled down where their sum exceeds the user's level."""
        attained = np.maximum(np.bincount(self.pairs.user, self.amount, len(self.level)), TINY)
        return self.amount * np.minimum(self.level / attained, 1.0)[self.pairs.user]

    @np.errstate(all="ignore")
    def prices(self) -> Array:
        r"""Prices per resource unit that prove the levels, (stages, servers, resources).

        In the order of increasing levels, the prices of stage l are

        .. math:: \lambda^l + \sum_{k < l} m_{lk} \lambda^k

        with the dual solution :math:`\lambda^k` of stage k, in which rows and pairs that earlier stages removed are
        missing. For k = l - 1, ..., 0 in turn, the rows and pairs that stage k removed are included, and :math:`m_{lk}`
        is the least multiple with which prices are dual feasible for them (`_multiples`).
        """
        stages, pairs = sorted(self.stages, key=lambda stage: stage.level), self.pairs
        result, user_price = (np.zeros((len(stages), *shape)) for shape in (self.inverse.shape, self.level.shape))
        for k in reversed(range(len(stages))):
            stage, later_prices, later_user_prices = stages[k], result[k + 1 :], user_price[k + 1 :]
            result[k, stage.servers], user_price[k, stage.users] = stage.prices, stage.user_price
            # Prices of equations (of a row, or of a user where `resource` is -1) that were removed with a pair, such
            # that the cost of the pair equals the price of its user.
            for pair, resource in reversed(stage.determined):
                user, server, of_row = pairs.user[pair], pairs.server[pair], resource >= 0
                cost = np.einsum("pr,spr->sp", pairs.takes[pair], later_prices[:, server])
                missing = later_user_prices[:, user] - cost
                later_user_prices[:, user[~of_row]] = cost[:, ~of_row]
                takes = pairs.takes[pair[of_row], resource[of_row]]
                later_prices[:, server[of_row], resource[of_row]] += missing[:, of_row] / takes
            multiple = self._multiples(stage, later_prices, later_user_prices)
            scaled = np.flatnonzero(multiple)
            multiple = _STRICT * multiple[scaled, None]
            later_prices[scaled[:, None], stage.servers] += multiple[:, :, None] * stage.prices
            later_user_prices[scaled[:, None], stage.users] += multiple * stage.user_price
        result = np.maximum(result, 0.0) * self.inverse
        # Logarithms of prices near 1 have the smallest rounding errors.
        return np.asarray(result / np.maximum(result.max(axis=(1, 2), keepdims=True), TINY))

    def _multiples(self, stage: Stage, prices: Array, user_prices: Array) -> Array:
        """Least multiples (later stages,) of the prices of a stage that are to be added to the prices of later stages.

        With these multiples rows that are full at the stage have nonnegative prices, and pairs that the stage excludes
        cost at least the price of their user.

        Parameters
        ----------
        prices : (later stages, servers, resources)
        user_prices : (later stages, users)
        """
        pairs, user, server = self.pairs, self.pairs.user[stage.dropped], self.pairs.server[stage.dropped]
        row, resource = np.nonzero(stage.full)
        shortfall = -prices[:, stage.servers[row], resource] / np.maximum(stage.prices[row, resource], TINY)
        multiple = shortfall.max(axis=1, initial=0.0)
        affected = np.flatnonzero(user_prices[:, user].any(axis=1))
        cost = np.einsum("pr,spr->sp", pairs.takes[stage.dropped], prices[affected[:, None], server])
        shortfall = (user_prices[affected[:, None], user] - cost) / np.maximum(stage.surplus, TINY)
        multiple[affected] = np.maximum(multiple[affected], shortfall.max(axis=1, initial=0.0))
        return np.asarray(multiple)


class Leximin(Levels):
    """Levels of a criterion with infinite alpha on a polytope; `tasks_per_level` (users,) converts levels to tasks."""

    def __init__(self, polytope: Polytope, criterion: Criterion, candidates: Callable[[], Mask] | None = None) -> None:
        own, capacity = criterion.restrict(polytope.users), polytope.cluster.capacity
        self.polytope, self.tasks_per_level = polytope, own.weight / own.share
        inverse: Array = np.divide(1, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        demand = polytope.cluster.demand[polytope.users] * self.tasks_per_level[:, None]
        pairs = Pairs(polytope.pair_user, polytope.pair_server, demand, inverse, per=polytope.per_work)
        floor = (1 - NEGLIGIBLE) * own.floor / self.tasks_per_level
        super().__init__(pairs, polytope.limit / self.tasks_per_level, floor, candidates)

    def tasks(self) -> Array:
        """Allocation (all users, servers), scaled to the levels of users and to capacities."""
        polytope = self.polytope
        fractions = self.amounts() * self.tasks_per_level[polytope.pair_user] / polytope.gamma
        return polytope.allocation(polytope.inside(fractions))
