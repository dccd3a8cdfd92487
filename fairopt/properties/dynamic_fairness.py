"""Sharing incentive and envy-freeness within the levels of a queue."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..mechanisms import Mechanism
from ..mechanisms.mqdrf import MQDRF
from ._base import Case, Dues, Numbers, Property, capped
from .envy_freeness import EnvyFreeness
from .sharing_incentive import in_pool


class DynamicSharingIncentive(Property):
    """In a level that is full everybody has its part of what the level has.

        x_n max_r d[n,r]/C_r >= DK_k/N_k, or x_n = q_n, for all n of a level k with N_k users

    Zeros: the dominant resource decides alone. Placement constraints are not part of the paper's model: the pool has
    none. Who has all its tasks, or can run nothing, is satisfied. Levels that are not full promise nothing.

    Source: Liu, Liu (MQDRF), theorem 1. Weights play no part.
    """

    name = "dynamic-sharing-incentive"
    definition = "in a full level k of MQDRF: x_n max_r d[n,r]/C_r >= DK_k/N_k, or x_n = q_n"
    words = "{user} has {has} tasks; its part of what its level has would run {due}"

    def unfit(self, mechanism: Mechanism | None) -> str:
        return "" if isinstance(mechanism, MQDRF) else "it is about queues with levels, such as MQDRF"

    def dues(self, case: Case) -> Dues:
        rule = case.mechanism
        assert isinstance(rule, MQDRF)
        levels, sizes = rule.queue(len(case.cluster.users))
        full = np.bincount(levels, minlength=len(sizes) + 1)[1:] == sizes
        # Parts of levels are fractions with at most this denominator.
        parts = [
            Fraction(share).limit_denominator(10**6) / int(size) for share, size in zip(rule.shares, sizes, strict=True)
        ]
        part = np.array(parts, dtype=object if case.exact else float)[levels - 1]
        due = in_pool(case) * part
        runs = case.cluster.runnable & full[levels - 1]
        return case.user_tasks, capped(np.where(runs, due, 0 * due), case.cluster, case)


class DynamicEnvyFreeness(EnvyFreeness):
    """Nobody could run more tasks with what another user of its level has.

        x_n >= min(q_n, max_{m in the level of n} sum_i x[m,i] min_{r: d[n,r] > 0} d[m,r]/d[n,r])

    A bundle that lacks a resource that n demands is worth nothing to n. The pool has no placement constraints. Who has
    all its tasks envies nobody; users of other levels are envied by right.

    Source: Liu, Liu (MQDRF). Weights play no part.
    """

    name = "dynamic-envy-freeness"
    definition = "x_n >= min(q_n, tasks of n with what m has), for every m of its level in MQDRF"
    words = "{user} has {has} tasks; with what another user of its level has it would run {due}"

    def unfit(self, mechanism: Mechanism | None) -> str:
        return DynamicSharingIncentive().unfit(mechanism)

    def parts(self, case: Case) -> Numbers:
        assert isinstance(case.mechanism, MQDRF)
        levels = case.mechanism.queue(len(case.cluster.users))[0]
        return np.asarray(levels[:, None] == levels, dtype=int)
