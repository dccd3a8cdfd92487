"""Strategy-proofness in task counts."""

from __future__ import annotations

from .strategy_proofness import StrategyProofness


class StrategyProofnessCounts(StrategyProofness):
    """Nobody has more of the tasks that it has to run after a report of another number of tasks.

    More than the true `q_n` tasks are worth no more than `q_n`; reports may be infinite. Demands, placement and weights
    are not reported.

    Source: ours, after the constrained max-min of Choosy.
    """

    name = "strategy-proofness-counts"
    definition = "no report of another number of tasks gives a user more tasks"
    about = ("max_tasks",)
