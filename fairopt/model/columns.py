r"""Feasible set and levels of columns, activities that may belong to several users, and exact merging of columns.

A column is a job on one kind of accelerator, two jobs on one accelerator, or one of several shapes of a job. With
amounts x of columns the constraints and levels are

.. math:: A x \le 1, \quad x \ge 0, \qquad \ell = G x,

where rows of A are capacities and own times, each relative to the available amount, and rows of G belong to users.

**Merging.** Rows, users and columns are partitioned such that rows of a class have the same coefficients in every class
of columns, and columns of a class have the same coefficients in every class of rows (colour refinement). The mean of an
allocation over classes of columns is then feasible, and its levels are the means over classes of users, so that some
fair allocation is constant on classes, for lexicographic max-min and every concave welfare. Source: M. Grohe, K.
Kersting, M. Mladenov, E. Selman, "Dimension reduction via colour refinement", ESA 2014.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.libraries import sp
from ..base.names import short
from . import _intake, _validate
from ._arrays import Array, Index, read_only

_Codes = NDArray[np.uint64]


class ColumnProgram(NamedTuple):
    """Linear program of the columns of users that have at least one column.

    Attributes
    ----------
    limits : (rows, columns), sparse; `limits @ x <= 1`
    gain : (users, columns), sparse; levels per unit of a column
    weight : (users,), weights in the welfare of levels
    """

    limits: sp.csc_matrix
    gain: sp.csc_matrix
    weight: Array

    @property
    def most(self) -> Array:
        """Largest amount of each column by itself, (columns,)."""
        return np.asarray(1 / self.limits.max(axis=0).toarray()[0]) if self.limits.shape[1] else np.zeros(0)

    def restricted(self, columns: Index) -> ColumnProgram:
        """Program with the given columns only."""
        return ColumnProgram(self.limits[:, columns], self.gain[:, columns], self.weight)

    def merged(self) -> Quotient:
        """Program of classes of rows, users and columns, by colour refinement."""
        table = sp.vstack([self.limits, self.gain], format="csr")
        rows = self.limits.shape[0]
        row = np.unique(np.append(np.zeros(rows), self.weight), return_inverse=True)[1]
        row[:rows] = row.max() + 1
        column, classes = np.zeros(table.shape[1], dtype=np.intp), 0
        across = table.tocsc()
        while classes < (classes := int(row.max() + column.max())):
            row, column = _refined(table, row, column), _refined(across, column, row)
        limit, user = (np.unique(part, return_inverse=True)[1] for part in np.split(row, [rows]))
        first = np.unique(column, return_index=True)[1]
        some, of_users = self.restricted(first), _means(user)
        count = np.bincount(user)
        program = ColumnProgram(_means(limit) @ some.limits, of_users @ some.gain, of_users @ self.weight * count)
        return Quotient(program, limit, user, column)


class Quotient(NamedTuple):
    """Merged program, with amounts of classes of columns as unknowns, and the class of each row, user and column."""

    program: ColumnProgram
    row_of: Index
    user_of: Index
    column_of: Index

    def amounts(self, x: Array) -> Array:
        """Amounts (columns,), from amounts of classes, which are divided evenly among the columns of a class."""
        return np.asarray((x / np.bincount(self.column_of))[self.column_of])

    def of_rows(self, prices: Array) -> Array:
        """Prices (..., rows), from prices of classes of rows."""
        return np.asarray((prices / np.bincount(self.row_of))[..., self.row_of])

    def of_users(self, values: Array) -> Array:
        """Marginal values of levels (..., users), from marginal values of the mean levels of classes."""
        return np.asarray((values / np.bincount(self.user_of))[..., self.user_of])


def _means(group: Index) -> sp.csr_matrix:
    """Matrix of means over groups, (groups, members)."""
    return sp.csr_matrix((1 / np.bincount(group)[group], (group, np.arange(len(group)))))


def _mixed(codes: _Codes) -> _Codes:
    """Hash of 64 bits, of which every bit depends on all bits of the code (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        codes = (codes ^ (codes >> np.uint64(shift))) * np.uint64(factor)
    return codes ^ (codes >> np.uint64(31))


def _refined(table: sp.csr_matrix | sp.csc_matrix, own: Index, other: Index) -> Index:
    """Refine classes `own` of the compressed axis by multisets of coefficients and classes of the other axis."""
    codes = _mixed(table.data.view(np.uint64) ^ _mixed(other[table.indices].astype(np.uint64) + np.uint64(1)))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(codes)])[table.indptr]
    every = _mixed(np.diff(sums)) ^ _mixed(own.astype(np.uint64) + np.uint64(2))
    return np.asarray(np.unique(every, return_inverse=True)[1])


