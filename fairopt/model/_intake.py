"""Conversion of arguments to arrays of plain numbers, with precise errors.

NumPy converts nearly everything to numbers: it drops masks and imaginary parts, counts dates in days and reads text.
Here only numbers are accepted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.libraries import sp
from ..base.names import labels, short, some
from ._arrays import Array, Mask, frozen

#: Kinds of arrays that are not numbers: truth values, complex numbers, dates, spans of time, text, bytes, records.
_OTHERS = "bcMmUSV"
#: Exceptions that NumPy raises if it cannot form an array; warnings are errors here.
_REFUSALS = (TypeError, ValueError, OverflowError, RecursionError, Warning)
_EVERYWHERE, _ONE = frozen(np.ones((), dtype=bool)), frozen(np.ones(()))


#: Attributes that distinguish tables and columns of pandas, Arrow, polars and similar libraries from arrays and lists.
_OF_TABLES = ("to_pandas", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "iloc", "columns")


def labelled(values: object) -> bool:
    """True for a frame or a series, which `_frames` aligns by its labels."""
    if values is None or isinstance(values, np.ndarray | list | tuple | float | int):
        return False
    return any(hasattr(values, name) for name in _OF_TABLES)


def numbers(values: Any, truths: bool = False) -> Array:
    """Convert values to a new array of floats, with `truths` also truth values; raises one of `_REFUSALS`."""
    array = _array(values)
    if truths and array.dtype.kind == "b":
        return array.astype(float)
    if not truths and _truth_among(values):  # NumPy would convert truth values to 0 and 1
        raise TypeError("it holds truth values")
    if array.dtype.kind in _OTHERS:
        raise TypeError(f"it holds {array.dtype.name}")
    if array.dtype.kind == "O":
        for item in array.flat:
            _number(item)
    with np.errstate(over="ignore"):  # numbers beyond the range become infinite
        result = np.array(array, dtype=float, order="C")
    result += 0.0  # -0.0 becomes 0
    return result


def plain(values: Any, what: str, where: tuple[str | int, ...] = (), truths: bool = False) -> Array:
    """Convert numbers of any shape to an array of floats, or raise `DataError`."""
    try:
        return numbers(values, truths)
    except _REFUSALS as error:
        raise DataError(f"{what} must be numbers ({error})", where) from None


def matrix(values: Any, what: str, rows: str, columns: str, names: Sequence[str] = ()) -> Array:
    """Convert to a two-dimensional float array, or raise `DataError`.

    The error calls the axes of the array `rows` and `columns`, and its columns `names`.
    """
    try:
        array = numbers(values)
    except _REFUSALS as error:
        row, fault = _fault(values, error, names)
        raise DataError(
            f"{what} must be a table of numbers with one row per {rows} and one column per {columns}, "
            f"all rows of one length: {fault}",
            () if row is None else (f"{rows}s", row, what),
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"{what} must have shape ({rows}s, {columns}s) with at least one of each; got {array.shape}. "
            f"Pass a list of rows, even for a single {rows}: [[...]]"
        )
    return array


#: Number of entries up to which a sparse demand becomes an array, which all mechanisms accept. So does a larger demand
#: of which at least half of the entries are nonzero.
_DENSE = 1_000_000


def packed(demand: object) -> bool:
    """True for a sparse matrix of SciPy."""
    return hasattr(demand, "tocsr")


def unpacked(given: dict[str, Any]) -> dict[str, Any]:
    """Replace a demand that is sparse or a dict by a matrix of compressed rows, or by an array if it is small.

    Returns all arguments; other demands are unchanged. An invalid demand raises `DataError`.
    """
    demand = given["demand"]
    if isinstance(demand, Mapping) and not packed(demand) and all(isinstance(row, Mapping) for row in demand.values()):
        resources, users, rows = (
            labels(given["resources"] or (), "resource"),
            labels(demand, "user"),
            [*demand.values()],
        )
        place = {name: k for k, name in enumerate(resources)}
        for user, row in zip(users, rows, strict=True):
            if odd := {*row} - {*place}:
                raise DataError(
                    f"user {user!r} demands {short(odd.pop())}; give amounts by names of resources={resources}"
                )
        if given["users"] is not None:
            raise DataError("users are named by the demand; leave out users=")
        amounts = plain([value for row in rows for value in row.values()], "demand")
        if amounts.ndim > 1:
            raise DataError("demand has lists as amounts; give one number by user and resource")
        columns, ends = [place[name] for row in rows for name in row], np.cumsum([0, *map(len, rows)])
        demand = sp.csr_array((amounts, columns, ends), (len(rows), len(place)))
        given = given | {"users": users, "resources": resources}
    if not packed(demand):
        return given
    if demand.ndim != 2 or demand.dtype.kind not in "iuf":
        raise DataError(f"a sparse demand must have numbers by user and resource; got {demand.dtype}, {demand.shape}")
    demand = sp.csr_array(demand, dtype=float, copy=True)
    demand.sum_duplicates()
    demand.eliminate_zeros()
    small = demand.shape[0] * demand.shape[1] <= max(_DENSE, 2 * demand.nnz)
    return given | {"demand": demand.toarray() if small else demand}


def vector(values: Any, what: str, users: Sequence[str], default: float) -> Array:
    """Array with one number per user, from an array, a scalar for all users, or None for `default`.

    Other values raise `DataError`.
    """
    if values is None:
        return np.full(len(users), default)
    try:
        array = numbers(values)
    except _REFUSALS as error:
        for row, (user, value) in enumerate(zip(users, values if _listed(values) else (), strict=False)):
            if not _is_number(value):
                raise DataError(
                    f"user {user!r} (row {row}) has {what} {short(value)}; {what} must be one number per user",
                    ("users", row, what),
                ) from None
        raise DataError(f"{what} must be one number per user ({error})") from None
    if array.ndim == 0:
        array = np.full(len(users), float(array))
    if array.shape != (len(users),):
        raise DataError(f"{what} must have one number per user, {len(users)} in all; got shape {array.shape}")
    return array


def eligibility(values: Any, users: Sequence[str], servers: Sequence[str]) -> Mask:
    """Placement constraints (users, servers); None makes all pairs eligible, and a dict has servers by user.

    Other shapes, values or names raise `DataError`.
    """
    shape = len(users), len(servers)
    if isinstance(values, Mapping):
        places = {name: [index] for index, name in enumerate(servers)}
        values = placed(_by_row(values, "eligible", users), users, len(servers), places)
    everywhere = np.broadcast_to(_EVERYWHERE, shape)  # a view of one number
    if values is None:
        return everywhere
    if type(values) is np.ndarray and not any(values.strides) and values.shape == shape and values[0, 0]:
        return everywhere  # a view of one number, as in another cluster
    try:
        array = _array(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):  # NumPy has converted all entries to text
            array = np.array(values, dtype=object)
    except _REFUSALS as error:
        row, fault = _fault(values, error)
        raise DataError(
            f"eligible must be a table (users, servers), all rows of one length: {fault}",
            () if row is None else ("users", row, "eligible"),
        ) from None
    if array.shape != shape:
        raise DataError(f"eligible must have shape (users, servers) = {shape}; got {array.shape}")
    if array.dtype != bool:
        known = (array == 0) | (array == 1) if array.dtype.kind in "iuf" else _truths(array)
        for row, column in np.argwhere(~known)[:1].tolist():
            raise DataError(
                f"user {users[row]!r} has eligible {_plain(array[row, column])} for server {servers[column]!r}; "
                "eligible must hold only true or false (1 or 0)",
                ("users", row, "eligible"),
            )
    return everywhere if array.all() else frozen(np.asarray(array, dtype=bool, order="C"))


def rates(values: Any, users: Sequence[str], servers: Sequence[str]) -> Array:
    """Rates of work (users, servers); None makes all rates 1, and a dict has rates by user and server.

    Other shapes, values or names raise `DataError`.
    """
    if isinstance(values, Mapping):
        places = {name: [index] for index, name in enumerate(servers)}
        values = rated(_by_row(values, "rate", users), users, len(servers), places)
    ones = np.broadcast_to(_ONE, (len(users), len(servers)))  # a view of one number
    if values is None:
        return ones
    array = matrix(values, "rate", "user", "server", servers) if _listed(values) else plain(values, "rate")
    if array.ndim and array.shape != ones.shape:
        raise DataError(f"rate must have shape (users, servers) = {ones.shape}; got {array.shape}")
    return ones if (array == 1).all() else np.array(np.broadcast_to(array, ones.shape))


def rated(wanted: Mapping[int, Any], users: Sequence[str], servers: int, known: Mapping[str, Sequence[int]]) -> Any:
    """Rates (users, servers) from one number, or numbers by name of server, for each user; 1 where no rate is given.

    An unknown name of a server raises `DataError`.
    """
    rate = np.ones((len(users), servers), dtype=object)
    for row, given in wanted.items():
        for name, value in given.items() if isinstance(given, Mapping) else ():
            if not isinstance(name, str) or name not in known:
                raise DataError(
                    f"user {users[row]!r} has a rate on {short(name)}, but no server is called so; rate must be a "
                    "number, or a table of numbers by servers' names",
                    ("users", row, "rate"),
                )
            rate[row, list(known[name])] = value
        if not isinstance(given, Mapping):
            rate[row] = [given] * servers
    return rate.tolist()


def _by_row(values: Mapping[Any, Any], what: str, users: Sequence[str]) -> dict[int, Any]:
    """Convert a dict by name of user to a dict by index of user; an unknown name raises `DataError`."""
    rows = {name: row for row, name in enumerate(users)}
    wanted = dict(zip(labels(values, "user"), values.values(), strict=True))
    for name in wanted:
        if name not in rows:
            raise DataError(f"{what} names user {name!r}; there are {some(users)}")
    return {rows[name]: value for name, value in wanted.items()}


def placed(wanted: Mapping[int, Any], users: Sequence[str], servers: int, known: Mapping[str, Sequence[int]]) -> Mask:
    """Eligibility (users, servers) from lists of names of servers by user; users without a list may use all servers.

    An unknown name of a server raises `DataError`.
    """
    eligible = np.ones((len(users), servers), dtype=bool)
    for row, listed in wanted.items():
        several = isinstance(listed, Iterable) and not isinstance(listed, str | Mapping)
        listed = list(listed) if several else [listed]
        for name in listed:
            if not isinstance(name, str) or name not in known:
                raise DataError(
                    f"user {users[row]!r} is eligible on {short(name)}, but no server is called so; "
                    'eligible must be a list of names of servers, such as ["server1"]',
                    ("users", row, "eligible"),
                )
        eligible[row] = False
        eligible[row, [index for name in listed for index in known[name]]] = True
    return eligible


def _array(values: Any) -> NDArray[Any]:
    """Convert a value to an array of any type; raises one of `_REFUSALS` for masked, labelled or ragged values."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("it is a masked array; fill or drop what is masked")
    if labelled(values):
        raise TypeError(f"it is a {type(values).__name__}, whose labels would be ignored; pass to_numpy(), in order")
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    for row, part in enumerate(values if isinstance(values, list | tuple) else ()):
        if isinstance(part, np.ma.MaskedArray) or labelled(part):
            raise TypeError(f"row {row} is a {type(part).__name__}; pass plain numbers, or one DataFrame of all rows")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.array(values)


