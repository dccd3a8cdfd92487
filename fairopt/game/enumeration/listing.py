"""`Equilibria`: the equilibria of one game, with their indices, stability, and who prefers which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ..._libraries import pd
from ...model._arrays import Array
from ...model._names import apart
from ...result.allocation import Allocation

#: Users' tasks that differ by less than this part are the same to them.
_SAME = 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class Equilibria(Sequence[Allocation]):
    """A list of certified allocations, all of them equilibria of one game, the largest welfare first.

    Welfare is `sum_n phi_n log x_n`, which orders them and no more: every one is an equilibrium.

    Attributes
    ----------
    allocations : tuple of Allocation
    indices : tuple of int
        +1 or -1; 0 where tasks are not locally unique, or where the data are degenerate.
    radii : tuple of float
        Spectral radius of a round of best responses, servers in turn: below 1 it comes back to the equilibrium, above
        it leaves. NaN where a task count binds.
    complete : bool
        Was every product of faces gone through, and do indices sum to +1, as those of all equilibria do? See
        `docs/equilibria.md` for what that proves.
    tried : mapping of str to str
        What looked for equilibria, and what came of it.
    """

    allocations: tuple[Allocation, ...]
    indices: tuple[int, ...]
    radii: tuple[float, ...]
    complete: bool
    tried: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.allocations)

    @overload
    def __getitem__(self, key: int) -> Allocation: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Allocation, ...]: ...
    def __getitem__(self, key: int | slice) -> Allocation | tuple[Allocation, ...]:
        return self.allocations[key]

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self.allocations)

    @property
    def attrs(self) -> dict[str, object]:
        """`complete` and `tried`, as frames carry them."""
        return {"complete": self.complete, "tried": dict(self.tried)}

    @property
    def user_tasks(self) -> Array:
        """(equilibria, users)."""
        return np.array([one.arrays.user_tasks for one in self.allocations])

    def to_frame(self) -> pd.DataFrame:
        """One row per equilibrium, from 1: `index`, `radius`, `stable`, `certificate`, and every user's tasks."""
        columns: dict[str, object] = {
            "index": self.indices,
            "radius": self.radii,
            "stable": [radius < 1 for radius in self.radii],
            "certificate": [one.certificate.residual for one in self.allocations],
        }
        names = apart(self.allocations[0].cluster.users, list(columns), "user")
        columns |= dict(zip(names, self.user_tasks.T, strict=True))
        frame = pd.DataFrame(columns, index=self._numbers)
        frame.attrs = self.attrs
        return frame

    def preferences(self) -> pd.DataFrame:
        """Preferences over equilibria: a row per user, its tasks in each, and the number of the best (`best`).

        `best` is 0 for users to whom all are the same.
        """
        tasks = self.user_tasks.T
        frame = pd.DataFrame(
            tasks, columns=self._numbers, index=pd.Index(self.allocations[0].cluster.users, name="user")
        )
        most, least = tasks.max(axis=1), tasks.min(axis=1)
        frame["best"] = np.where(most - least <= _SAME * most, 0, tasks.argmax(axis=1) + 1)
        return frame

    def pareto(self) -> pd.DataFrame:
        """Every two: `better` (the row gives nobody less, and somebody more), `worse`, `incomparable` or `same`."""
        tasks = self.user_tasks
        words = np.full((len(self), len(self)), "same", dtype=object)
        for a, mine in enumerate(tasks):
            for b, other in enumerate(tasks):
                more, less = (
                    bool((mine > other * (1 + _SAME)).any()),
                    bool((mine < other * (1 - _SAME)).any()),
                )
                if more or less:
                    words[a, b] = "incomparable" if more and less else "better" if more else "worse"
        return pd.DataFrame(words, index=self._numbers, columns=self._numbers)

    @property
    def _numbers(self) -> pd.Index:
        return pd.RangeIndex(1, len(self) + 1, name="equilibrium")

    def __repr__(self) -> str:
        if not self.allocations:
            return "no equilibrium found"
        known = "all of them" if self.complete else "there may be more"
        many = f"{len(self)} equilibri{'um' if len(self) == 1 else 'a'}"
        lines = [f"{self.allocations[0].mechanism}: {many}, {known}"]
        lines += self.to_frame().to_string(float_format="{:.6g}".format).splitlines()
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in self.tried.items())])
