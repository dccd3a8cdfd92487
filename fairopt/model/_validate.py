"""Validation of parameters and of the data of a cluster; errors name the row and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..base import names as _names
from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import short
from . import _intake
from ._arrays import Array, Mask, frozen, read_only

#: Arguments of the constructor of a cluster, in order; attributes have the same names.
ARGUMENTS = ("capacity", "demand", "weight", "eligible", "max_tasks", "resources", "users", "servers", "rate")
#: Range of nonzero finite data; a product of six numbers in it is within the range of floating point.
LEAST, MOST = 1e-50, 1e50


def number(value: object, what: str, wanted: str, good: Callable[[float], bool] = lambda _: True) -> float:
    """Return a real parameter as a float; `DataError` if it is NaN or not `good`, with the description `wanted`."""
    if (truth := isinstance(value, bool | np.bool_)) or not isinstance(value, Real):
        kind = "a truth value" if truth else f"of type {type(value).__name__}"
        raise DataError(f"{what} is {short(value)}, {kind}; it must be {wanted}")
    try:
        result = float(value)
    except OverflowError:
        raise DataError(f"{what} is {short(value)}, beyond the range of numbers; it must be {wanted}") from None
    if np.isnan(result) or not good(result):
        raise DataError(f"{what} is {result:g}; it must be {wanted}")
    return result


def whole(value: object, what: str, least: int = 1) -> int:
    """Return an integer of at least `least`; other values, including truth values, raise `DataError`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise DataError(f"{what} is {short(value)}; it must be a whole number, at least {least}")
    return int(value)


def alpha(value: object) -> float:
    """Return the parameter of alpha-fairness, from 0 to infinity (also as text), as a float, or raise `DataError`."""
    value = np.inf if isinstance(value, str) and value.lower() in ("inf", "infinity", "∞") else value
    return number(value, "alpha", "a number from 0 (efficient) to infinity (max-min)", lambda alpha: alpha >= 0)


def tolerance(value: object) -> float:
    """Return a tolerance as a float; `DataError` unless it is finite and > 0."""
    return number(value, "tol", "a number > 0, such as 1e-6", lambda tol: 0 < tol < np.inf)


