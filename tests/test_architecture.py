"""What is at the front door, and what judges do not lean on."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

import fairopt
from fairopt.mechanisms import REGISTRY, get, names


def test_judges_know_no_engine() -> None:
    """Certificates vouch for engines, so they may not lean on them: nor on CVXPY."""
    code = "import fairopt.certificates, sys; assert not {'cvxpy', 'fairopt.engines'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", names())
def test_mechanisms_say_what_they_are(name: str) -> None:
    kind = type(get(name).variants()[0])
    assert kind.__doc__
    assert "Source:" in kind.__doc__
    assert kind.source
    assert kind.title
    assert fairopt.properties.in_short(kind)


def test_the_front_door() -> None:
    for name in fairopt.__all__:
        assert name in dir(fairopt)
    for name in (
        "Cluster",
        "Allocation",
        "Certificate",
        "Criterion",
        "DRF",
        "PSDSF",
        "metrics",
        "errors",
        "mechanisms",
    ):
        assert getattr(fairopt, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = fairopt.nonsense
    assert not hasattr(fairopt, "Nonsense")
    kinds = {type(get(name).variants()[0]) for name in names()}
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
        assert not hasattr(fairopt, "Outside")
        assert "Outside" not in dir(fairopt)
    finally:
        del REGISTRY["outside"]
