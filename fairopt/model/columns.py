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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.libraries import sp
from ._arrays import Array, Index

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
