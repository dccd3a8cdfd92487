"""Columns of stores: one row per cell, which contains its long tables. A change requires a new format number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..base.libraries import pa

#: Types of columns by name.
Columns = dict[str, str]


@dataclass(frozen=True)
class Schema:
    """Columns of one kind of cell.

    `inputs` are the columns of the question, `found` those of the result, and `chance` those of times and machines,
    which differ from run to run; `long` are tables within the row. `folder` is the subfolder of a store for such cells,
    and `source` is the column with the name of the cluster or workload.
    """

    format: str
    folder: str
    source: str
    inputs: Columns
    found: Columns
    chance: Columns
    long: dict[str, Columns]

    @cached_property
    def columns(self) -> Columns:
        """Columns other than long tables, in order."""
        return self.inputs | self.found | self.chance

    @cached_property
    def plain(self) -> pa.Schema:
        """Schema for Parquet, without long tables."""
        return pa.schema([(name, _kind(kind)) for name, kind in self.columns.items()])

    @cached_property
    def arrow(self) -> pa.Schema:
        """Schema for Parquet, with long tables."""
        long = {
            name: pa.list_(pa.struct([(field, _kind(kind)) for field, kind in fields.items()]))
            for name, fields in self.long.items()
        }
        return pa.schema([*self.plain, *long.items()], metadata={"format": self.format})


def _kind(name: str) -> Any:
    return pa.timestamp("us", tz="UTC") if name == "time" else pa.type_for_alias(name)


def _columns(*typed: str) -> Columns:
    """Columns in order, from lines that consist of a type and of the names of the columns of this type."""
    found = [line.split() for line in typed]
    return {name: kind for kind, *names in found for name in names}


#: Columns of the question.
INPUTS = _columns(
    "string key experiment cluster source data digest",
    "int64 seed repetition",
    "string mechanism name",
    "double alpha",
    "string engine order",
    "double damping tol",
    "string options question code",
)
#: Columns of the result. `status` is `ok`, `missed` if the certificate exceeds `tol`, or `failed` if there is only an
#: `error`. `answered` is the engine whose candidate was accepted; `pooled` is true if it solved the pool of servers.
FOUND = _columns(
    "string status answered",
    "bool pooled",
    "string error about notes",
    "int64 users servers resources",
    "double density tasks min_share max_share jain welfare price_of_fairness utilization feasibility optimality",
    "double certificate",
    "string judged_by",
    "int64 steps rounds",
    "double messages residual exploitability",
    "string stopped solver solver_status",
)
#: Columns of times and environment, which differ from run to run. `wall` and `elapsed` are wall times in seconds, all
#: other durations are CPU times.
CHANCE = _columns(
    "double drawing build compile solve certify seconds wall measuring loops elapsed",
    "time finished",
    "string fairopt commit versions python machine",
    "int64 process cores threads",
)
#: Long tables, which are lists within the row: columns by name of the table.
LONG = {
    "use": _columns("string class", "int64 servers", "string resource", "double capacity utilization"),
    "curve": _columns("int64 round", "double residual exploitability utilization messages seconds"),
    "reached": _columns("double level", "int64 rounds", "double messages seconds"),
    "measured": _columns("string measure", "double value"),
    "allocated": _columns("string user server", "double tasks"),
}

COLUMNS = INPUTS | FOUND | CHANCE
#: Columns of long tables that differ from run to run.
CHANCE_INSIDE = "seconds"

#: Cells that solve a mechanism on a cluster.
CELLS = Schema("fairopt-cells-3", "", "cluster", INPUTS, FOUND, CHANCE, LONG)

#: Cells that run a policy on a workload over time. Times are in seconds of the workload, except the duration of the
#: simulation: `simulate` is its CPU time, `wall` its wall time.
SIMULATIONS = Schema(
    "fairopt-simulations-1",
    "simulations",
    "workload",
    _columns(
        "string key experiment workload source data digest",
        "int64 seed repetition",
        "string policy name",
        "double until every thrashing",
        "string options question code",
    ),
    _columns(
        "string status error about report",
        "int64 users servers resources jobs tasks jobs_done tasks_done tasks_waiting restarts",
        "double mean_response median_response mean_wait utilization end load certificate",
    ),
    _columns(
        "double drawing simulate wall elapsed loops",
        "time finished",
        "string fairopt commit versions python machine",
        "int64 process cores threads",
    ),
    {
        "use": _columns("string resource", "double utilization"),
        "timeline": _columns("double time", "string what", "double value"),
        "shares": _columns("double time", "string user", "double share"),
        "each_job": _columns("string job user", "double arrival start response", "int64 tasks tasks_done"),
        "demands": _columns("double first second", "int64 tasks"),
        "each_user": _columns(
            "string user",
            "int64 jobs jobs_done tasks tasks_done",
            "double mean_response mean_dominant_share",
        ),
    },
)
