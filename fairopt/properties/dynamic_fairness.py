"""Sharing incentive and envy-freeness within the levels of the queue of MQDRF."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..mechanisms import Mechanism
from ..mechanisms.mqdrf import MQDRF
from ._base import Case, Dues, Numbers, Property, capped
from .envy_freeness import EnvyFreeness
from .sharing_incentive import in_pool


class DynamicSharingIncentive(Property):
    r"""In a full level of a queue every user has a dominant share of at least an equal part of the level's share.

    .. math:: x_n \max_r \frac{d_{nr}}{C_r} \ge \frac{DK_k}{N_k} \quad \text{or} \quad x_n = q_n
        \qquad \text{for all n of a level k with } N_k \text{ users}

    :math:`DK_k` is the share of level k. The pool has no placement constraints. Users at their task limit, or unable to
    run tasks, are satisfied. Levels that are not full have no guarantee. Weights are ignored.

    Source: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing", theorem 1.
    """

    name = "dynamic-sharing-incentive"
    definition = "in a full level of MQDRF every user has an equal part of what the level has, or all its tasks"
    words = "{user} has {has} tasks; its part of what its level has would run {due}"

    def unfit(self, mechanism: Mechanism | None) -> str:
        return "" if isinstance(mechanism, MQDRF) else "it is about queues with levels, such as MQDRF"

    def dues(self, case: Case) -> Dues:
        rule = case.mechanism
        assert isinstance(rule, MQDRF)
        levels, sizes = rule.queue(len(case.cluster.users))
        full = np.bincount(levels, minlength=len(sizes) + 1)[1:] == sizes
        # A level's share is taken as the simple fraction that the floating-point number represents.
        parts = [
            Fraction(share).limit_denominator(10**6) / int(size) for share, size in zip(rule.shares, sizes, strict=True)
        ]
        part = np.array(parts, dtype=object if case.exact else float)[levels - 1]
        due = in_pool(case) * part
        runs = case.cluster.runnable & full[levels - 1]
        return case.user_tasks, capped(np.where(runs, due, 0 * due), case.cluster, case)


class DynamicEnvyFreeness(EnvyFreeness):
    r"""No user could run more tasks with the resources of another user of the same level.

    .. math:: x_n \ge \min\Big(q_n, \max_{m \text{ in the level of } n} \sum_i x_{mi}
        \min_{r : d_{nr} > 0} \frac{d_{mr}}{d_{nr}}\Big)

    A bundle without a resource that n demands has no value to n. The pool has no placement constraints. A user at its
    task limit envies no other user; envy between levels is permitted. Weights are ignored.

    Source: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing", theorem 4.
    """

    name = "dynamic-envy-freeness"
    definition = "no user could run more tasks with the bundle of another of its level in MQDRF"
    words = "{user} has {has} tasks; with what another user of its level has it would run {due}"
    in_work = False

    def unfit(self, mechanism: Mechanism | None) -> str:
        return DynamicSharingIncentive().unfit(mechanism)

    def parts(self, case: Case) -> Numbers:
        assert isinstance(case.mechanism, MQDRF)
        levels = case.mechanism.queue(len(case.cluster.users))[0]
        return np.asarray(levels[:, None] == levels, dtype=int)
