"""Witness files: JSON with two cluster files in it; numbers are doubles, or fractions as text."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..errors import DataError
from ..model import cluster_file
from ..model._shown import short
from ..model._validate import ARGUMENTS
from ..model.cluster import Cluster

#: The version of the format that is written, and the only one that is read.
VERSION = 1
_KEYS = (
    "fairopt_witness", "mechanism", "property", "cluster", "changed", "users",
    "before", "after", "violation", "text", "route", "selection",
)  # fmt: skip

Number = Fraction | float


def document(stated: Mapping[str, Any]) -> dict[str, Any]:
    """What a witness file says, of the fields of a `Witness`."""
    clusters = {name: None if stated[name] is None else _cluster(stated[name]) for name in ("cluster", "changed")}
    numbers = {name: [_plain(value) for value in stated[name]] for name in ("before", "after", "violation")}
    return {"fairopt_witness": VERSION, **stated, **clusters, **numbers, "users": list(stated["users"])}


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return cluster_file.document({name: getattr(cluster, name) for name in ARGUMENTS})


def _plain(value: Number) -> str | float:
    return str(value) if isinstance(value, Fraction) else float(value)


def fields(document: Any) -> dict[str, Any]:
    """The fields of a `Witness` that a document states, strictly; `DataError` says what is wrong with it."""
    if not isinstance(document, dict) or "fairopt_witness" not in document:
        raise DataError("this is no witness file: it has no entry fairopt_witness")
    if document["fairopt_witness"] != VERSION:
        raise DataError(f"fairopt_witness is {short(document['fairopt_witness'])}; this version reads {VERSION}")
    if set(document) != set(_KEYS):
        odd = sorted(set(document) ^ set(_KEYS))[0]
        raise DataError(f"{short(odd)} is {'unknown' if odd in document else 'missing'}; known: {', '.join(_KEYS)}")
    texts = {name: _text(document, name) for name in ("mechanism", "property", "text", "route", "selection")}
    changed = document["changed"]
    users = document["users"]
    if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
        raise DataError("users must be a list of names")
    bounds = _values(document, "violation")
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] <= 1:
        raise DataError(f"violation is {short(document['violation'])}; it must be two numbers, 0 < low <= high <= 1")
    cluster = _made(document["cluster"], "cluster")
    other = None if changed is None else _made(changed, "changed")
    tasks = {name: _values(document, name) for name in ("before", "after")}
    for name, of in (("before", cluster), ("after", other)):
        if len(tasks[name]) != (0 if of is None else len(of.users)):
            raise DataError(f"{name} must have a number for every user")
    return {"cluster": cluster, "changed": other, "users": tuple(users), "violation": bounds, **tasks, **texts}


def _made(document: Any, name: str) -> Cluster:
    try:
        return Cluster(**cluster_file.arguments(document)[0])
    except DataError as error:
        raise DataError(f"{name}: {error}", error.where) from None


def _text(document: Mapping[str, Any], name: str) -> str:
    if not isinstance(document[name], str):
        raise DataError(f"{name} is {short(document[name])}; it must be a text")
    return str(document[name])


def _values(document: Mapping[str, Any], name: str) -> tuple[Number, ...]:
    values = document[name]
    if not isinstance(values, list):
        raise DataError(f"{name} is {short(values)}; it must be a list of numbers")
    return tuple(_value(value, name) for value in values)


def _value(value: Any, name: str) -> Number:
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise DataError(f"{name} has {short(value)}; write fractions as '2/3'") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise DataError(f"{name} has {short(value)}; it must be a number, or a fraction such as '2/3'")
    return float(value)