def finite(value: object) -> bool:
    """True for a finite number that is not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def cluster(given: dict[str, Any]) -> dict[str, Any]:
    """Validate the arguments of the constructor of a cluster (`DataError`), and return its attributes by name."""
    if any(map(_intake.labelled, given.values())):
        from . import _frames

        given = _frames.aligned(given)
    capacity = _intake.matrix(given["capacity"], "capacity", "server", "resource")
    demand, packed = given["demand"], _intake.packed(given["demand"])
    if not packed:
        demand = _intake.matrix(demand, "demand", "user", "resource")
    if capacity.shape[1] != demand.shape[1]:
        raise DataError(
            f"capacity has {capacity.shape[1]} resources and demand has {demand.shape[1]}; "
            "give both one column per resource, in the same order"
        )
    resources = _names.names(given["resources"], capacity.shape[1], "resource")
    users = _names.names(given["users"], demand.shape[0], "user")
    servers = _names.names(given["servers"], len(capacity), "server")
    weight = _intake.vector(given["weight"], "weight", users, 1.0)
    max_tasks = _intake.vector(given["max_tasks"], "max_tasks", users, np.inf)
    eligible = _intake.eligibility(given["eligible"], users, servers)
    amounts(capacity, "server", "capacity", servers, resources)
    some, rate = demand, _intake.rates(given["rate"], users, servers)
    if packed:
        if any(eligible.strides) or any(rate.strides):
            raise DataError(
                "placement constraints and rates are not supported with a sparse demand of more than a million pairs"
            )
        some = np.diff(demand.indptr)[:, None]
        for k in np.flatnonzero(~inside(demand.data))[:1].tolist():
            row = int(np.searchsorted(demand.indptr, k, "right")) - 1
            amounts(demand[[row]].toarray(), "user", "demand", users[row:], resources)
    else:
        amounts(demand, "user", "demand", users, resources)
    people(users, weight, max_tasks, some)
    if any(rate.strides):
        amounts(rate, "user", "rate", users, servers)
        eligible = eligible if rate.all() else frozen(eligible & (rate > 0))
    rows = (demand.data, demand.indices, demand.indptr) if packed else (demand,)
    for own in (capacity, *rows, weight, max_tasks, rate):  # `eligible` is read-only already
        read_only(own)
    values = capacity, demand, weight, eligible, max_tasks, resources, users, servers, rate
    return dict(zip(ARGUMENTS, values, strict=True))


def row(value: Any, argument: str, names: Sequence[str], axis: str) -> Any:
    """Return values along one axis, after aligning a series by its labels."""
    if not _intake.labelled(value):
        return value
    from . import _frames

    return _frames.in_order(value, argument, (axis, names))


def per_user(given: Any, argument: str, known: Sequence[str], users: Iterable[object] | None = None) -> Array:
    """Finite numbers >= 0 by user, in the order of `known`, NaN for users that are not named.

    `given` is a list in the order of `users` (by default all known users), or a series or dict, which is aligned by
    labels; the labels must be a permutation of `users`.

    Raises
    ------
    DataError
        A number is missing, negative or not finite, or a name unknown; the message names the user.
    """
    wanted = known if users is None else _names.labels(users, "user")
    places = {name: n for n, name in enumerate(known)}
    if unknown := [name for name in wanted if name not in places]:
        raise DataError(f"users has {unknown[0]!r}; the cluster has {_names.some(known)}")
    if isinstance(given, Mapping):
        given = pd.Series(dict(given), dtype=object)
    numbers = _intake.plain(row(given, argument, wanted, "user"), argument)
    if numbers.shape != (len(wanted),):
        raise DataError(
            f"{argument} must have one number per user, {len(wanted)} in all ({_names.some(wanted)}); "
            f"got shape {numbers.shape}"
        )
    for k in np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0))).tolist():
        what = f"{argument} of user {wanted[k]!r} is {numbers[k]:g}; it must be a finite number >= 0"
        raise DataError(what, ("users", places[wanted[k]]))
    result = np.full(len(known), np.nan)
    result[[places[name] for name in wanted]] = numbers
    return result


def inside(values: Array, *others: float) -> Mask:
    """Mask of numbers from `LEAST` to `MOST`, or equal to one of the numbers `others`."""
    found = (values >= LEAST) & (values <= MOST)
    for other in others:
        found |= values == other
    return np.asarray(found)


def amounts(table: Array, kind: str, what: str, labels: Sequence[str], resources: Sequence[str]) -> None:
    """Raise `DataError` unless capacities or demands are 0 or inside the range."""
    for row, column in np.argwhere(~inside(table, 0.0)).tolist():
        raise DataError(
            f"{kind} {labels[row]!r} (row {row}) has {what} {table[row, column]:g} {'on' if what == 'rate' else 'of'} "
            f"{resources[column]!r}; it must be a finite number >= 0{_beyond(table[row, column])}",
            (f"{kind}s", row, what, resources[column]),
        )


def people(labels: Sequence[str], weight: Array, max_tasks: Array, demand: Array) -> None:
    """Raise `DataError` unless weights and task limits are in range, and every user demands a resource."""
    for what, values, good, wanted in (
        ("weight", weight, inside(weight), "a finite number > 0"),
        ("max_tasks", max_tasks, inside(max_tasks, 0.0, np.inf), ">= 0 (leave it out, or use inf, for no limit)"),
    ):
        for row in np.flatnonzero(~good).tolist():
            found = f"user {labels[row]!r} (row {row}) has {what} {values[row]:g}"
            raise DataError(f"{found}; it must be {wanted}{_beyond(values[row])}", ("users", row, what))
    for row in np.flatnonzero(~demand.any(axis=1)).tolist():
        raise DataError(
            f"user {labels[row]!r} (row {row}) demands nothing; give it a demand > 0 for some resource, or drop it",
            ("users", row, "demand"),
        )


def _beyond(value: float) -> str:
    """End of the error message for a positive finite number out of range."""
    return f", here from {LEAST:g} to {MOST:g}: choose other units" if 0 < value < np.inf else ""
