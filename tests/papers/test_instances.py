"""The registry of worked examples, and what is special about some of them."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from fairopt import papers
from fairopt.errors import DataError
from fairopt.harness.papers import counterexamples, pf
from fairopt.mechanisms import get


@pytest.mark.parametrize("name", papers.instances())
def test_every_instance_builds_and_says_where_it_is_from(name: str) -> None:
    entry, cluster = papers.instances()[name], papers.instance(name)
    assert cluster == entry.build()
    assert entry.name == name
    assert all((entry.paper, entry.where, entry.description))
    assert "resource1" not in cluster.resources


def test_every_claim_has_an_instance_and_every_instance_a_claim() -> None:
    assert {claim.instance for claim in papers.claims() if claim.numbers is None} == {*papers.instances(), ""}


def test_unknown_name_lists_what_there_is_and_suggests() -> None:
    with pytest.raises(DataError, match=r"known: .*drf-4.1.*; did you mean pf-fig1"):
        papers.instance("PF-fig1")


@pytest.mark.parametrize(("a1", "a2", "a4", "b"), pf.OTHERS)
def test_other_choices_of_the_lost_demands_are_admissible(a1: float, a2: float, a4: float, b: float) -> None:
    assert 15 / 4 < b <= 25 / 4
    assert min(a1, a2, a4) >= 0
    assert_allclose(pf.figure1(a1, a2, a4, b).gamma, [[4, 0], [12, 0], [4, 16], [4, 16]])


@pytest.mark.parametrize(("x32", "part"), [(11 / 51 - 1 / 50, 1.0), (4 / 3 + 1 / 50, 1.0), (5 / 6, 0.95)])
def test_beyond_its_ends_and_off_the_family_it_is_not_psdsf(x32: float, part: float) -> None:
    tasks = counterexamples.psdsf_family(x32) * [[part], [1], [1]]
    assert not get("ps-dsf").certify(papers.instance("found-41"), tasks)[0].passes(1e-3)
