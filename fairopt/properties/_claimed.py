"""What the mechanisms of the registry claim, each with an instance to try."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import DataError
from ..mechanisms import REGISTRY, Mechanism
from ..mechanisms._claim import Claim


class Claimed(NamedTuple):
    """A claim, and a mechanism with parameters for which it is made."""

    mechanism: Mechanism
    claim: Claim


def claims(holds: bool | None = None) -> list[Claimed]:
    """Every claim of every mechanism: with all default variants and trials for which it is made.

    Of what does not hold, with the first of them, as one counterexample is enough. `holds` chooses one kind.

    Raises
    ------
    DataError
        A claim is made for no variant and no trial of its mechanism, so that nobody could try it.
    """
    found: list[Claimed] = []
    for name, kind in sorted(REGISTRY.items()):
        for claim in kind.claims:
            tried = [one for one in dict.fromkeys((*kind.variants(), *kind.trials())) if claim.about(one)]
            if not tried:
                raise DataError(f"{name} claims {claim.property} for parameters that none of its variants has")
            found += [Claimed(one, claim) for one in (tried if claim.holds else tried[:1])]
    return [one for one in found if holds in (None, one.claim.holds)]
