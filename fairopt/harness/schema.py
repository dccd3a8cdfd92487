"""Columns of stores: one row per cell, which contains its long tables; `columns.toml` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..base import shipped
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


def _columns(text: str) -> Columns:
    found = [line.split() for line in text.splitlines()]
    return {name: kind for kind, *names in filter(None, found) for name in names}


def _schema(said: dict[str, Any]) -> Schema:
    long = {name: _columns(text) for name, text in said["long"].items()}
    return Schema(**said | {name: _columns(said[name]) for name in ("inputs", "found", "chance")} | {"long": long})


#: Cells that solve a mechanism on a cluster, and cells that run a policy on a workload over time.
CELLS, SIMULATIONS = map(_schema, shipped.content(__package__, "columns.toml").values())
#: Columns of long tables that differ from run to run.
CHANCE_INSIDE = "seconds"
