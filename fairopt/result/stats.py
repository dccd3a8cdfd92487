"""`Stats`: how an answer was found, and how long that took."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stats:
    """How an answer was found: engine, solver and its status (reported, not believed), seconds, versions.

    `compile` is what CVXPY took. Seconds do not contain what a process does once, compiling or loading loops and
    importing libraries: `loops` is that.
    """

    engine: str
    solver: str
    status: str
    rounds: int
    build: float
    compile: float
    solve: float
    certify: float
    versions: dict[str, str] = field(default_factory=dict)
    loops: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in all, without `loops`."""
        return self.build + self.compile + self.solve + self.certify
