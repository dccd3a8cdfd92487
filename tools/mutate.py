"""Break the package in ways that matter, and see that a test fails: a law that nothing can break is no law.

    python tools/mutate.py                    # all of them, one after the other: a table, and 1 if one is not noticed
    python tools/mutate.py "weights ignored"  # some of them
    python tools/mutate.py --write            # the table goes into docs/testing.md

A mutation is a patch of the package in a process of its own, which then runs tests until the first fails: those that
should notice it, and wider ones if they pass. pytest loads this file as a plugin (`-p mutate`), which applies the
mutation that the environment names. Without a mutation the same tests must pass, which is run first.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "testing.md"
NAME = "FAIROPT_MUTATION"
#: Tests that run if those that should notice a mutation pass: all laws.
WIDER = ("tests/laws",)
#: Seconds of a run of tests.
PATIENCE = 120.0
BEGIN, END = "<!-- mutations -->", "<!-- /mutations -->"


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
        if "prepare" in vars(kind):
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
}


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin: apply the mutation that the environment names, until the tests are over."""
    name = os.environ.get(NAME)
    if name:
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        MUTATIONS[name].apply(patch)


def run(name: str, tests: tuple[str, ...]) -> tuple[str, float]:
    """The first of the tests that fails under a mutation ("" for none), and seconds."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"PYTHONPATH": paths, NAME: name, "HYPOTHESIS_PROFILE": "first", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "mutate", "-x", "-q", "--no-header", "--tb=line", *tests]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "", time.perf_counter() - began
    seconds = time.perf_counter() - began
    failed = re.search(r"^FAILED (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or (done.returncode == 1 and failed is None):
        raise SystemExit(f"pytest did not run ({name or 'no mutation'}):\n{done.stdout}{done.stderr}")
    return failed[1] if failed else "", seconds


def caught(name: str) -> tuple[str, float]:
    """The test that notices a mutation ("" for none), and the seconds that it took to find out."""
    found, seconds = run(name, MUTATIONS[name].tests)
    if not found:
        found, more = run(name, WIDER)
        seconds += more
    return found, seconds


def table(rows: list[tuple[str, str, float]]) -> str:
    lines = ["| mutation | noticed by | seconds |", "|---|---|---|"]
    lines += [f"| {name} | {f'`{test}`' if test else '**nothing**'} | {seconds:.0f} |" for name, test, seconds in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MUTATION", help=", ".join(MUTATIONS).replace("%", "%%"))
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    names = chosen.names or list(MUTATIONS)
    if unknown := [name for name in names if name not in MUTATIONS]:
        parser.error(f"no mutation {unknown[0]!r}; there are {', '.join(MUTATIONS)}")
    for tests in dict.fromkeys(MUTATIONS[name].tests for name in names):
        if (found := run("", tests)[0]) != "":
            print(f"without any mutation {found} fails")
            return 1
    rows = []
    for name in names:
        rows.append((name, *caught(name)))
        print(f"{name}: {rows[-1][1] or 'NOT NOTICED'}, {rows[-1][2]:.0f} s", flush=True)
    made = table(rows)
    print(f"\n{made}")
    if chosen.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{after}", encoding="utf-8")
    return 0 if all(test for _, test, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
