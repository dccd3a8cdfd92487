"""Derivative of a utility given as a CVXPY expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...base.libraries import cp
from ...model._arrays import Array

Utility = Callable[["cp.Expression"], "cp.Expression"]


#: Number of levels at which the derivative of a utility is checked.
_POINTS = 80
#: Ratio of the lowest to the highest checked level.
_LEAST = 1e-9
#: Number of random permutations of levels under which derivatives are tested for equivariance.
_PERMUTATIONS = 4


def log1p(shares: cp.Expression) -> cp.Expression:
    """Utility log(1 + s) of shares s, (users,), as a CVXPY expression; CVXPY is imported at the first call."""
    return cp.log1p(shares)


def _gradient(expression: cp.Expression, at: cp.Variable) -> Any:
    """CVXPY's derivative of an expression as a sparse matrix; None where CVXPY has no derivative."""
    with np.errstate(all="ignore"):
        try:
            return expression.grad[at]
        except TypeError:  # CVXPY adds the None of a part without a derivative to the derivative of another part
            return None


@dataclass(frozen=True)
class UtilitySlope:
    """Derivative `U'(t)` of a utility U, evaluated by CVXPY; infinite at levels where it does not exist."""

    utility: Utility

    def __call__(self, levels: Array) -> Array:
        """Evaluate the derivative at levels of any shape."""
        result = np.full(levels.shape, np.inf)
        plain = np.isfinite(levels)
        for some in (plain & (levels > 0), plain & (levels == 0)):
            if some.any() and (found := self._slopes(levels[some])) is not None:
                result[some] = found
        return result

    def _slopes(self, levels: Array) -> Array | None:
        count = len(levels)
        at = cp.Variable(max(count, 2), nonneg=True)  # for a single entry CVXPY's derivative is a scalar
        at.value = np.resize(levels, max(count, 2))
        found = _gradient(self.expression(at), at)
        return None if found is None else np.asarray(found.diagonal())[:count]

    def expression(self, levels: cp.Expression) -> cp.Expression:
        """Utility of levels, (users,), as an expression of the same shape.

        Raises
        ------
        DataError
            The utility does not return an expression of the shape of `levels`, or it is not concave by CVXPY's rules.
        """
        try:
            found = self.utility(levels)
        except Exception as error:
            raise DataError(
                f"the utility must be a function of a CVXPY expression, such as cp.log1p: {error}"
            ) from None
        if not isinstance(found, cp.Expression) or found.shape != levels.shape:
            raise DataError(
                "the utility must return a CVXPY expression of the shape that it is given, such as cp.log1p(s)"
            )
        if not found.is_concave():
            raise DataError(
                "the utility is not concave by CVXPY's rules; give one that is (cp.log1p, cp.sqrt, "
                "lambda s: -cp.exp(-s)), see https://www.cvxpy.org/tutorial/dcp"
            )
        return found

    def check(self, most: float, count: int) -> None:
        """Raise `DataError` unless the utility is increasing and concave up to the level `most`, and acts elementwise.

        The derivative must be positive at small levels, and nonnegative and nonincreasing up to `most`. At a level it
        must not depend on the position of the level in an array of `count` levels.
        """
        levels = most * np.geomspace(_LEAST, 1.0, _POINTS)
        at = cp.Variable(_POINTS, nonneg=True)
        at.value = levels
        matrix = _gradient(self.expression(at), at)
        if matrix is None:
            raise DataError(f"the utility must have a value and a derivative at shares from 0 to {most:g}")
        slopes = matrix.diagonal()
        if abs(matrix).sum() > abs(slopes).sum() * (1 + 1e-12):
            raise DataError("the utility must take every share by itself; the users' utilities are added up")
        self._check_places(most, max(count, _POINTS))
        with np.errstate(invalid="ignore"):
            falls = (np.diff(slopes) <= 1e-9 * slopes[:-1]).all()
        if not (np.isfinite(slopes).all() and falls and slopes[0] > 0 and slopes[-1] >= 0):
            raise DataError(
                f"the utility must increase, and ever more slowly, at weighted shares from 0 to {most:g}; its "
                f"derivative is {slopes[0]:.3g} at {levels[0]:.3g} and {slopes[-1]:.3g} at {most:.3g}. Give another"
            )

    def _check_places(self, most: float, count: int) -> None:
        """Raise `DataError` if U' at a level depends on the level's position in an array, or on the array's length.

        Engines evaluate U' for subsets of users, in any order.
        """
        rng = np.random.default_rng(0)
        levels = rng.uniform(0.0, most, count)
        slopes = self(levels)
        rounding = 1e-12 * slopes[np.isfinite(slopes)].max(initial=0.0)
        orders = [rng.permutation(count) for _ in range(_PERMUTATIONS)]
        for order in (*orders, orders[0][: count // 2]):
            if not np.allclose(self(levels[order]), slopes[order], rtol=1e-9, atol=rounding):
                raise DataError(
                    "the utility must be one function for all users; this one gives a share another worth in another "
                    "place. Tell users apart by their weights instead"
                )
