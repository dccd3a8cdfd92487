"""Tuning is in frozen dataclasses, a field a line with what it means; a study varies it where an engine is entered.

Compiled loops read named tuples, as numba takes these for constants.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.engines.welfare import interior_point
from fairopt.engines.welfare import options as welfare
from fairopt.game.equilibrium import equilibria
from fairopt.game.equilibrium import options as equilibrium
from fairopt.game.model.equilibrium_system import EquilibriumSystem
from fairopt.model.problem import Problem

ROOT = Path(fo.__file__).parent
PLACES = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
OPTIONS = [
    (path, node)
    for path, text in PLACES.items()
    for node in ast.parse(text).body
    if isinstance(node, ast.ClassDef) and node.name.endswith("Options")
]
CLUSTER = fo.Cluster([[9, 18, 3], [4, 4, 8], [7, 2, 5]], [[1, 4, 1], [3, 1, 1], [1, 1, 2], [2, 0, 1]])


@pytest.mark.parametrize(("path", "node"), OPTIONS, ids=[node.name for _, node in OPTIONS])
def test_options_are_frozen_and_say_what_they_mean(path: Path, node: ast.ClassDef) -> None:
    module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    kind = getattr(importlib.import_module(module), node.name)
    names = kind._fields if issubclass(kind, tuple) else [field.name for field in dataclasses.fields(kind)]
    with pytest.raises(AttributeError):
        setattr(kind(), names[0], None)
    lines = PLACES[path].split("\n")
    fields = [line for line in node.body if isinstance(line, ast.AnnAssign)]
    assert len({line.lineno for line in fields}) == len(fields) == len(names)
    said = False
    for line in fields:  # a comment may be about the fields that follow it, of which the last ones end the class
        said = said or lines[line.lineno - 2].lstrip().startswith("#:") or "Options" in lines[line.lineno - 1]
        assert said, f"{node.name} begins with a field without a comment"


#: What is no tuning: numbers near the ends or the precision of doubles, and irrational ones that stand in for chance.
FACTS = {1e300, 1e-20, 1e-15, 1e-14, 1e-12, 50.0, 60.0, 300.0, 600.0, 700.0}
CHANCE = {0.6180339887, 0.7548776662, 12.9898, 43758.5453123}


def loops(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions that are compiled."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("compiled" in ast.unparse(by) for by in node.decorator_list)
    ]


def test_compiled_loops_have_their_tuning_in_options() -> None:
    trees = {path: ast.parse(text) for path, text in PLACES.items()}
    assert sum(len(loops(tree)) for tree in trees.values()) > 100
    found = [
        f"{path.name}, {loop.name}: {node.value}"
        for path, tree in trees.items()
        for loop in loops(tree)
        for node in ast.walk(loop)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and node.value not in FACTS | CHANCE
        and node.value % 0.5 != 0
        and node.value > 1e-150
    ]
    assert not found


def test_the_equilibrium_engine_takes_options() -> None:
    """Products that stop at 1e-3 leave an error; those that may fall do not."""
    problem = Problem(CLUSTER, fo.AlphaPFVDS(2.0).criterion(CLUSTER))
    system = EquilibriumSystem.of(problem.polytope, problem.criterion)
    usual = equilibrium.OPTIONS
    coarse = dataclasses.replace(usual, interior=dataclasses.replace(usual.interior, least_mu=1e-3), first=0.0)
    first = [next(iter(equilibria.equilibria(system, 1e-9, options=options)))[1] for options in (usual, coarse)]
    assert first[0].error < 1e-9
    assert first[1].error > 1e-6


def test_the_welfare_engine_takes_options() -> None:
    problem = Problem(CLUSTER, fo.AlphaFair(2.0).criterion(CLUSTER))
    few = dataclasses.replace(welfare.OPTIONS, steps=3)
    rounds = [
        next(interior_point.solutions(problem, 1e-9, options=options)).rounds for options in (welfare.OPTIONS, few)
    ]
    assert rounds[1] == 3 < rounds[0]
    assert np.isfinite(rounds).all()
