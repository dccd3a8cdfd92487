"""HUG: links shared with the largest guarantee for everybody, and what is spare given away under a cap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.libraries import pd
from ..model._arrays import Array, ratio
from ..model.cluster import Cluster, expected
from ._filling import highest, normalised, pool_of


@dataclass(frozen=True, eq=False, repr=False)
class LinkShares:
    """Parts of links that tenants have. More than a multiple of their demands, so that this is no `Allocation`.

    Attributes
    ----------
    cluster : the pool: its users are tenants, its resources are links
    guarantee : float
        P*: the progress per weight that stage 1 gives to everybody, the largest that all can have.
    first, parts : (tenants, links), parts of every link after stage 1, and in all
    """

    cluster: Cluster
    guarantee: float
    first: Array
    parts: Array

    @property
    def correlation(self) -> Array:
        """(tenants, links): demands in parts of links, the largest of each tenant 1."""
        return normalised(self.cluster)

    @property
    def progress(self) -> Array:
        """(tenants,): `min_i a_ki / d_ki`, how much of its most needed link each could use."""
        return np.asarray(ratio(self.parts, self.correlation, np.inf).min(axis=1))

    @property
    def violation(self) -> float:
        """The largest violation of what defines it, in parts of a link, from parts and demands alone.

        Nobody has less than `phi P* d_ki` or more than `phi P*`; P* is such that one link is then full; links are not
        overfull; of a link that is not full everybody who needs it has the cap; and who has more per weight than
        another on a link has no more than its guarantee, unless the other is at its cap.
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
        """A row per tenant: weight, progress, and of every link what it has, in the link's units."""
        columns = {"weight": self.cluster.weight, "progress": self.progress}
        columns |= {
            name: self.parts[:, i] * self.cluster.capacity[0, i] for i, name in enumerate(self.cluster.resources)
        }
        return pd.DataFrame(columns, index=pd.Index(self.cluster.users, name="tenant"))

    def __repr__(self) -> str:
        return f"LinkShares(guarantee {self.guarantee:g})\n{self.to_frame()}"


def hug(cluster: Cluster) -> LinkShares:
    """Share links among tenants with correlated, elastic demands: first a guarantee, then what is spare.

        d_ki = (demand / capacity), scaled to max_i d_ki = 1                  the correlation vector of tenant k
        1.  P* = 1 / max_i sum_k phi_k d_ki,   a_ki = phi_k P* d_ki           the optimal isolation guarantee
        2.  on every link i: max-min of a_ki / phi_k among those who need it (d_ki > 0),
            from what stage 1 gave on, with  a_ki <= phi_k P*,  sum_k a_ki <= 1

    Progress of a tenant is `min_i a_ki / d_ki`. It is `phi_k P*` for all: more than stage 1 gives on one link is for
    elastic demand, whose use is not tied to the others. Without the cap tenants could gain by asking for what they do
    not need; with it their true progress never rises by a lie (docs/fluid.md). Links are full unless everybody who
    needs them is at the cap. The servers of a cluster are pooled; its resources are the links.

    Raises
    ------
    DataError
        A tenant needs a link without capacity, or has a task count.

    Source: Chowdhury, Liu, Ghodsi, Stoica, "HUG: Multi-Resource Fairness for Correlated and Elastic Demands", NSDI
    2016. Weights are ours. Its text was not at hand: stage 2 raises totals, not what comes on top of stage 1.
    """
    pool = pool_of(expected(cluster), "HUG")
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
