"""Named CVXPY expressions, printed by their name and indexed by names of users and servers."""

from __future__ import annotations

import re
from typing import Any

from ...base.errors import DataError
from ...base.libraries import cp

Names = tuple[tuple[str, ...], ...]


class Named(cp.atoms.affine.wraps.Wrap):  # type: ignore[misc]
    """Expression with a name, and with names along its axes that serve as indices, such as `tasks["ann", "s2"]`.

    The rules of disciplined parametrized programming (DPP) forbid division by a parameter. If `rules`, the constraints
    of the program, are given, division by a weight returns a variable, the quotient, and adds the constraint
    `weight * quotient <= expression` to them.
    """

    def __init__(
        self,
        expression: cp.Expression,
        title: str = "",
        axes: Names = (),
        rules: dict[str, cp.Constraint] | None = None,
    ) -> None:
        self.title, self.axes, self._rules = title, axes, rules
        super().__init__(expression)

    def __truediv__(self, weight: Any) -> cp.Expression:
        if self._rules is None:
            return super().__truediv__(weight)
        quotient = cp.Variable(self.shape, name=f"{self.title}_by_weight", nonneg=True)
        self._rules[quotient.name()] = cp.multiply(weight, quotient) <= self
        return quotient

    def get_data(self) -> list[Any]:
        return [self.title, self.axes]

    def name(self) -> str:
        return self.title

    def __getitem__(self, key: Any) -> cp.Expression:
        keys = key if isinstance(key, tuple) else (key,)
        places = tuple(self._place(k, axis) for k, axis in zip(keys, self.axes, strict=False))
        keys = (*places, *keys[len(places) :])
        return super().__getitem__(keys if isinstance(key, tuple) else keys[0])

    def _place(self, key: Any, axis: tuple[str, ...]) -> Any:
        if isinstance(key, list) and any(isinstance(one, str) for one in key):
            return [self._place(one, axis) for one in key]
        if not isinstance(key, str):
            return key
        if key not in axis:
            raise DataError(f"{self.title} has no {key!r}; known: {', '.join(axis[:8])}, or an index from 0")
        return axis.index(key)


def definitions(expressions: list[cp.Expression]) -> dict[str, str]:
    """Definitions of the named parts of expressions, in order of occurrence."""
    found: dict[str, str] = {}
    waiting = list(expressions)
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Named) and part.title not in found:
            found[part.title] = readable(part.args[0].name())
        waiting.extend(part.args)
    return found


def readable(text: str) -> str:
    """Shorten CVXPY's text of an expression: omit shapes of promotions, flags of atoms, and excess digits."""
    text = re.sub(r"Promote\(([^()]*), \(\d*,?( \d+)?\)\)", r"\1", text)
    text = re.sub(r"\bSum\(([^()]*), None, False\)", r"sum(\1)", text)
    text = re.sub(r"\bSum\(([^()]*), 1, False\)", r"sum(\1, axis=1)", text)
    text = re.sub(r"\bPower(Approx)?\(", "power(", text)
    text = re.sub(r"\bPnorm(Approx)?\(", "pnorm(", text)
    return re.sub(r"\b\d+\.\d+\b", lambda number: f"{float(number[0]):.6g}", text)
