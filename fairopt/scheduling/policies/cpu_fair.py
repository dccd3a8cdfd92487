"""Fair shares of a single resource, without regard to other resources."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import DataError
from ..workload import Whole, Workload
from ._base import Policy


@dataclass(frozen=True)
class CpuFair(Policy):
    r"""Serve the user n with the least amount of one resource, rho, per weight, on the first server with enough of it.

    .. math:: \arg\min_n\ \frac{\text{allocated}_{n\rho}}{C_\rho \phi_n}

    Servers may be over-committed in other resources (`Thrashing`).

    Parameters
    ----------
    resource : str or int
        Name or index of the resource rho, by default the first resource. An unknown resource raises a `DataError` when
        a workload is simulated.

    Source: Ghodsi et al., NSDI 2011, section 7.2.
    """

    name = "cpu-fair"
    title = "CPU-only fair"
    source = "NSDI 2011, 7.2"

    resource: str | int = 0

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        names = workload.resources
        r = names.index(self.resource) if self.resource in names else self.resource
        if not (type(r) is int and 0 <= r < len(names)):
            raise DataError(f"there is no resource {self.resource!r}; known: {', '.join(names)}")
        return workload.capacity[:, [r]], workload.demand[:, [r]]
