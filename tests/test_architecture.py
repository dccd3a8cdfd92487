"""What is at the front door; tests/public.txt has the names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import fairopt
from fairopt.mechanisms import REGISTRY, get, names


def test_the_front_door() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = fairopt.nonsense
    assert not hasattr(fairopt, "Nonsense")
    kinds = {type(get(name)) for name in names()}
    assert all(getattr(fairopt, kind.__name__) is kind for kind in kinds), "a mechanism is missing from the front door"
    assert {kind.__name__ for kind in kinds} <= set(fairopt.__all__)
    everything: dict[str, object] = {}
    exec("from fairopt import *", everything)
    assert set(fairopt.__all__) <= set(everything)


def test_mechanisms_of_others_stay_outside() -> None:
    @dataclass(frozen=True)
    class Outside(get("drf").__class__):  # type: ignore[misc]
        """Not of this package."""

        name = "outside"

    try:
        assert Outside.title == "Outside"  # not that of the class it is made from
        assert not hasattr(fairopt, "Outside")
        assert "Outside" not in dir(fairopt)
    finally:
        del REGISTRY["outside"]


def test_no_import_hides_in_a_string() -> None:
    """Import contracts see statements only: front doors, registries and loaders alone import modules by name."""
    root = Path(fairopt.__file__).parent
    by_name = {file.relative_to(root).as_posix() for file in root.rglob("*.py") if "import_module(" in file.read_text()}
    loaders = {"base/libraries.py", "base/dispatchers.py", "base/registry.py", "harness/report/figures.py"}
    assert {name for name in by_name if not name.endswith("__init__.py")} == loaders
