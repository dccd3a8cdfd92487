"""`Allocations`: the answers to many problems as arrays, and which problems have none and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._libraries import pd
from ..model._arrays import Array, Mask
from ..model._frozen import Frozen


class Failure(NamedTuple):
    """A problem without an answer."""

    problem: int
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Allocations(Frozen):
    """Allocations and certificates of many problems. Arrays are read-only; problems are the first axis.

    Where problems differ in shape, arrays are as large as the largest needs, NaN where a problem has no such user or
    server, and NaN for problems without an answer.

    Attributes
    ----------
    mechanism : str
        Who made it, such as `alphaPF-VDS(alpha=3)`.
    user_tasks : (problems, users)
        `x_n = sum_i x[n,i]`, in tasks.
    tasks : (problems, users, servers)
        `x[n,i]`, in tasks; one server, the pool, for mechanisms that pool.
    certificate : (problems,)
        The residual of `Mechanism.certify`: the larger of the relative infeasibility and of what is open of optimality.
        Also that of a best answer which missed `tol` and is not given; NaN where there was none.
    failed : tuple of (problem, reason)
        The problems without an answer, by number.
    fallback : (problems,) of bool
        Which were handed to `Mechanism.solve`.
    tol : float
        What every certificate of an answer reaches.
    users : tuple of tuples
        The names of every problem's users.
    """

    mechanism: str
    user_tasks: Array
    tasks: Array
    certificate: Array
    failed: tuple[Failure, ...]
    fallback: Mask
    tol: float
    users: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """The number of problems."""
        return len(self.certificate)

    def to_frame(self) -> pd.DataFrame:
        """One row per problem and user: `tasks`, and the `certificate` of the problem; NaN for failed ones.

        Of a problem whose data are none, no user is known: it has no rows.
        """
        counts = [len(names) for names in self.users]
        problem = np.repeat(np.arange(len(counts)), counts)
        place = np.concatenate([np.arange(count) for count in counts]) if counts else np.zeros(0, dtype=int)
        names = [name for each in self.users for name in each]
        index = pd.MultiIndex.from_arrays([problem, names], names=["problem", "user"])
        return pd.DataFrame(
            {"tasks": self.user_tasks[problem, place], "certificate": self.certificate[problem]}, index=index
        )

    def __repr__(self) -> str:
        total, users, servers = self.tasks.shape
        answered = total - len(self.failed)
        failed = {failure.problem for failure in self.failed}
        kept = np.array([p not in failed for p in range(total)], dtype=bool)
        worst = f"; largest certificate {self.certificate[kept].max():.1e}, tol {self.tol:g}" if answered else ""
        lines = [
            f"{self.mechanism}: {answered} of {total} problems answered, of up to {users} users and {servers} servers"
            f"{worst}"
        ]
        if self.fallback.any():
            lines.append(f"one by one: {int(self.fallback.sum())}")
        lines += [f"problem {failure.problem} failed: {failure.reason}" for failure in self.failed[:5]]
        if len(self.failed) > 5:
            lines.append(f"and {len(self.failed) - 5} more: see failed")
        return "\n".join(lines)
