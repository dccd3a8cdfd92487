"""The registry of worked examples, and what is special about some of them."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from fairopt import papers
from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.papers import counterexamples, drf, pf

NAMES = ("drf-4.1", *(f"drf-thm{k}" for k in range(1, 7)), "drf-7.1-p1", "drfh-fig1", "mqdrf-fig1", "lec-water-filling",
         "pf-fig1", "pf-fig1-variant", *(f"found-{k}" for k in (37, 38, 39, 40, 41)))  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_known_names(name: str) -> None:
    assert name in papers.instances()


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


def test_instances_do_not_load_a_modelling_language() -> None:
    code = "import sys; from fairopt import papers; papers.instance('pf-fig1'); sys.exit('cvxpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_table1_is_the_one_of_the_catalogue() -> None:
    table = drf.table1()
    assert list(table["picked"]) == ["B", "A", "A", "B", "A"]
    assert list(table["A dominant"]) == pytest.approx([0, 2 / 9, 4 / 9, 4 / 9, 2 / 3])
    assert list(table["B dominant"]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3])
    assert list(table["total CPU"]) == pytest.approx([3 / 9, 4 / 9, 5 / 9, 8 / 9, 1])
    assert list(table["total RAM"]) == pytest.approx([1 / 18, 5 / 18, 9 / 18, 10 / 18, 14 / 18])


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


@pytest.mark.parametrize("x32", [F(11, 51), F(1, 2), F(101, 147), F(5, 6), F(4, 3)])
def test_psdsf_is_not_unique(x32: F) -> None:
    certificate, _ = get("ps-dsf").certify(papers.instance("found-41"), counterexamples.psdsf_family(float(x32)))
    assert certificate.passes(1e-12)


@pytest.mark.parametrize("x32", [F(11, 51) - F(1, 50), F(4, 3) + F(1, 50)])
def test_beyond_its_ends_the_family_is_no_allocation(x32: F) -> None:
    certificate, _ = get("ps-dsf").certify(papers.instance("found-41"), counterexamples.psdsf_family(float(x32)))
    assert not certificate.passes(1e-3)


def test_off_the_family_it_is_not_psdsf() -> None:
    other = counterexamples.psdsf_family(5 / 6) * [[0.95], [1], [1]]
    assert not get("ps-dsf").certify(papers.instance("found-41"), other)[0].passes(1e-3)


def test_the_two_observed_values_of_item_41_differ() -> None:
    first, second = (counterexamples.psdsf_family(float(x32))[0].sum() for x32 in (F(5, 6), F(101, 147)))
    assert first == pytest.approx(4.1579, abs=5e-5)
    assert second == pytest.approx(4.2041, abs=5e-5)
