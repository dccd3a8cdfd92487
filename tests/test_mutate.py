"""`tools/mutate.py`: what mutations replace is there, once. `make test-long` runs them."""

from __future__ import annotations

import ast

import mutate


def test_what_is_replaced_is_there_and_becomes_python() -> None:
    """`stated` raises where it is not; each is another text that parses, and names tests that there are."""
    made = mutate.stated()
    for one in (*made.values(), *mutate.drawn(3, 1).values()):
        assert one.text != (mutate.ROOT / one.file).read_text(encoding="utf-8")
        ast.parse(one.text)
        assert (mutate.ROOT / one.tests[0]).exists()
    assert len(made) == 32
