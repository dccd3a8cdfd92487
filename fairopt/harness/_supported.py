"""Weights at efficient tasks, from the normals that support them: a choice, and how far others may go (`_frontier`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.criterion import Criterion
from ._frontier import Frontier

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class SupportedOptions:
    """Which budgets are taken among several."""

    #: Budgets up to this part of the reference's, or the other way round, are none.
    none: float = 1e-9
    #: Logarithms of budgets that a choice is to be near are cut at this distance from their median.
    spread: float = 9.0


#: What is used unless a caller says otherwise.
OPTIONS = SupportedOptions()


def closed_form(place: Frontier, rule: Criterion, own: Array) -> Array:
    """Weights at which efficient tasks X are optimal: from supporting prices, or for max-min `u_n X_n`."""
    share, alpha = _share(rule, place.polytope.users), rule.alpha
    if np.isinf(alpha):
        return np.asarray(share * place.tasks)
    log_budget = _log_budgets(alpha, own, share, place)
    log_budget = np.clip(log_budget - np.median(log_budget), -OPTIONS.spread, OPTIONS.spread)
    budgets = place.normals.nearest(np.exp(log_budget))
    log_budget = log_budget if budgets is None else np.log(budgets)
    found = (log_budget + (alpha - 1) * np.log(share * place.tasks)) / alpha
    return np.asarray(np.exp(found - found.mean()))


def ranges(place: Frontier, rule: Criterion, weights: Array) -> tuple[Array, Array, int]:
    """The ends of `phi_n / phi_ref` times the weight of the reference, (users,) each, and who that is.

    It is the user with the largest budget of those whose task limit does not bind.
    """
    share, free = _share(rule, place.polytope.users), np.ones(len(weights), dtype=bool)
    free[place.normals.limited] = False
    log_budget = np.log(weights) if np.isinf(rule.alpha) else _log_budgets(rule.alpha, weights, share, place)
    reference = int(np.argmax(np.where(free, log_budget, -np.inf))) if free.any() else 0
    of = _of_levels if np.isinf(rule.alpha) else _of_budgets
    return *of(place, rule.alpha, share, weights, reference), reference


def _of_budgets(place: Frontier, alpha: float, share: Array, weights: Array, reference: int) -> tuple[Array, Array]:
    """The ends of weights for finite alpha: `phi_n / phi_ref` is `(b_n/b_ref (s_n/s_ref)^(alpha-1))^(1/alpha)`."""
    normals, users = place.normals, range(len(weights))
    size = (share * place.tasks) ** ((alpha - 1) / alpha)
    size = weights[reference] * size / size[reference]
    least = np.array([1.0 if n == reference else normals.least(n, reference) for n in users])
    inverse = np.array([1.0 if n == reference else normals.least(reference, n) for n in users])
    inverse[inverse <= OPTIONS.none] = 0.0
    with np.errstate(divide="ignore"):
        return size * np.where(least <= OPTIONS.none, 0.0, least) ** (1 / alpha), size * (1 / inverse) ** (1 / alpha)


def _of_levels(place: Frontier, _: float, share: Array, weights: Array, reference: int) -> tuple[Array, Array]:
    """The same for max-min: all levels may be equal, and whom prices hold without the reference may be below it."""
    equal = share * place.tasks
    equal = equal * weights[reference] / equal[reference]
    normals, users = place.normals, range(len(weights))
    high = np.where(normals.without(reference), np.inf, equal)
    low = np.array([0.0 if n != reference and normals.without(n)[reference] else equal[n] for n in users])
    return low, high


def _share(rule: Criterion, users: Index) -> Array:
    """The share per task, (users,); of proportional servers that of the first, and at alpha = 1 it cancels anyway."""
    if rule.share.ndim == 1:
        return rule.share[users]
    usable = np.isfinite(rule.share[users])
    return np.asarray(rule.share[users][np.arange(len(users)), usable.argmax(axis=1)])


def _log_budgets(alpha: float, weights: Array, share: Array, place: Frontier) -> Array:
    """`log(X_n dF/dx_n)` at efficient tasks X, (users,)."""
    return np.asarray(alpha * np.log(weights) + (1 - alpha) * np.log(share * place.tasks))
