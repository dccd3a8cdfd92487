"""Docstrings of public names: examples run as printed, and formulas and shapes are stated where there are any."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairopt
from fairopt.mechanisms import REGISTRY, get, names

ROOMS = {
    "app", "certificates", "game", "harness", "mechanisms", "model", "properties", "result", "scheduling", "study",
    "workloads",
}  # fmt: skip
#: Without an example as yet.
_LATER = {f"report.{name}" for name in ("comparison", "export", "exportable", "for_people", "latex", "write")}
OWN = [name for name in names() if REGISTRY[name].__module__.startswith("fairopt.")]
#: Public functions and classes that define no quantity, so that there is no formula.
_PLAIN = re.compile(
    r"(harness|papers|report|workloads)\.\w+|explore|shadow|open_\w+|simulate|solve|sweep|mechanisms\.[a-z]\w*|plot\.\w+"
    r"|(certificates\.)?(advice|blocking|Blocking|ByCriterion|feasible)|compare"
    r"|game\.Trace|metrics\.(measure|tasks)|properties\.\w+|(scheduling\.)?(Schedule|Thrashing|Workload)"
)
#: Code, and formulas, whose text is empty here.
_CODE = re.compile(r":math:`[^`]+`|``.+?``|`([^`]+)`", re.DOTALL)
#: A formula in plain text, such as `x[n,i]` or `q_n`.
_FORMULA = re.compile(
    r"(?<![\w.])([a-zA-Z]|sum|phi|gamma|lambda|sigma|xi)'?_[nmijr]{1,2}\b|\b[a-z]+\[[nmi], ?[nmijr]\]"
)
#: Such as (users, servers), or (..., resources).
_SHAPE = re.compile(r"\((\.\.\.|[a-z+* ]+),( [a-z]+,?)*\)")


def _public() -> Iterator[tuple[str, Any, str]]:
    """Name, object, and line of tests/public.txt, of functions and classes, methods and properties of the rooms."""
    for line in (Path(__file__).parent / "public.txt").read_text(encoding="utf-8").splitlines():
        name = re.match(r"[\w.]+", line)[0]  # type: ignore[index]
        found: Any = fairopt
        for part in name.split("."):
            found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
        found = getattr(found, "__func__", found)
        module = inspect.getmodule(getattr(found, "fget", None) or getattr(found, "func", None) or found)
        parts = (module.__name__ if module else "").split(".")
        if parts[0] == "fairopt" and {*parts[1:2]} & ROOMS and parts[-1] != "_survey" and not inspect.ismodule(found):
            yield name, found, line


PUBLIC = {name: (found, line) for name, found, line in _public()}
WHOLE = [
    name
    for name, (found, _) in PUBLIC.items()
    if (inspect.isclass(found) or "." not in name or name[0].islower()) and name not in _LATER
]


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """Remove what examples register."""
    kept = [(known, dict(known)) for known in (REGISTRY, fairopt.metrics.MEASURES, fairopt.properties.REGISTRY)]
    yield
    for known, before in kept:
        for name in set(known) - set(before):
            del known[name]


@pytest.mark.parametrize("name", WHOLE)
def test_the_example_of_a_public_name_runs(name: str) -> None:
    doc = inspect.getdoc(PUBLIC[name][0]) or ""
    example = doctest.DocTestParser().get_doctest(doc, {}, name, None, None)
    assert example.examples, "no example"
    said: list[str] = []
    assert doctest.DocTestRunner().run(example, out=said.append).failed == 0, "".join(said)
    assert _PLAIN.fullmatch(name) or ".. math::" in doc, "no formula"
    assert doc.count("{") == doc.count("}") or ".. math::" not in doc


def test_arrays_of_public_names_have_a_shape() -> None:
    for name, (found, line) in PUBLIC.items():
        getter = getattr(found, "fget", None) or getattr(found, "func", None)
        returned = str(inspect.get_annotations(getter).get("return", "")) if getter else line
        assert found.__doc__, name
        assert "Array" not in returned or _SHAPE.search(found.__doc__), f"no shape in {name}"


def test_formulas_of_docstrings_are_in_latex() -> None:
    """Pages of the site set them; lists of properties, which have no formulas, are sentences."""
    shown = {name: found.__doc__ or "" for name, (found, _) in PUBLIC.items()}
    shown |= {kind.__name__: kind.__doc__ or "" for kind in (*REGISTRY.values(), *fairopt.properties.REGISTRY.values())}
    code = {name: " ".join(_CODE.findall(doc.partition(">>>")[0])) for name, doc in shown.items()}
    assert [name for name, said in code.items() if _FORMULA.search(said)] == []
    for kind in fairopt.properties.REGISTRY.values():
        assert not re.search(f"{_FORMULA.pattern}|[<>=]", kind.definition), kind.name


@pytest.mark.parametrize("name", OWN)
def test_a_mechanism_shows_what_it_is(name: str) -> None:
    formula = get(name).formula
    assert "\\" in formula
    assert formula.count("{") == formula.count("}")
    assert len(inspect.getsource(REGISTRY[name].program).splitlines()) <= 10
