"""What mechanisms claim about fairness: no claim is refuted, and what is denied has a counterexample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.properties import Case, Claimed, Property, SearchOptions, Witness, claims, get, search

from .registry import MANY, identify

ROOT = Path(__file__).resolve().parents[2]
WITNESSES = ROOT / "docs" / "witnesses"
OURS = [one for one in claims() if type(one.mechanism).__module__.startswith("fairopt.")]
HELD, DENIED = ([one for one in OURS if one.claim.holds is holds] for holds in (True, False))


#: Searches that do not look for a larger violation first.
QUICK = SearchOptions(further=0, batch=60)


def kept(claimed: Claimed) -> Witness:
    """The counterexample of a claim."""
    return Witness.load(WITNESSES / f"{claimed.mechanism.name}--{claimed.claim.property}.json")


def named(claimed: Claimed) -> str:
    return f"{identify(claimed.mechanism)}-{claimed.claim.property}"


@pytest.mark.parametrize("claimed", HELD, ids=named)
def test_claims_are_not_refuted(claimed: Claimed) -> None:
    mechanism, claim = claimed
    assert claim.source
    trials = MANY // 2 if search_is_fast(mechanism) else MANY // 8
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


#: Properties that say what everybody has exactly: where that is so the wrong sign makes no difference.
EQUAL = {
    "bottleneck-fairness",
    "per-server-bottleneck-fairness",
    "single-resource-fairness",
    "single-server-drf",
    "pareto-optimality",
}
#: Where claimed there is one equilibrium, to which nothing is due: tests/properties/test_verification.py has another.
ONE = {"undominated-equilibrium"}


#: Who claims them has exactly what is due; whose levels are promised more than there is has less.
PROMISED = {"dynamic-sharing-incentive": "mqdrf(shares=(0.8, 0.7), sizes=(2, 2), levels=(1, 1, 2, 2))"}


@pytest.mark.parametrize("name", sorted({one.claim.property for one in HELD} - ONE))
def test_a_loss_with_the_wrong_sign_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(get(name))
    right = kind.dues

    def turned(self: Property, case: Case) -> tuple[object, object]:
        has, due = right(self, case)
        return np.where(due > 0, due, has), np.where(due > 0, has, due)

    broken = search(PROMISED[name], name, 300, rng=11, options=QUICK) if name in PROMISED else None
    monkeypatch.setattr(kind, "dues", turned)
    if name in PROMISED:
        assert broken is not None
        with pytest.raises(fo.errors.DataError):
            broken.replay()
    elif name in EQUAL:
        denied = next(one for one in DENIED if one.claim.property == name)
        with pytest.raises(fo.errors.DataError):
            kept(denied).replay()
    else:
        mechanism, claim = next(one for one in HELD if one.claim.property == name)
        assert search(mechanism, name, 300, rng=11, conditions=claim.conditions, options=QUICK) is not None


@pytest.mark.parametrize("name", sorted({one.claim.property for one in DENIED}))
def test_a_property_that_always_holds_has_no_counterexample(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get(name)), "dues", lambda self, case: (case.user_tasks, 0 * case.user_tasks))
    with pytest.raises(fo.errors.DataError, match="is not violated"):
        kept(next(one for one in DENIED if one.claim.property == name)).replay()
