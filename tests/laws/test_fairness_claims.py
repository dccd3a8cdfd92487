"""What mechanisms claim about fairness: no claim is refuted, and what is denied has a counterexample."""

from __future__ import annotations

import pytest
from processes import ROOT

import fairopt as fo
from fairopt.properties import Claimed, Witness, claims, search

from .registry import MANY, identify

WITNESSES = ROOT / "docs" / "witnesses"
OURS = [one for one in claims() if type(one.mechanism).__module__.startswith("fairopt.")]
HELD, DENIED = ([one for one in OURS if one.claim.holds is holds] for holds in (True, False))


def kept(claimed: Claimed) -> Witness:
    """The counterexample of a claim."""
    return Witness.load(WITNESSES / f"{claimed.mechanism.name}--{claimed.claim.property}.json")


def named(claimed: Claimed) -> str:
    return f"{identify(claimed.mechanism)}-{claimed.claim.property}"


@pytest.mark.parametrize("claimed", HELD, ids=named)
def test_claims_are_not_refuted(claimed: Claimed) -> None:
    mechanism, claim = claimed
    assert claim.source
    trials = MANY * 2 // 5 if search_is_fast(mechanism) else MANY * 4 // 25
    found = search(mechanism, claim.property, trials, rng=11, conditions=claim.conditions)
    assert found is None, found


def search_is_fast(mechanism: fo.mechanisms.Mechanism) -> bool:
    """Do compiled kernels solve many clusters together?"""
    cluster = fo.Cluster([[9]], [[1], [3]])
    return not fo.solve_many(mechanism, [cluster]).fallback.any()


@pytest.mark.parametrize("claimed", DENIED, ids=named)
def test_what_is_denied_has_a_counterexample(claimed: Claimed) -> None:
    witness = kept(claimed)
    assert fo.mechanisms.one(witness.mechanism) == claimed.mechanism
    assert witness.property == claimed.claim.property
    assert claimed.claim.met(witness.cluster)
    assert witness.replay().violation > 1e-4


def test_no_counterexample_without_a_claim() -> None:
    files = {path.stem for path in WITNESSES.glob("*.json")}
    assert files == {f"{one.mechanism.name}--{one.claim.property}" for one in DENIED}
