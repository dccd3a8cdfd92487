"""HUG: allocation of links with the optimal isolation guarantee, and of the spare capacity under a cap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.libraries import pd
from ..model._arrays import Array, ratio
from ..model.cluster import Cluster, expected
from ._filling import highest, normalised, pool_of


@dataclass(frozen=True, eq=False, repr=False)
class LinkShares:
    """Shares of links by tenant; unlike the amounts of an `Allocation`, shares need not be proportional to demands.

    Attributes
    ----------
    cluster : the pool, whose users are tenants and whose resources are links
    guarantee : float
        P*, the largest progress per weight that all tenants can have at once; stage 1 of `hug` allocates it.
    first : (tenants, links), shares of every link after stage 1
    parts : (tenants, links), final shares of every link
    """

    cluster: Cluster
    guarantee: float
    first: Array
    parts: Array

    @property
    def correlation(self) -> Array:
        """Correlation vectors, (tenants, links): demands over capacities, scaled to a maximum of 1 for each tenant."""
        return normalised(self.cluster)

    @property
    def progress(self) -> Array:
        r"""Progress of tenants, (tenants,): :math:`\min_r a_{nr} / D_{nr}` of `parts` a and `correlation` D."""
        return np.asarray(ratio(self.parts, self.correlation, np.inf).min(axis=1))

    @property
    def violation(self) -> float:
        r"""Largest violation of the defining conditions, in fractions of a link, from shares and demands alone.

        Shares are between :math:`\phi_n P^* D_{nr}` and :math:`\phi_n P^*`; a link is exhausted by the guarantees
        alone; no link is overused; on a link with spare capacity all tenants with demand have the cap
        :math:`\phi_n P^*`; and if a tenant has more of a link than its guarantee :math:`\phi_n P^* D_{nr}`, no tenant
        with demand for the link has a smaller share per weight.
        """
        phi, d, a = self.cluster.weight[:, None], self.correlation, self.parts
        least, per, needs, spare = phi * self.guarantee * d, a / phi, d > 0, 1 - a.sum(axis=0)
        extra = needs & (a > least * (1 + 1e-9))
        above = np.where(extra, per, -np.inf).max(axis=0) - np.where(needs, per, np.inf).min(axis=0)
        return float(
            max(
                abs(1 - least.sum(axis=0).max()),
                (least - a).max(),
                (a - phi * self.guarantee).max(),
                -spare.min(),
                a[~needs].max(initial=0.0),
                np.minimum(self.guarantee - per, spare)[needs].max(),
                above.max(),
            )
        )

    def to_frame(self) -> pd.DataFrame:
        """Frame by tenant: weight, progress, and amount of every link, in the units of its capacity."""
        columns = {"weight": self.cluster.weight, "progress": self.progress}
        columns |= {
            name: self.parts[:, i] * self.cluster.capacity[0, i] for i, name in enumerate(self.cluster.resources)
        }
        return pd.DataFrame(columns, index=pd.Index(self.cluster.users, name="tenant"))

    def __repr__(self) -> str:
        return f"LinkShares(guarantee {self.guarantee:g})\n{self.to_frame()}"


def hug(cluster: Cluster) -> LinkShares:
    r"""Allocate links to tenants with correlated, elastic demands: first a guarantee, then the spare capacity.

    Stage 1 allocates the optimal isolation guarantee P* for correlation vectors D (demands over capacities, scaled to a
    maximum of 1 for each tenant). Stage 2 allocates every link r by max-min of the shares per weight,
    :math:`a_{nr} / \phi_n`, with the shares of stage 1 as lower bounds, and a cap as the upper bound:

    .. math:: P^* = \frac{1}{\max_r \sum_n \phi_n D_{nr}}, \qquad
        \phi_n P^* D_{nr} \le a_{nr} \le \phi_n P^*, \qquad \sum_n a_{nr} \le 1

    among the tenants with demand for the link. The progress :math:`\min_r a_{nr} / D_{nr}` of every tenant is
    :math:`\phi_n P^*`; further shares of single links serve elastic demand. Without the cap tenants could gain by a
    misreport; with the cap no misreport increases their true progress (docs/fluid.md). A link has spare capacity only
    if all tenants with demand for it have the cap. The servers of a cluster are pooled; its resources are the links.

    Returns
    -------
    LinkShares

    Raises
    ------
    DataError
        A tenant demands a link without capacity, or has a task limit.

    Source: Chowdhury, Liu, Ghodsi, Stoica, "HUG: Multi-Resource Fairness for Correlated and Elastic Demands", NSDI
    2016, extended by weights; stage 2 is interpreted as max-min of total shares, not of increments over stage 1.

    >>> import fairopt as fo
    >>> found = fo.scheduling.hug(fo.Cluster([[1, 1]], [[1, 1], [1, 0.5]]))
    >>> found.guarantee, found.parts.round(3).tolist()
    (0.5, [[0.5, 0.5], [0.5, 0.5]])
    """
    pool = pool_of(expected(cluster, "the shares of HUG"), "HUG")
    d, phi = normalised(pool), pool.weight
    guarantee = 1 / float((phi @ d).max())
    first = phi[:, None] * guarantee * d
    parts = first.copy()
    for i in range(d.shape[1]):
        needs = d[:, i] > 0
        if needs.any():
            ones = np.ones((int(needs.sum()), 1))
            level = min(highest(ones, first[needs, i], phi[needs], 1.0), guarantee)
            parts[needs, i] = np.maximum(first[needs, i], phi[needs] * level)
    return LinkShares(pool, guarantee, first, parts)