def _number(value: Any) -> float:
    """Convert one number to a float; raises one of `_REFUSALS`."""
    of_numpy = isinstance(value, np.generic | np.ndarray)
    if isinstance(value, bool | str | bytes | np.ma.MaskedArray) or (
        of_numpy and (value.ndim or value.dtype.kind in _OTHERS)
    ):
        raise TypeError(f"it holds {short(value)}")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"it holds {short(value)}") from None


def _truth_among(values: object) -> bool:
    if isinstance(values, list | tuple):
        return not {bool, np.bool_}.isdisjoint(map(type, values)) or any(map(_truth_among, values))
    return isinstance(values, np.ndarray) and values.dtype.kind == "b"


def _is_number(value: object) -> bool:
    try:
        _number(value)
    except _REFUSALS:
        return False
    return True


def _listed(values: object) -> bool:
    """True for a sequence of entries."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _truths(array: NDArray[Any]) -> Mask:
    """Mask of the entries of an array that are true, false, 1 or 0."""
    found = [isinstance(item, bool | np.bool_) or (_is_number(item) and item in (0, 1)) for item in array.flat]
    return np.array(found, dtype=bool).reshape(array.shape)


def _plain(value: object) -> str:
    """Text of a value in error messages, as a user would write it."""
    return short(value.item() if isinstance(value, np.generic) else value).strip("'")


def _fault(table: Any, error: Exception, names: Sequence[str] = ()) -> tuple[int | None, str]:
    """First invalid row of a table with the reason, or else the message of NumPy."""
    length = None
    for row, values in enumerate(table if _listed(table) else ()):
        if labelled(values):
            return row, str(error)
        if not _listed(values):
            return row, f"row {row} is {short(values)}, which is not a list"
        for column, value in enumerate(values):
            if not _is_number(value):
                of = f" ({names[column]!r})" if names else ""
                return row, f"row {row} has {short(value)} in column {column}{of}, which is not a number"
        length = len(values) if length is None else length
        if len(values) != length:
            return row, f"row {row} has {len(values)} entries, and row 0 has {length}"
    return None, str(error)