def table(values: Any, what: str) -> sp.csc_matrix:
    """Convert nonnegative numbers to a sparse matrix without stored zeros; raise `DataError` for other values."""
    packed = _intake.packed(values)
    if packed and (values.ndim != 2 or values.dtype.kind not in "iuf"):
        raise DataError(f"{what} must be a table of numbers; got {values.dtype}, {values.shape}")
    table = sp.csc_matrix(values if packed else _intake.matrix(values, what, "row", "column"), dtype=float, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    if not _validate.inside(table.data).all():
        wanted = f"0, or finite numbers from {_validate.LEAST:g} to {_validate.MOST:g}"
        raise DataError(f"{what} must be {wanted}; it has {table.data[~_validate.inside(table.data)][0]:g}")
    read_only(table.data)
    return table


def named(columns: Any) -> tuple[Any, ...]:
    """Return names of columns, with lists as tuples; raise `DataError` for names that cannot be an index."""
    try:
        if isinstance(columns, str):
            raise TypeError
        named = tuple(tuple(name) if isinstance(name, list) else name for name in columns)
        {*named}  # noqa: B018 - tables are indexed by names
    except TypeError:
        raise DataError(f"columns are {short(columns)}; give a list of names, texts or tuples of them") from None
    if () in named:
        raise DataError("a column has an empty tuple as its name")
    return named


def jobs_of(throughputs: Any, workers: Any, of_jobs: dict[str, Any], share: Any) -> list[Any]:
    """List the jobs with throughputs; raise `DataError` for invalid arguments that name jobs."""
    for given, what in ((throughputs, "throughputs"), (workers, "workers"), *((by, a) for a, by in of_jobs.items())):
        if not isinstance(given, Mapping) and (given is not None or what not in of_jobs):
            raise DataError(f"{what} must be a dict; got {short(given)}")
    for job, by_gpu in throughputs.items():
        if not isinstance(by_gpu, Mapping):
            raise DataError(f"throughputs of {short(job)} must be a dict by GPU; got {short(by_gpu)}")
    jobs = [key for key in throughputs if not is_pair(key, throughputs)]
    for job in jobs:
        if isinstance(job, tuple) and any(one in throughputs for one in job):
            raise DataError(f"{short(job)} is no pair of two jobs that have throughputs alone: correct its names")
    known = {*jobs}
    for what, given in (of_jobs | {"share": share}).items():
        if isinstance(given, Mapping) and (odd := [job for job in given if job not in known]):
            raise DataError(f"{what} has {short(odd[0])}, of which there are no throughputs")
    if isinstance(share, str) and share != "alone":
        raise DataError(f"share is {share!r}; it must be 'alone', a number, or a dict of numbers by job")
    if isinstance(share, Mapping) and (odd := [job for job in jobs if job not in share]):
        raise DataError(f"share has no number for {short(odd[0])}")
    return jobs


def is_pair(key: Any, throughputs: Mapping[Any, Any]) -> bool:
    """True if a key is a pair of jobs, and not a job whose name is a tuple."""
    return isinstance(key, tuple) and len(key) == 2 and all(job in throughputs for job in key)
