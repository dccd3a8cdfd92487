"""What `mutate.py` breaks: patches of the package, and the tests that should notice each.

pytest loads this file as a plugin (`-p mutations`), which applies the mutation that the environment names.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import property_mutations
import pytest

#: The variable of the environment that names the mutation.
NAME = "FAIROPT_MUTATION"


@dataclass(frozen=True)
class Mutation:
    """A patch, and the arguments of pytest for tests that should notice it."""

    apply: Callable[[pytest.MonkeyPatch], None]
    tests: tuple[str, ...]


def modules() -> Iterator[Any]:
    """All of the package."""
    import fairopt

    yield fairopt
    for found in pkgutil.walk_packages(fairopt.__path__, "fairopt."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def everywhere(patch: pytest.MonkeyPatch, name: str, old: object, new: object) -> None:
    """Replace a function in every module that imported it."""
    holders = [module for module in modules() if vars(module).get(name) is old]
    assert holders
    for module in holders:
        patch.setattr(module, name, new)


def solve_gives_up(patch: pytest.MonkeyPatch) -> None:
    from fairopt.errors import SolverError
    from fairopt.mechanisms import Mechanism

    def solve(*_: object, **__: object) -> None:
        raise SolverError("Relax tol")

    patch.setattr(Mechanism, "solve", solve)


def certificate_passes(patch: pytest.MonkeyPatch) -> None:
    from fairopt.certificates import Certificate

    patch.setattr(Certificate, "residual", property(lambda self: 0.0))


def max_min_for_every_alpha(patch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import Mechanism
    from fairopt.model.problem import Problem

    solutions = Mechanism.solutions

    def other(self: Any, problem: Any, engine: str, *rest: Any, **more: Any) -> Any:
        if engine == "native":
            problem = Problem(problem.cluster, dataclasses.replace(problem.criterion, alpha=np.inf))
        return solutions(self, problem, engine, *rest, **more)

    patch.setattr(Mechanism, "solutions", other)


def weights_ignored(patch: pytest.MonkeyPatch) -> None:
    from fairopt.model.criterion import criterion

    def other(cluster: Any, *arguments: Any, **more: Any) -> Any:
        made = criterion(cluster, *arguments, **more)
        return dataclasses.replace(made, weight=np.ones(len(cluster.users)))

    everywhere(patch, "criterion", criterion, other)


def placement_ignored(patch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import Mechanism
    from fairopt.mechanisms._base import REGISTRY

    def forgetting(prepare: Callable[..., Any]) -> Callable[..., Any]:
        def other(self: Any, cluster: Any) -> Any:
            seen, notes = prepare(self, cluster)
            return seen.replace(eligible=None), notes

        return other

    for kind in (Mechanism, *REGISTRY.values()):
        if kind is Mechanism or "prepare" in vars(kind):  # what mechanisms inherit, and those that have their own
            patch.setattr(kind, "prepare", forgetting(kind.prepare))


def limits_ignored(patch: pytest.MonkeyPatch) -> None:
    from fairopt.model.criterion import Criterion

    def limits(self: Any, cluster: Any) -> Any:
        return np.where(cluster.max_tasks > 0, np.inf, 0.0)

    patch.setattr(Criterion, "limits", limits)


def floors_ignored(patch: pytest.MonkeyPatch) -> None:
    from fairopt.model.criterion import criterion

    def other(cluster: Any, *arguments: Any, **more: Any) -> Any:
        made = criterion(cluster, *arguments, **more)
        return dataclasses.replace(made, floor=np.zeros(len(cluster.users)))

    everywhere(patch, "criterion", criterion, other)


def _changed(patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """What `solve` returns is changed after it was judged."""
    from fairopt.mechanisms import Mechanism

    solve = Mechanism.solve
    patch.setattr(Mechanism, "solve", lambda self, *given, **more: change(solve(self, *given, **more)))


def one_user_off(patch: pytest.MonkeyPatch) -> None:
    def change(found: Any) -> Any:
        tasks = found.tasks.copy()
        tasks[0] *= 0.99
        return dataclasses.replace(found, tasks=tasks)

    _changed(patch, change)


def prices_zero(patch: pytest.MonkeyPatch) -> None:
    def change(found: Any) -> Any:
        if found.log_prices is None:
            return found
        return dataclasses.replace(found, log_prices=np.full_like(found.log_prices, -np.inf))

    _changed(patch, change)


def merging_drops_a_user(patch: pytest.MonkeyPatch) -> None:
    from fairopt.model.merging import Merging

    split = Merging.split_users

    def other(self: Any, tasks: Any) -> Any:
        found = split(self, tasks)
        if len(self.cluster.users) < len(self.original.users):
            found[-1] = 0.0
        return found

    patch.setattr(Merging, "split_users", other)


def formulation_ignored(patch: pytest.MonkeyPatch) -> None:
    from fairopt.engines.reference import declarative
    from fairopt.engines.reference.program import Formulation, Leximin, alpha_fair
    from fairopt.mechanisms import Mechanism

    solutions = Mechanism.solutions

    def other(self: Any, problem: Any, engine: str, tol: float, solver: Any, warm: Any = None) -> Any:
        def of_criterion(program: Any) -> Any:
            if np.isinf(problem.criterion.alpha):
                return Formulation(Leximin(program.share / program.weight), program.constraints)
            return alpha_fair(program, problem.criterion.alpha)

        if engine == "declarative":
            return declarative.solutions(problem, of_criterion, solver)
        return solutions(self, problem, engine, tol, solver, warm)

    patch.setattr(Mechanism, "solutions", other)


def stray_tasks_kept(patch: pytest.MonkeyPatch) -> None:
    from fairopt.certificates import backward

    def blind(of_pairs: Callable[..., Any]) -> Callable[..., Any]:
        def other(*given: Any) -> Any:
            short, dear, dropped, shift = of_pairs(*given)
            return short, np.where(dropped, 0.0, dear), np.zeros_like(dropped), shift

        return other

    for name in ("_of_users", "_of_pairs"):
        patch.setattr(backward._Conditions, name, blind(getattr(backward._Conditions, name)))


ANSWERS = "tests/laws/test_answers.py"
MUTATIONS = {
    "solve always gives up": Mutation(solve_gives_up, (ANSWERS, "-k", "hard_clusters and tsf")),
    "the certificate always passes": Mutation(certificate_passes, ("tests/laws/test_refusals.py", "-k", "tsf")),
    "the native engine returns max-min for every alpha": Mutation(
        max_min_for_every_alpha, ("tests/laws/test_engines.py", "-k", "ceei")
    ),
    "weights ignored": Mutation(weights_ignored, ("tests/laws/test_invariances.py", "-k", "tsf and by_weight")),
    "placement ignored": Mutation(placement_ignored, (ANSWERS, "-k", "tsf")),
    "limits ignored": Mutation(limits_ignored, (ANSWERS, "-k", "tsf")),
    "floors ignored": Mutation(floors_ignored, ("tests/laws/test_floors.py", "-k", "kept or binds")),
    "one user's tasks 1% off": Mutation(one_user_off, (ANSWERS, "-k", "hard_clusters and tsf")),
    "prices zero": Mutation(prices_zero, (ANSWERS, "-k", "hard_clusters and tsf")),
    "merging drops a user": Mutation(merging_drops_a_user, (ANSWERS, "-k", "ps-dsf")),
    "formulation ignored": Mutation(formulation_ignored, ("tests/laws/test_engines.py", "-k", "ceei")),
    "a pair's stray tasks are not counted": Mutation(
        stray_tasks_kept, ("tests/certificates/test_backward.py", "-k", "stray_tasks")
    ),
} | {name: Mutation(*each) for name, each in property_mutations.MUTATIONS.items()}


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin: apply the mutation that the environment names, until the tests are over."""
    name = os.environ.get(NAME)
    if name:
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        MUTATIONS[name].apply(patch)
