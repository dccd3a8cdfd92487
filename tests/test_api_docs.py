"""What the API pages of the site show says what goes in, and what it raises."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from test_site import load

import fairopt as fo

Things = dict[str, Any]


@pytest.fixture(scope="module")
def shown() -> Things:
    """Everything on the pages, by its name in Python."""
    found = {}
    for _, names in load("site_pages")._API.values():
        if isinstance(names, str):
            module = getattr(fo, names)
            found |= {f"{names}.{name}": getattr(module, name) for name in module.__all__}
        else:
            found |= {name: getattr(fo, name) for name in names}
    return found


@pytest.fixture(scope="module")
def functions(shown: Things) -> Things:
    return {name: thing for name, thing in shown.items() if inspect.isfunction(thing)}


@pytest.fixture(scope="module")
def classes(shown: Things) -> Things:
    return {name: thing for name, thing in shown.items() if inspect.isclass(thing)}


@pytest.fixture(scope="module")
def methods(classes: Things) -> Things:
    """Functions of the classes themselves, those of the class (`classmethod`) too."""
    return {
        f"{name}.{own}": getattr(kind, own)
        for name, kind in classes.items()
        for own, thing in vars(kind).items()
        if not own.startswith("_") and inspect.isfunction(getattr(thing, "__func__", thing))
    }


def section(thing: object, title: str) -> list[str]:
    """The lines of a section of a docstring; none where there is no such section."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n---|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    return [] if found is None else found[1].splitlines()


def named(thing: object) -> set[str]:
    """What the section of parameters is about: `a, b : what they are`, or names alone on their line."""
    found = set()
    for line in section(thing, "Parameters"):
        if match := re.match(r"(\w+(?:, \w+)*)(?: : |$)", line):
            found |= set(match[1].split(", "))
    return found


def raises(thing: Callable[..., Any]) -> bool:
    """Has its own body a `raise`?"""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing))))
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


def test_every_parameter_is_explained(functions: Things) -> None:
    wrong = {}
    for name, thing in functions.items():
        parameters = set(inspect.signature(thing).parameters)
        if len(parameters) > 1 or section(thing, "Parameters"):
            wrong[name] = parameters ^ named(thing)
    assert len(wrong) > 40
    assert {name: which for name, which in wrong.items() if which} == {}


def test_what_is_raised_is_said(functions: Things, methods: Things) -> None:
    raising = {name: thing for name, thing in {**functions, **methods}.items() if raises(thing)}
    assert len(raising) > 20
    for name, thing in raising.items():
        found = section(thing, "Raises")
        errors = [line for line in found if re.fullmatch(r"\w+(, \w+)*", line)]
        when = [line for line in found if line.startswith("    ")]
        assert errors, name
        assert when, name


def test_everything_says_what_it_is(functions: Things, classes: Things, methods: Things) -> None:
    assert len(classes) > 20
    for name, thing in {**functions, **classes, **methods}.items():
        text = inspect.getdoc(thing) or ""
        assert text, name
        # A dataclass without a docstring is given its signature.
        assert not text.startswith(f"{name.rpartition('.')[2]}("), name
