"""`tools/mutate.py`: what mutations replace is there, once; two are run, in seconds."""

from __future__ import annotations

import ast
from pathlib import Path

import mutate
import pytest


def test_what_is_replaced_is_there_and_becomes_python() -> None:
    """`stated` raises where it is not; each is another text that parses, and names tests that there are."""
    made = mutate.stated()
    for one in (*made.values(), *mutate.drawn(3, 1).values()):
        assert one.text != (mutate.ROOT / one.file).read_text(encoding="utf-8")
        ast.parse(one.text)
        assert (mutate.ROOT / one.tests[0]).exists()
    assert len(made) == 28


@pytest.mark.long
@pytest.mark.parametrize("name", ["solve always gives up", "the certificate always passes"])
def test_it_is_noticed(name: str, tmp_path: Path) -> None:
    """By the tests that should notice it, before the wider ones."""
    one = mutate.stated()[name]
    assert mutate.caught(one, mutate.copied(str(tmp_path))).startswith(one.tests[0])
