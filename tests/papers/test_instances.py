"""The registry of worked examples, and what is special about some of them."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from fairopt import papers
from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.papers import counterexamples, pf


@pytest.mark.parametrize("name", papers.instances())
def test_every_instance_builds_and_says_where_it_is_from(name: str) -> None:
    entry, cluster = papers.instances()[name], papers.instance(name)
    assert isinstance(cluster, Cluster)
    assert cluster == entry.build()
    assert entry.name == name
    assert entry.paper
    assert entry.where
    assert "\n" not in entry.description
    assert not any(resource.startswith("resource1") for resource in cluster.resources)


def test_every_claim_has_an_instance_and_every_instance_a_claim() -> None:
    assert {claim.instance for claim in papers.claims() if claim.numbers is None} == set(papers.instances())


def test_unknown_name_lists_what_there_is_and_suggests() -> None:
    with pytest.raises(DataError, match=r"did you mean 'pf-fig1'.*known: .*drf-4.1"):
        papers.instance("PF-fig1")
    with pytest.raises(DataError, match="no instance 'zzz'; known: "):
        papers.instance("zzz")


@pytest.mark.parametrize(("a1", "a2", "a4", "b"), pf.OTHERS)
def test_other_choices_of_the_lost_demands_are_admissible(a1: float, a2: float, a4: float, b: float) -> None:
    assert 15 / 4 < b <= 25 / 4
    assert 0 <= a1 <= 4 * b / 15
    assert 0 <= a2 <= 1
    assert 0 <= a4 <= 1 / 2
    np.testing.assert_allclose(pf.figure1(a1, a2, a4, b).gamma, [[4, 0], [12, 0], [4, 16], [4, 16]])


def test_a_choice_that_is_not_admissible_shows() -> None:
    cluster = pf.figure1(a2=2)  # user 2 would run 6 tasks alone, not 12
    assert cluster.gamma[1, 0] == 6
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(get("ps-dsf").solve(cluster, tol=1e-8).arrays.user_tasks, [2, 6, 8, 8], rtol=1e-3)


@pytest.mark.parametrize("x32", [F(11, 51) - F(1, 50), F(4, 3) + F(1, 50)])
def test_beyond_its_ends_the_family_is_no_allocation(x32: F) -> None:
    certificate, _ = get("ps-dsf").certify(papers.instance("found-41"), counterexamples.psdsf_family(float(x32)))
    assert not certificate.passes(1e-3)


def test_off_the_family_it_is_not_psdsf() -> None:
    other = counterexamples.psdsf_family(5 / 6) * [[0.95], [1], [1]]
    assert not get("ps-dsf").certify(papers.instance("found-41"), other)[0].passes(1e-3)
