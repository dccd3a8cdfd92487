"""What `mutate.py` breaks in properties of fairness, in how violations are found and proved, and in mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Patch = Callable[[pytest.MonkeyPatch], None]

DEFINITIONS, VERIFICATION = "tests/properties/test_definitions.py", "tests/properties/test_verification.py"
CLAIMS, SURVEY = "tests/laws/test_fairness_claims.py", "tests/properties/test_survey.py"


def _of(name: str, attribute: str, other: Callable[[Any], Any]) -> Patch:
    """A method of a property replaced by what `other` makes of it."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        from fairopt.properties import get

        kind = type(get(name))
        patch.setattr(kind, attribute, other(getattr(kind, attribute)))

    return apply


def _never(dues: Any) -> Any:
    return lambda self, case: (case.user_tasks, 0 * case.user_tasks)


def _turned(dues: Any) -> Any:
    def other(self: Any, case: Any) -> Any:
        has, due = dues(self, case)
        return np.where(due > 0, due, has), np.where(due > 0, has, due)

    return other


def _half(dues: Any) -> Any:
    def other(self: Any, case: Any) -> Any:
        has, due = dues(self, case)
        return has, due / 2

    return other


def _largest(loss: Any) -> Any:
    return lambda self, missing, case: int(np.argmax(missing))


def lies_are_believed(patch: pytest.MonkeyPatch) -> None:
    """Tasks after a lie are counted as reported."""
    from fairopt.properties import strategy_proofness

    patch.setattr(strategy_proofness, "true_tasks", lambda case: np.asarray(case.changed[1].sum(axis=1)))


def counts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """More is due to somebody than it has to run."""
    from fairopt.properties import sharing_incentive

    patch.setattr(sharing_incentive, "capped", lambda tasks, cluster, case: tasks)


def every_box_is_a_proof(patch: pytest.MonkeyPatch) -> None:
    from fairopt.exact import enclosure

    patch.setattr(enclosure.Interval, "within", lambda self, other: True)


def rounding_inwards(patch: pytest.MonkeyPatch) -> None:
    from fairopt.exact import enclosure

    down, up = enclosure.DOWN, enclosure.UP
    patch.setattr(enclosure, "DOWN", up)
    patch.setattr(enclosure, "UP", down)


def definition_not_asked(patch: pytest.MonkeyPatch) -> None:
    """Any fractions near to an answer are PS-DSF."""
    from fairopt.exact import rational

    patch.setattr(rational, "is_psdsf", lambda cluster, tasks: True)


def other_equilibria_forgotten(patch: pytest.MonkeyPatch) -> None:
    from fairopt.properties import _verify
    from fairopt.properties.undominated_equilibrium import Equilibria

    right = _verify.alternatives

    def first(mechanism: Any, cluster: Any) -> Equilibria:
        found = right(mechanism, cluster)
        return Equilibria(found.allocations[-1:], found.indices[-1:], found.radii[-1:], found.complete, found.tried)

    patch.setattr(_verify, "alternatives", first)


def blocks_are_alike(patch: pytest.MonkeyPatch) -> None:
    """All blocks of a survey make the same trials."""
    from fairopt.properties._survey import Cell

    patch.setattr(Cell, "seeds", lambda self, seed, block: [seed])


def interrupted_cells_are_lost(patch: pytest.MonkeyPatch) -> None:
    from fairopt.properties import _survey

    patch.setattr(_survey, "_read", lambda path: _survey.Outcome(_survey.Cell("drf", "envy-freeness"), 5))


def drf_is_asset_fairness(patch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import get

    asset = get("asset-fairness")
    patch.setattr(type(get("drf")), "criterion", lambda self, cluster: asset.criterion(cluster))


def mqdrf_without_caps(patch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import get

    drf = get("drf")
    patch.setattr(type(get("mqdrf")), "criterion", lambda self, cluster: drf.criterion(cluster))


def psdsf_forgets_weights(patch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import get

    kind = type(get("ps-dsf"))
    right = kind.criterion
    patch.setattr(
        kind, "criterion", lambda self, cluster: right(self, cluster.derived(weight=np.ones(len(cluster.users))))
    )


#: What is broken, and the tests that should notice.
MUTATIONS: dict[str, tuple[Patch, tuple[str, ...]]] = {
    "sharing incentive always holds": (
        _of("sharing-incentive", "dues", _never),
        (DEFINITIONS, "-k", "by_hand or papers"),
    ),
    "half of the envy": (_of("envy-freeness", "dues", _half), (DEFINITIONS, "-k", "plain_loops")),
    "population monotonicity the wrong way": (
        _of("population-monotonicity", "dues", _turned),
        (DEFINITIONS, "-k", "positive_demands or comparisons"),
    ),
    "a group gains if one of it does": (
        _of("group-strategy-proofness", "loss", _largest),
        (DEFINITIONS, "-k", "group"),
    ),
    "Pareto optimality always holds": (_of("pareto-optimality", "dues", _never), (DEFINITIONS, "-k", "pareto")),
    "what a liar says is what it needs": (lies_are_believed, (DEFINITIONS, "-k", "plain_loops or papers")),
    "task counts forgotten by what is due": (counts_are_forgotten, (DEFINITIONS, "-k", "by_hand")),
    "every box is a proof": (every_box_is_a_proof, ("tests/exact",)),
    "intervals rounded inwards": (rounding_inwards, ("tests/exact",)),
    "PS-DSF's definition not asked": (definition_not_asked, ("tests/exact/test_psdsf.py",)),
    "other equilibria forgotten": (other_equilibria_forgotten, (VERIFICATION, "-k", "every_equilibrium")),
    "all blocks of a survey alike": (blocks_are_alike, (SURVEY, "-k", "seeds")),
    "stored cells forgotten": (interrupted_cells_are_lost, (SURVEY, "-k", "killed or processes")),
    "DRF with shares of asset fairness": (drf_is_asset_fairness, (CLAIMS, "-k", "refuted and drf")),
    "MQDRF without caps": (mqdrf_without_caps, (CLAIMS, "-k", "counterexample and mqdrf")),
    "PS-DSF without weights": (psdsf_forgets_weights, (CLAIMS, "-k", "refuted and ps-dsf")),
}
