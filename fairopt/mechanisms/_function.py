"""The decorator `mechanism`: a function from clusters to tasks becomes a mechanism."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from ..base.errors import DataError
from ..certificates import Certificate, feasible
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..result.allocation import Allocation
from ._base import Mechanism
from ._earlier import OtherUsers
from .reference.program import Program

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class FunctionMechanism(Mechanism):
    """Mechanism that is given by a function, with tasks that are certified for feasibility only."""

    function: ClassVar[Callable[..., Any]]

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        return ("function",)

    def solve(
        self,
        cluster: Cluster,
        tol: float | None = None,
        *,
        throw: bool = True,
        engine: str | None = None,
        solver: str | None = None,
        start: Allocation | OtherUsers | None = None,
    ) -> Allocation:
        """Evaluate the function and certify its tasks (`Allocation.of`); `start` is ignored.

        Raises
        ------
        DataError
            The result is not an array of tasks of this cluster; or, with `throw`, it is infeasible beyond `tol`; or an
            engine or a solver is requested.
        """
        if solver is not None or engine not in (None, "function"):
            raise DataError(f"{self} is a function, and has no engine or solver to choose")
        tol = self.default_tol if tol is None else _validate.tolerance(tol)
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Allocation.of(expected(cluster), type(self).function(cluster, **given), str(self), tol=tol, throw=throw)

    def certify(self, cluster: Cluster, tasks: Array, log_prices: Array | None = None) -> tuple[Certificate, None]:
        return feasible(cluster, tasks)

    def criterion(self, cluster: Cluster) -> NoReturn:
        raise DataError(f"{self} is a function, which states no criterion and no convex program")

    def program(self, p: Program) -> NoReturn:
        raise DataError(f"{self} is a function, which states no criterion and no convex program")

    def __reduce__(self) -> tuple[Any, ...]:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _again, (self.name, given)


def _again(name: str, given: dict[str, Any]) -> Mechanism:
    from . import get

    return get(name, **given)


def mechanism(name: str) -> Callable[[F], F]:
    r"""Decorator that registers a function of a cluster as a mechanism, and returns the function unchanged.

    The function returns tasks x, (users, servers), as `Allocation.of` accepts them. They are certified to satisfy

    .. math:: \sum_n x_{ni} d_{nr} \le c_{ir}, \qquad \sum_i x_{ni} \le q_n, \qquad x \ge 0

    with demands d, capacities c and task limits q; no fairness is claimed. Comparisons, sweeps, searches for property
    violations and commands find the mechanism by its name. Further arguments of the function, which need defaults, are
    parameters of the mechanism, as in `halves(fraction=0.25)`.

    Raises
    ------
    DataError
        The name belongs to another mechanism or is not a single word; or an argument after the first has no default.

    >>> import fairopt as fo
    >>> @fo.mechanism("halves")
    ... def halves(cluster, fraction=0.5):
    ...     return fraction * cluster.gamma * cluster.weight[:, None] / cluster.weight.sum()
    >>> fo.mechanisms.get("halves").solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [1.125, 0.75]
    """
    if not isinstance(name, str) or not name or set(name) & set("(),= "):
        raise DataError("a mechanism needs a name: write @mechanism('my-name') above the function")

    def register(function: F) -> F:
        every = list(inspect.signature(function).parameters.values())
        if not every:
            raise DataError(f"{function.__name__} takes no argument; a mechanism's first argument is the cluster")
        parameters = every[1:]
        for parameter in parameters:
            if parameter.default is parameter.empty:
                raise DataError(
                    f"{function.__name__} needs a default for {parameter.name!r}: it is a parameter of {name}"
                )
        fields = [(one.name, Any, dataclasses.field(default=one.default)) for one in parameters]
        place = {
            "name": name, "title": name, "function": staticmethod(function), "__doc__": function.__doc__,
            "__module__": function.__module__, "__qualname__": function.__qualname__,
        }  # fmt: skip
        dataclasses.make_dataclass(function.__name__, fields, bases=(FunctionMechanism,), frozen=True, namespace=place)
        return function

    return register
