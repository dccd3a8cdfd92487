"""Sharing incentive and envy-freeness within the levels of a queue."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..mechanisms import Mechanism
from ..mechanisms.mqdrf import MQDRF
from ..model._arrays import Index
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
        levels, sizes, shares = queue(case)
        full = np.bincount(levels, minlength=len(sizes)) == sizes
        # Parts of levels are fractions with at most this denominator.
        part = np.array([Fraction(share).limit_denominator(10**6) for share in shares], dtype=object)[levels]
        part = part / np.array([int(size) for size in sizes], dtype=object)[levels]
        due = in_pool(case) * (part if case.exact else part.astype(float))
        runs = case.cluster.runnable & full[levels]
        return case.user_tasks, capped(np.where(runs, due, 0 * due), case.cluster, case)


def queue(case: Case) -> tuple[Index, Index, tuple[float, ...]]:
    """Levels of users, from 0, (users,); sizes and shares of levels."""
    rule, count = case.mechanism, len(case.cluster.users)
    if not isinstance(rule, MQDRF):
        return np.zeros(count, dtype=np.intp), np.array([count]), (1.0,)
    levels = np.zeros(count, dtype=np.intp) if rule.levels is None else np.array(rule.levels) - 1
    return levels, np.array([count] if rule.sizes is None else rule.sizes), rule.shares


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
        levels = queue(case)[0]
        return np.asarray(levels[:, None] == levels, dtype=int)
