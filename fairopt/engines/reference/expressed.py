"""Consistency of criterion and formulation, as certificates judge by the criterion alone.

A criterion knows capacities, limits (the cluster's and a mechanism's cap) and what is maximised. A floor on somebody's
tasks, or a rule on who shares a server, it does not know: an answer without it would be certified.
"""

from __future__ import annotations

from ...errors import DataError
from .program import Formulation, Program

#: Constraints that define what is maximised, by variables of their own (cones and means of shares).
DEFINING = ("utility", "mean")


def check(program: Program, formulation: Formulation, mechanism: str) -> None:
    """`DataError` for a formulation with other constraints than those of its program, or without some of them.

    Those called `utility` and `mean` may be added if they have variables of their own.
    """
    own = program.constraints
    variables = {v.id for rule in own.values() for v in rule.variables()} | {v.id for v in program.share.variables()}
    for name, rule in formulation.constraints.items():
        if rule is own.get(name):
            continue
        if name in DEFINING and name not in own and any(v.id not in variables for v in rule.variables()):
            continue
        raise DataError(
            f"{mechanism} states a constraint {name!r}, which its criterion does not express: an answer without it "
            "would be certified. Define certify(cluster, tasks, log_prices) in the mechanism, which judges it as well, "
            "or drop the constraint"
        )
    if missing := [name for name in own if name not in formulation.constraints]:
        raise DataError(
            f"{mechanism} leaves out the constraint {missing[0]!r}, by which its criterion judges. Give all of "
            "program.constraints, or define certify(cluster, tasks, log_prices) in the mechanism"
        )
