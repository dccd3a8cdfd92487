r"""Products of faces of servers that can contain an equilibrium, by counting and by linear programs in prices.

A column of an equilibrium, the tasks on one server, lies in the relative interior of a face of the server's polytope.
On this face the fractions of a support S of users are positive, the fractions of other users zero, and a set R of rows,
which has supporting positive prices, is exhausted. The tasks of a user without demand for rows of R could be increased
at no cost; hence every user of the server demands some row of R.

A cell is a face for each server. Two arguments exclude cells. Counting: in a connected part each server of a user other
than its first server is a tie. Ties are homogeneous linear equations in prices of whole capacities, so that a part with
as many ties as rows generically has no positive prices. Linear programs: users prefer the servers in whose support they
are; these conditions are linear in prices,

.. math:: cost_{ni} e^{-\alpha gain_{ni}} \le cost_{nj} e^{-\alpha gain_{nj}}, \qquad
    cost_{ni} = \sum_r D_{nir} \lambda_{ir} c_{ir},

for n in the support of i, with equality if n is also in the support of j. Compatible faces of two servers are
tabulated; for three and more servers batches of small linear programs of equal shape are solved by the simplex method
from a feasible basis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..base import clock
from ..core.accuracy import NEGLIGIBLE, REFINED
from ..core.factors import TINY
from ..core.simplex import highest
from ..model._arrays import Array, Index, Mask

#: Number of linear programs in a batch (`_CHUNK`), and alpha from which prices may exceed the range of doubles
#: (`_WIDE_ALPHA`).
_CHUNK, _WIDE_ALPHA = 1000, 6.0


class TooLargeError(Exception):
    """Raised if the number of cells exceeds the limits of time or memory."""


@dataclass(frozen=True)
class Game:
    """Arrays of a game, with servers in the order of enumeration, and faces in the order of their servers."""

    alpha: float
    use: Array  # (servers, users, resources), D
    gain: Array  # (servers, users), log(phi size), -inf where a user may not run
    size: Array  # (servers, users), gamma in units of the user's largest gamma
    middle: Array  # (servers,), reference of log prices
    host: Index  # (faces,), server
    support: Mask  # (faces, users)
    rows: Mask  # (faces, resources)
    until: float  # CPU time at which the enumeration is abandoned

    @property
    def strict(self) -> bool:
        """True if alpha is so small that prices fit the range of doubles."""
        return self.alpha < _WIDE_ALPHA


def _chunks(numbers: Index, until: float) -> Iterator[Index]:
    for first in range(0, len(numbers), _CHUNK):
        if clock.cpu() > until:
            raise TooLargeError("it would have taken more than EnumerationOptions.seconds")
        yield numbers[first : first + _CHUNK]


def faces(use: Array, usable: Mask, until: float) -> tuple[Index, Mask, Mask]:
    """Enumerate faces of servers: server (faces,), support (faces, users) and active rows (faces, resources).

    A face is kept if positive fractions of its support exist that fill its rows and do not overuse other rows.

    Raises
    ------
    TooLargeError
        The time limit is exceeded.
    """
    users, resources = use.shape[1:]
    found = []
    for i, own in enumerate(usable):
        number, part = np.indices((2**resources, 2 ** int(own.sum()))).reshape(2, -1)[:, 1:]
        support, rows = np.zeros((len(part), users), bool), number[:, None] >> np.arange(resources) & 1 > 0
        support[:, own] = part[:, None] >> np.arange(own.sum()) & 1
        needs = use[i, own] > 0
        good = (support.sum(axis=1) >= rows.sum(axis=1)) & rows.any(axis=1) & ~(rows & ~needs.any(axis=0)).any(axis=1)
        good &= (rows[:, None] & needs).any(axis=2).all(axis=1)
        found.append((np.full(good.sum(), i), support[good], rows[good]))
    host, support, rows = (np.concatenate(each) for each in zip(*found, strict=True))
    kept = []
    # The linear program has fractions of the support of at least t, with a sum of at most 1. The first active row is
    # used at least as much as every other row, and as much as other active rows. t can be positive if and only if the
    # face has a relative interior.
    for some in _chunks(np.arange(len(host)), until):
        members, full = support[some], rows[some]
        need = use[host[some]].swapaxes(1, 2)
        over = members[:, None] * (need - need[np.arange(len(some)), full.argmax(axis=1)][:, None])
        program = np.concatenate([over, -over * full[..., None], members[:, None]], axis=1)
        kept.append(some[highest(program, np.matvec(program, members), NEGLIGIBLE)[0] > NEGLIGIBLE])
    chosen = np.concatenate(kept)
    return host[chosen], support[chosen], rows[chosen]


def connected(on: Mask) -> Mask:
    """Connected parts of servers by pairs (cells, servers, users): mask (cells, first server of a part, servers)."""
    joined = on @ on.transpose(0, 2, 1)
    for _ in range(on.shape[1].bit_length()):
        joined = joined @ joined
    return np.asarray(joined.argmax(axis=2)[:, None] == np.arange(on.shape[1])[:, None])


def _counted(g: Game, chosen: Index) -> Index:
    """Select cells (cells, servers) in which every part has fewer ties than rows."""
    on = g.support[chosen]
    member = connected(on)
    spare = np.matvec(member.astype(int), g.rows[chosen].sum(axis=2) - on.sum(axis=2)) + (member @ on).sum(axis=2)
    return chosen[np.flatnonzero(((spare > 0) | ~member.any(axis=2)).all(axis=1))]


def _beside(g: Game, chosen: Index, j: int, together: Mask | None) -> Index:
    """Extend cells (cells, servers), one face of each earlier server, by the faces of server j.

    An extended cell is kept if it has fewer ties than rows, and if every user is in a support or can run on a later
    server. The number of its ties minus rows is that of the cell, plus one for every user of the face who is also in an
    earlier support, minus the rows of the face. All of these numbers are a product of matrices of cells and of faces,
    to which a user that could run nowhere adds a penalty. `together` (faces, faces) is a mask of faces that may belong
    to one cell.
    """
    own, usable = np.flatnonzero(g.host == j), g.gain > -np.inf
    support, rows, found = g.support[own], g.rows[own].sum(axis=1), [np.zeros((0, chosen.shape[1] + 1), np.intp)]
    penalty = 1.0 + usable.shape[0] * g.rows.shape[1]  # more than the number of all rows
    faces = np.column_stack([support, ~support * penalty, -rows, np.ones(len(own))]).T.astype(np.float32)
    for some in _chunks(chosen, g.until):
        on, later = g.support[some], (g.host[some][..., None] != np.arange(len(usable))).all(axis=1)
        later[:, j] = False
        placed = on.any(axis=1)
        must_be_on_j = usable.any(axis=0) & ~placed & ~(later @ usable)
        ties_less_rows = on.sum(axis=(1, 2)) - placed.sum(axis=1) - g.rows[some].sum(axis=(1, 2))
        cells = np.column_stack([placed, must_be_on_j, np.ones(len(some)), ties_less_rows]).astype(np.float32)
        fits = cells @ faces < 0
        if together is not None:
            fits &= np.logical_and.reduce([together[np.ix_(face, own)] for face in some.T])
        at, face = np.nonzero(fits)
        found.append(np.column_stack([some[at], own[face]]))
    return np.concatenate(found)


def _priced(g: Game, chosen: Index, strict: bool, enough: float = np.inf) -> tuple[Mask, Array]:
    r"""Find prices, positive if `strict`, at which users prefer their servers: a mask of feasible cells, and prices.

    With log gains g, prices :math:`p = v^\alpha`, the first server i of user n in the cell, and every other server j,

    .. math:: e^{\alpha (g_{nj} - g_{ni})} \sum_r D_{nir} p_{ir} \le \sum_r D_{njr} p_{jr}

    with equality if n is also in the support of j. Each condition is scaled to a largest coefficient of 1, and
    :math:`\sum p \le 1`. The linear program maximises a lower bound of all prices if `strict`, and otherwise their sum,
    which is positive if and only if prices are feasible; failures count as feasible. `chosen` (cells, servers) are the
    indices of the faces of some servers; prices are (cells, servers, resources), 0 outside the rows of the faces.
    """
    on, active, servers = g.support[chosen], g.rows[chosen], g.host[chosen]
    (cells, count, users), resources = on.shape, active.shape[2]
    first, gain = on.argmax(axis=1)[:, None], (g.gain - g.middle[:, None])[servers]
    # Indices of cells, of the servers after the first server of a user (j, cyclically), and of users.
    c, a, n = np.ogrid[:cells, : count - 1, :users]
    other = (first + 1 + a) % count
    compared = on.any(axis=1, keepdims=True) & (gain[c, other, n] > -np.inf)
    with np.errstate(invalid="ignore"):
        log_ratio = np.where(compared, g.alpha * (gain[c, other, n] - gain[c, first, n]), 0.0)[..., None]
    cost = active[:, :, None] * g.use[servers]
    prefers = np.zeros((cells, count - 1, users, count, resources))
    prefers[c, a, n, first] = np.exp(np.minimum(log_ratio, 0.0)) * cost[c, first, n] * compared[..., None]
    prefers[c, a, n, other] = -np.exp(np.minimum(-log_ratio, 0.0)) * cost[c, other, n] * compared[..., None]
    shape = cells, (count - 1) * users, count * resources
    prefers = prefers.reshape(shape) / np.maximum(np.abs(prefers).max(axis=(-2, -1)).reshape(*shape[:2], 1), TINY)
    tied = on[c, other, n].reshape(shape[:2])
    ties = np.argsort(~tied, axis=1, kind="stable")[:, : tied.sum(axis=1).max(initial=0), None]
    equal = np.take_along_axis(-prefers * tied[..., None], ties, 1)
    own = active.reshape(cells, 1, shape[2]).astype(float)
    program = np.concatenate([prefers, equal, own] if strict else [prefers, equal, -own, own], axis=1)
    least = own[:, 0] * strict
    level = np.matvec(program, least)
    if not strict:
        level[:, -2] = 1.0
    found, prices = highest(program, level, enough)
    return (found > REFINED) | (found == -1.0), (prices + found[:, None] * least).reshape(active.shape) * active


def _fitting(g: Game, chosen: Index) -> Mask:
    """Mask of cells (cells, servers) with feasible prices."""
    found = [_priced(g, some, g.strict, REFINED)[0] for some in _chunks(chosen, g.until)]
    return np.concatenate([np.zeros(0, bool), *found])


def _together(g: Game) -> tuple[Index, Mask]:
    """Compatible faces of two servers, as a list (couples, 2) and as a mask (faces, faces).

    The server of the first face of a couple precedes that of the second face. Large numbers of couples are filtered by
    the conditions of the first user, then by those of one more user at a time.
    """
    users, couples = g.use.shape[1], np.zeros((0, 2), np.intp)
    for i, j in combinations(range(len(g.gain)), 2):
        couples = np.concatenate([couples, _beside(g, np.argwhere(g.host == i), j, None)])
    _, kinds = np.unique(np.column_stack([g.host, g.rows]), axis=0, return_inverse=True)
    for k in range(1, users + 1):
        _, kind, kinds = np.unique(2 * kinds + g.support[:, k - 1], return_index=True, return_inverse=True)
        if k == users or len(couples) > _CHUNK:
            first = replace(g, use=g.use[:, :k], gain=g.gain[:, :k], support=g.support[:, :k])
            fits = np.zeros((len(kind), len(kind)), bool)
            fits[tuple(kinds[couples].T)] = True
            asked = np.argwhere(fits)
            fits[tuple(asked.T)] = _fitting(first, kind[asked])
            couples = couples[fits[tuple(kinds[couples].T)]]
    together = np.zeros((len(g.host), len(g.host)), bool)
    together[tuple(couples.T)] = True
    return couples, together


def cells(g: Game) -> Iterator[Index]:
    """Generate batches of cells, (batch, servers), that can contain an equilibrium.

    Raises
    ------
    TooLargeError
        The time limit is exceeded.
    """
    (couples, together), servers = _together(g), len(g.gain)
    chosen = couples[g.host[couples[:, 1]] < 2] if servers > 1 else np.zeros((1, 0), np.intp)
    for j in range(chosen.shape[1], servers):
        chosen = _beside(g, chosen, j, together)
        if j < servers - 1:
            chosen = chosen[_fitting(g, chosen)]
    for some in _chunks(chosen, g.until):
        yield _counted(g, some)


def prices(g: Game, chosen: Index) -> tuple[Mask, Array]:
    """Mask of cells (cells, servers) with feasible prices, and these prices (cells, servers, resources)."""
    fits, found = _priced(g, chosen, True)
    if not g.strict:
        left = np.flatnonzero(~fits)
        fits[left], found[left] = _priced(g, chosen[left], False)
    return fits, found
