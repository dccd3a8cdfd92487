"""Measures of an allocation: of its tasks alone, and relative to entitlements."""

from collections import ChainMap
from collections.abc import Mapping

from ..result.metrics import (
    MEASURES,
    Measure,
    jain,
    jain_index,
    jain_wanting,
    max_share,
    mean_utilization,
    measure,
    min_share,
    min_share_wanting,
    price_of_fairness,
    social_welfare,
    tasks,
    utilization,
    wanting,
    welfare,
)
from .entitlement import (
    DUE,
    Entitled,
    complaining,
    complaints,
    distance,
    entitlement,
    owed,
    satisfaction,
    satisfactions,
)

#: All measures by name, including those of plug-ins that are loaded later.
KNOWN: Mapping[str, Measure] = ChainMap(MEASURES, {**DUE})

__all__ = [
    "DUE",
    "KNOWN",
    "MEASURES",
    "Entitled",
    "Measure",
    "complaining",
    "complaints",
    "distance",
    "entitlement",
    "jain",
    "jain_index",
    "jain_wanting",
    "max_share",
    "mean_utilization",
    "measure",
    "min_share",
    "min_share_wanting",
    "owed",
    "price_of_fairness",
    "satisfaction",
    "satisfactions",
    "social_welfare",
    "tasks",
    "utilization",
    "wanting",
    "welfare",
]
