"""Allocation files: tasks with all that is needed to check them, in JSON. See `docs/allocation-file.md`.

A file has the cluster as the arrays of `Cluster`, so that any program can write and read it in a few lines. Numbers
have all digits; null stands for infinity, or in log prices for minus infinity. A file claims that its tasks satisfy its
criterion. It contains no certificate: the reader computes one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.files import Table
from ..base.names import label, short
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.cluster_file import known_keys
from ..model.criterion import Criterion, FairnessEfficiency, criterion, virtual_share_per_task
from ..model.queues import Queues
from ..model.tree_filling import TreeCriterion, tree_criterion

#: Version of the format that is written, and the only version that is read.
VERSION = 1
#: Keys of a file.
_KEYS = ("fairopt_allocation", "mechanism", "cluster", "criterion", "tasks", "log_prices", "tol")
#: Keys of the exponents in the criterion of FDS.
_FACTORS = ("fair", "efficient")
#: Keys of the criterion of a tree of queues.
_TREE = ("queues", "combine")
#: All keys of a criterion.
_CRITERION_KEYS = ("alpha", "scope", "share", "weight", "cap", "floor", *_FACTORS, *_TREE)
#: Scopes of criteria whose shares follow from the cluster.
_BY_SERVER = ("per_server", "game")
#: Axes of each array of a cluster, and the value that null represents in it, if null is allowed.
_ARRAYS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "capacity": (("servers", "resources"), None),
    "demand": (("users", "resources"), None),
    "weight": (("users",), None),
    "max_tasks": (("users",), np.inf),
    "eligible": (("users", "servers"), None),
    "rate": (("users", "servers"), None),
}
#: Axes of arrays for which a file lists names.
_NAMES = ("resources", "servers", "users")


@dataclass(frozen=True, eq=False)
class StatedAnswer:
    """Claim of an allocation file: `tasks` (users, servers) are optimal under `criterion` on `cluster`.

    `log_prices`, (servers, resources) or (levels, servers, resources) for max-min, per resource unit, prove the claim;
    `tol` bounds the residual of the certificate. Without a criterion the claim is only that tasks are feasible.
    """

    mechanism: str
    cluster: Cluster
    criterion: Criterion | None
    tasks: Array
    log_prices: Array | None
    tol: float


def write(path: str | Path, claim: StatedAnswer) -> None:
    """Write an allocation file by way of a temporary file, so that a failure does not change an existing file.

    Raises
    ------
    DataError
        The criterion has a utility that is a function, or the file cannot be written.
    """
    files.write(Path(path), json.dumps(_document(claim), allow_nan=False) + "\n", "allocation file")


def is_one(path: Path) -> bool:
    """True if a file with the suffix `.json` has the key of allocation files; False if it cannot be read."""
    try:
        return path.suffix.lower() == ".json" and f'"{_KEYS[0]}"' in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # the reader of the file raises the error
        return False


def read(path: str | Path) -> StatedAnswer:
    """Read an allocation file; the `DataError` of an invalid file names the file and the entry."""
    return files.read_json(path, "allocation file", _claim)


def tables(cluster: Cluster) -> Table:
    """Entry `cluster` of a file, with 1 and 0 for true and false, and without `rate` if all rates are 1."""
    names: Table = {name: list(getattr(cluster, name)) for name in _NAMES}
    arrays = {name: _plain(getattr(cluster, name) + 0) for name in _ARRAYS if name != "rate" or cluster.rated}
    return names | arrays


def _document(claim: StatedAnswer) -> Table:
    cluster = claim.cluster
    return {
        "fairopt_allocation": VERSION,
        "mechanism": claim.mechanism,
        "cluster": tables(cluster),
        "criterion": None if claim.criterion is None else _stated(claim.criterion, cluster),
        "tasks": claim.tasks.tolist(),
        "log_prices": None if claim.log_prices is None else _plain(claim.log_prices),
        "tol": claim.tol,
    }


def _stated(rule: Criterion, cluster: Cluster) -> Table:
    if isinstance(rule, TreeCriterion):  # the weights follow from the tree
        tree = {"queues": rule.queues.to_dict(), "combine": rule.combine}
        return {"alpha": "inf", "scope": rule.scope, "share": _plain(rule.share)} | tree
    if type(rule) not in (Criterion, FairnessEfficiency):
        raise DataError(
            f"files hold no {type(rule).__name__}, whose utility is a function: save the cluster, and give the tasks "
            "to the mechanism's certify"
        )
    said = {"alpha": _plain(np.asarray(rule.alpha), "inf"), "scope": rule.scope}
    for name, default in defaults(cluster).items():
        if not np.array_equal(values := getattr(rule, name), default):
            said[name] = _plain(values)
    if rule.scope not in _BY_SERVER:
        said["share"] = _plain(rule.share)
    elif not np.array_equal(rule.share, virtual_share_per_task(cluster)):
        raise DataError(f"in the scope {rule.scope!r} files hold shares of 1/gamma[n,i] alone; these are others")
    return said | {name: getattr(rule, name) for name in _FACTORS if hasattr(rule, name)}


def defaults(cluster: Cluster) -> dict[str, Array]:
    """Default weights, caps and floors, (users,) each, which a file may omit."""
    return {"weight": cluster.weight, "cap": np.full(len(cluster.users), np.inf), "floor": np.zeros(len(cluster.users))}


def _plain(array: Array, instead: str | None = None) -> Any:
    """Convert an array to nested lists, with `instead` for numbers that are not finite."""
    plain = array.astype(object)
    plain[~np.isfinite(array)] = instead
    return plain.tolist()


def _claim(document: Any) -> StatedAnswer:
    _known(document, "an allocation file", _KEYS)
    version = _needed(document, "fairopt_allocation", "")
    if isinstance(version, bool) or version != VERSION:
        _wrong("fairopt_allocation", f"is {short(version)}; this fairopt reads version {VERSION} of allocation files")
    mechanism = label(document.get("mechanism", "unnamed"), "mechanism", ("mechanism",))
    cluster = _cluster(_needed(document, "cluster", ""))
    if "criterion" not in document:
        _needed(document, "criterion", "")
    rule = None if document["criterion"] is None else _criterion(cluster, document["criterion"])
    tasks = _numbers(document, "", "tasks", cluster.shape[:2])
    given, log_prices = document.get("log_prices"), None
    if given is not None:
        shape: tuple[int, ...] = cluster.shape[1:]
        if _depth(given) > 2:
            if rule is None or np.isfinite(rule.alpha) or rule.scope == "game":
                _wrong("log_prices", "has several levels, which only max-min has; give one table (servers, resources)")
            shape = (max(len(given), 1), *shape)
        log_prices = _array(given, "log_prices", shape, -np.inf)
    tol = _validate.tolerance(document.get("tol", 1e-6))
    return StatedAnswer(mechanism, cluster, rule, tasks, log_prices, tol)


def _cluster(given: Any) -> Cluster:
    _known(given, "cluster", (*_NAMES, *_ARRAYS))
    arguments: Table = {}
    for key in _NAMES:
        arguments[key] = names = _needed(given, key, "cluster.")
        if not names or not files.texts(names):
            _wrong(f"cluster.{key}", f"is {short(names)}; it must be a list of names")
    for key, (axes, null) in _ARRAYS.items():
        if key in given or key in ("capacity", "demand"):
            shape = tuple(len(arguments[axis]) for axis in axes)
            arguments[key] = _numbers(given, "cluster.", key, shape, null)
    with files.inside("cluster", "cluster"):
        return Cluster(**arguments)


def _criterion(cluster: Cluster, given: Any) -> Criterion:
    _known(given, "criterion", _CRITERION_KEYS)
    users = len(cluster.users)
    scope = _needed(given, "scope", "criterion.")
    alpha = np.inf if given.get("alpha") == "inf" else _numbers(given, "criterion.", "alpha")
    if scope == "per_server" and np.isfinite(alpha):
        _wrong("criterion.alpha", f'is {alpha:g}; in the scope "per_server" it must be "inf"')
    share: Any = partial(virtual_share_per_task, cluster)
    if scope not in _BY_SERVER:
        share = _numbers(given, "criterion.", "share", (users,), np.inf)
    elif given.get("share") is not None:
        _wrong("criterion.share", f"must be left out in the scope {short(scope)}, where it is 1/gamma[n,i]")
    numbers = defaults(cluster)
    for name in numbers:
        if name in given:
            numbers[name] = _array(given[name], f"criterion.{name}", (users,), np.inf if name == "cap" else None)
        for n in np.flatnonzero(~((numbers[name] > 0) | ((numbers[name] == 0) & (name != "weight")))):
            least = "> 0" if name == "weight" else ">= 0"
            _wrong(f"criterion.{name}[{n}]", f"of user {cluster.users[n]!r} must be {least}")
    with files.inside("criterion", "criterion"):
        named = scope if isinstance(scope, str) else short(scope)
        of = "constant" if cluster.rated else "unknown"  # with rates shares are per unit of work
        rule = criterion(cluster, share, alpha, named, **numbers, share_rule=of)  # type: ignore[arg-type]
    if "queues" in given:
        if np.isfinite(alpha) or scope != "servers" or {*given} & {"weight", "cap", "floor", *_FACTORS}:
            _wrong("criterion.queues", 'have alpha "inf", the scope "servers", share and combine beside them alone')
        with files.inside("criterion.queues", "criterion", "queues"):
            return tree_criterion(cluster, share, Queues(given["queues"]), given.get("combine", "sum"))
    if not any(name in given for name in _FACTORS):
        return rule
    fair, efficient = (_numbers(given, "criterion.", name) for name in _FACTORS)
    if not (fair > 0 and efficient > 0 and 0 < alpha <= 1e6 and alpha != 1 and scope not in _BY_SERVER):
        _wrong(
            "criterion.fair",
            "and efficient must be > 0, for an alpha > 0 other than 1, at most 1e6, and pool or servers",
        )
    return FairnessEfficiency(**rule.plain, fair=fair, efficient=efficient)


def _array(value: Any, name: str, shape: tuple[int, ...] = (), null: float | None = None) -> Any:
    """Read an array of the given shape, or a number for the shape (); `null`, if given, replaces null.

    A `DataError` names the entry, such as `tasks[2][0]`.
    """
    if shape:
        if not isinstance(value, list) or len(value) != shape[0]:
            found = f"has {len(value)} entries" if isinstance(value, list) else f"is {short(value)}"
            _wrong(name, f"{found}; it must be a list of {shape[0]}")
        parts = [_array(part, f"{name}[{k}]", shape[1:], null) for k, part in enumerate(value)]
        return np.array(parts, dtype=float).reshape(shape)
    if value is None and null is not None:
        return null
    if not _validate.finite(value):
        _wrong(name, f"is {short(value)}; it must be a finite number{'' if null is None else f' or null ({null:g})'}")
    return float(value)


def _numbers(table: Table, prefix: str, key: str, shape: tuple[int, ...] = (), null: float | None = None) -> Any:
    """Read the numbers of a required entry of a table (`_array`); a missing entry raises `DataError`."""
    return _array(_needed(table, key, prefix), f"{prefix}{key}", shape, null)


def _depth(value: Any) -> int:
    """Depth of nested lists, along their first entries."""
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth


def _known(document: Any, name: str, keys: tuple[str, ...]) -> None:
    if not isinstance(document, dict):
        raise DataError(f"{name} is {short(document)}; it must be a table with {', '.join(keys)}")
    known_keys(document, keys, f" in {name}")


def _needed(document: Table, key: str, prefix: str) -> Any:
    if document.get(key) is None:
        _wrong(f"{prefix}{key}", "is missing; docs/allocation-file.md says what belongs there")
    return document[key]


def _wrong(entry: str, what: str) -> NoReturn:
    raise DataError(f"{entry} {what}", (entry,))
