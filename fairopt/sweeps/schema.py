"""The columns of stores: one row per cell, with its long tables inside. Changing one raises the format's number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .._libraries import pa

#: Names of columns, and of what they hold.
Columns = dict[str, str]


@dataclass(frozen=True)
class Schema:
    """What a row of one kind of cell holds.

    `inputs`: what was asked; `found`: what came of it; `chance`: seconds and machines, which differ from run to run;
    `long`: tables within the row. `folder` is where such cells are in a store, beside others; `source` is the column of
    what they are about.
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
        """All but the long tables, in order."""
        return self.inputs | self.found | self.chance

    @cached_property
    def arrow(self) -> pa.Schema:
        """The same for Parquet."""
        kinds = {_TIME: pa.timestamp("us", tz="UTC")} | {
            k: pa.type_for_alias(k) for k in (_TEXT, _REAL, _WHOLE, _TRUTH)
        }
        long = {
            name: pa.list_(pa.struct([(field, kinds[kind]) for field, kind in fields.items()]))
            for name, fields in self.long.items()
        }
        columns = {name: kinds[kind] for name, kind in self.columns.items()}
        return pa.schema([*columns.items(), *long.items()], metadata={"format": self.format})


_TEXT, _REAL, _WHOLE, _TRUTH, _TIME = "string", "double", "int64", "bool", "time"

#: What was asked.
INPUTS = {
    "key": _TEXT, "experiment": _TEXT, "cluster": _TEXT, "source": _TEXT, "data": _TEXT, "digest": _TEXT,
    "seed": _WHOLE, "repetition": _WHOLE, "mechanism": _TEXT, "name": _TEXT, "alpha": _REAL, "engine": _TEXT,
    "order": _TEXT, "damping": _REAL, "tol": _REAL, "options": _TEXT, "question": _TEXT, "code": _TEXT,
}  # fmt: skip
#: What was found. `status`: `ok`; `missed`, the certificate misses `tol`; `failed`, there is only an `error`.
#: `answered` is the engine that did; `pooled` says that it did for the pool of all servers, without placement.
FOUND = {
    "status": _TEXT, "answered": _TEXT, "pooled": _TRUTH, "error": _TEXT, "about": _TEXT, "notes": _TEXT,
    "users": _WHOLE, "servers": _WHOLE,
    "resources": _WHOLE, "density": _REAL, "tasks": _REAL, "min_share": _REAL, "max_share": _REAL, "jain": _REAL,
    "welfare": _REAL, "price_of_fairness": _REAL, "utilization": _REAL, "feasibility": _REAL, "optimality": _REAL,
    "certificate": _REAL, "judged_by": _TEXT, "steps": _WHOLE, "rounds": _WHOLE, "messages": _REAL, "residual": _REAL,
    "exploitability": _REAL, "stopped": _TEXT, "solver": _TEXT, "solver_status": _TEXT,
}  # fmt: skip
#: What it took and where: the columns that differ from run to run. `seconds` are the processor's, and `wall` those that
#: passed meanwhile, as all others did.
CHANCE = {
    "drawing": _REAL, "build": _REAL, "compile": _REAL, "solve": _REAL, "certify": _REAL, "seconds": _REAL,
    "wall": _REAL, "measuring": _REAL, "loops": _REAL, "elapsed": _REAL, "finished": _TIME,
    "fairopt": _TEXT, "commit": _TEXT,
    "versions": _TEXT, "python": _TEXT, "machine": _TEXT, "process": _WHOLE, "cores": _WHOLE, "threads": _WHOLE,
}  # fmt: skip
#: Long tables, as lists in the row: the name of each, and its columns.
LONG = {
    "use": {"class": _TEXT, "servers": _WHOLE, "resource": _TEXT, "capacity": _REAL, "utilization": _REAL},
    "curve": {
        "round": _WHOLE, "residual": _REAL, "exploitability": _REAL, "utilization": _REAL, "messages": _REAL,
        "seconds": _REAL,
    },
    "reached": {"level": _REAL, "rounds": _WHOLE, "messages": _REAL, "seconds": _REAL},
    "measured": {"measure": _TEXT, "value": _REAL},
    "allocated": {"user": _TEXT, "server": _TEXT, "tasks": _REAL},
}  # fmt: skip

COLUMNS = INPUTS | FOUND | CHANCE
#: Columns of long tables that differ from run to run.
CHANCE_INSIDE = "seconds"

#: A mechanism on a cluster.
CELLS = Schema("fairopt-cells-3", "", "cluster", INPUTS, FOUND, CHANCE, LONG)

#: A policy on a workload over time; seconds of the workload are in the columns that have no other unit. `simulate` is
#: the processor's, `wall` what passed meanwhile.
SIMULATIONS = Schema(
    "fairopt-simulations-1",
    "simulations",
    "workload",
    {
        "key": _TEXT, "experiment": _TEXT, "workload": _TEXT, "source": _TEXT, "data": _TEXT, "digest": _TEXT,
        "seed": _WHOLE, "repetition": _WHOLE, "policy": _TEXT, "name": _TEXT, "until": _REAL, "every": _REAL,
        "thrashing": _REAL, "options": _TEXT, "question": _TEXT, "code": _TEXT,
    },
    {
        "status": _TEXT, "error": _TEXT, "about": _TEXT, "report": _TEXT, "users": _WHOLE, "servers": _WHOLE,
        "resources": _WHOLE, "jobs": _WHOLE, "tasks": _WHOLE, "jobs_done": _WHOLE, "tasks_done": _WHOLE,
        "tasks_waiting": _WHOLE, "restarts": _WHOLE, "mean_response": _REAL, "median_response": _REAL,
        "mean_wait": _REAL, "utilization": _REAL, "end": _REAL, "load": _REAL, "certificate": _REAL,
    },
    {
        "drawing": _REAL, "simulate": _REAL, "wall": _REAL, "elapsed": _REAL, "loops": _REAL,
        "finished": _TIME, "fairopt": _TEXT, "commit": _TEXT, "versions": _TEXT,
        "python": _TEXT, "machine": _TEXT, "process": _WHOLE, "cores": _WHOLE, "threads": _WHOLE,
    },
    {
        "use": {"resource": _TEXT, "utilization": _REAL},
        "timeline": {"time": _REAL, "what": _TEXT, "value": _REAL},
        "shares": {"time": _REAL, "user": _TEXT, "share": _REAL},
        "each_job": {
            "job": _TEXT, "user": _TEXT, "arrival": _REAL, "start": _REAL, "response": _REAL,
            "tasks": _WHOLE, "tasks_done": _WHOLE,
        },
        "demands": {"first": _REAL, "second": _REAL, "tasks": _WHOLE},
        "each_user": {
            "user": _TEXT, "jobs": _WHOLE, "jobs_done": _WHOLE, "tasks": _WHOLE, "tasks_done": _WHOLE,
            "mean_response": _REAL, "mean_dominant_share": _REAL,
        },
    },
)  # fmt: skip
