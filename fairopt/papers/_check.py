"""`check`: every claim computed and judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _clock
from .._libraries import pd
from ..errors import FairoptError
from ._claim import NOT_REPRODUCED, Claim, show
from ._measured import measurements
from ._registry import claims as every_claim
from ._registry import instance

COLUMNS = ("item", "paper", "where", "instance", "claim", "printed", "ours", "correct", "verdict", "seconds", "note")


def check(claims: Iterable[Claim] | None = None, progress: bool = False) -> pd.DataFrame:
    """Compute every claim through the mechanisms and compare with what is right and with what the paper prints.

    Parameters
    ----------
    claims : claims, optional
        Default: all of `fairopt.papers.claims()`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        A row per claim: item, paper, where, instance, claim, printed, ours, correct, verdict, seconds, note. The
        verdict is `reproduced`, `paper in error, correct value ...`, `measured otherwise`, or `NOT REPRODUCED`, with
        the error if any.
    """
    chosen: Iterable[Claim] = every_claim() if claims is None else tuple(claims)
    if progress:
        from tqdm import tqdm

        chosen = tqdm(chosen, unit="claim")
    return pd.DataFrame([_row(claim) for claim in chosen], columns=list(COLUMNS))


def _row(claim: Claim) -> dict[str, Any]:
    start = _clock.cpu()
    try:
        subject = instance(claim.instance) if claim.numbers is None else measurements()
        value = claim.ours(subject)
        ours, verdict = show(value), claim.verdict(value)
    except FairoptError as error:
        ours, verdict = "", f"{NOT_REPRODUCED}: {type(error).__name__}: {error}"
    return {
        "item": claim.item,
        "paper": claim.paper,
        "where": claim.where,
        "instance": claim.instance,
        "claim": claim.statement,
        "printed": claim.printed.text if claim.printed else "derived here",
        "ours": ours,
        "correct": show(claim.correct),
        "verdict": verdict,
        "seconds": _clock.cpu() - start,
        "note": claim.note if claim.numbers is None else claim.numbers(measurements()),
    }
