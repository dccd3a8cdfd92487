"""Strategy-proofness in demands and placement."""

from __future__ import annotations

from .strategy_proofness import StrategyProofness


class StrategyProofnessPlacement(StrategyProofness):
    """Nobody has more tasks of its true demand, on servers where they run, after a report of others.

    As for demands; tasks on servers where n may not run in truth are worth nothing. What a lie is worth depends on how
    tasks are split over servers; splits are those that the mechanism returns. Weights and task counts are not reported.

    Source: Ghodsi et al., EuroSys 2013 (Choosy); Wang et al., SC 2016 (TSF).
    """

    name = "strategy-proofness-placement"
    definition = "no report of another demand or of other servers gives a user more tasks"
    about = ("demand", "eligible")
