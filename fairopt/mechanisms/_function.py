"""`mechanism`: a function from a cluster to tasks, as a mechanism of the registry."""

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
    """A mechanism that is a function: its tasks are certified to be feasible, and nothing more is claimed of them."""

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
        """The function's tasks, as `Allocation.of` takes them; `start` is not used.

        Raises
        ------
        DataError
            They are no tasks of this cluster or, with `throw`, not feasible within `tol`; or an engine or a solver is
            asked for.
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
    """Register a function of a cluster that returns tasks (users, servers), as `Allocation.of` takes them.

        @fo.mechanism("round-robin")
        def round_robin(cluster, quantum=1.0): ...

    Comparisons, sweeps, searches for violated properties and commands then know it by its name, and its other
    arguments, which need defaults, as parameters: `round-robin(quantum=2)`. Its answers must be feasible; that they are
    fair is claimed by nobody. The function itself stays as it is.

    Raises
    ------
    DataError
        The name is another mechanism's, or no word; or an argument beyond the first has no default.
    """
    if not isinstance(name, str) or not name or set(name) & set("(),= "):
        raise DataError("a mechanism needs a name: write @mechanism('my-name') above the function")

    def register(function: F) -> F:
        every = list(inspect.signature(function).parameters.values())
        if not every:
            raise DataError(f"{function.__name__} takes nothing; a mechanism's first argument is the cluster")
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
