"""Every mechanism says what it is: its formula in LaTeX, its program in a few lines, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

from fairopt.mechanisms import REGISTRY, get, names

OWN = [name for name in names() if REGISTRY[name].__module__.startswith("fairopt.")]


@pytest.mark.parametrize("name", OWN)
def test_a_mechanism_shows_what_it_is(name: str) -> None:
    kind = REGISTRY[name]
    formula = get(name).formula
    assert "\\" in formula
    assert formula.count("{") == formula.count("}")
    assert len(inspect.getsource(kind.program).splitlines()) <= 10
    found = doctest.DocTestFinder().find(kind, globs={}, module=sys.modules[kind.__module__])
    example = next(one for one in found if one.name == kind.__name__)
    assert example.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    assert runner.run(example, out=said.append).failed == 0, "".join(said)
