"""The efficiency-fairness frontier: one allocation per alpha, each started from the one before."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import DataError
from ..mechanisms import Mechanism
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model.cluster import Cluster
from ..result.allocation import Allocation

#: From efficient to max-min: 39 values from 0.1 to 64, and infinity.
ALPHAS = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 39)), math.inf)


def alpha_path(
    cluster: Cluster,
    alphas: Iterable[float] = ALPHAS,
    *,
    mechanism: type[Mechanism] = AlphaPFVDS,
    tol: float | None = None,
    throw: bool = True,
    progress: bool = False,
) -> pd.DataFrame:
    """Follow a mechanism with a parameter `alpha` (alphaPF-VDS unless told otherwise) as alpha changes.

    `mechanism=fo.AlphaFair` follows the global family.

    Returns
    -------
    DataFrame
        one row per alpha, in the order given: `allocation`, then what `Allocation.summary` says of it (tasks, shares,
        utilization per resource, Jain's index, welfare, certificate, seconds) and the Newton steps it took. Every
        engine that can starts from the allocation before: in the game that saves a quarter to a half of the steps of a
        solve, if neighbouring alphas differ by 20%, and nothing if by a factor of 2.5.

    Raises
    ------
    DataError
        Alphas or the mechanism are not such as can be followed, or as `Mechanism.solve`.
    NotConverged, SolverError
        As `Mechanism.solve`; with `throw=False` rows that miss `tol` are flagged in their allocations.
    """
    if not isinstance(alphas, Iterable):
        raise DataError(f"alphas is {alphas!r}; give a list of them, such as alpha_path(cluster, [1, 3])")
    values = [_validate.alpha(alpha) for alpha in alphas]
    if not values:
        raise DataError("alphas is empty; give at least one, such as alpha_path(cluster, [1, 3])")
    _check(mechanism)
    if progress:
        from .._progress import tqdm

        values = tqdm(values, desc="alpha path", unit="alpha")
    rows, last = [], None
    for alpha in values:
        last = mechanism(alpha=alpha).solve(cluster, tol, throw=throw, start=_usable(last))  # type: ignore[call-arg]
        rows.append({"alpha": alpha, "allocation": last} | last.summary() | {"steps": last.stats.rounds})
    return pd.DataFrame(rows).set_index("alpha")


def _check(mechanism: object) -> None:
    """A class of mechanisms with a parameter `alpha`."""
    if isinstance(mechanism, Mechanism):
        raise DataError(f"mechanism is one {mechanism}; give the class, mechanism={type(mechanism).__name__}")
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise DataError(f"mechanism is {mechanism!r}; it must be a class of mechanisms, such as mechanism=AlphaFair")
    if "alpha" not in (field.name for field in dataclasses.fields(mechanism)):
        raise DataError(f"{mechanism.__name__} has no parameter alpha to follow; AlphaPFVDS and AlphaFair have one")


def _usable(last: Allocation | None) -> Allocation | None:
    return last if last is not None and last.warm is not None and not last.flagged else None
