"""Signs of indices on two servers with two resources: is an equilibrium of index -1 possible there?

    python tools/two_by_two.py --seconds 600 --store results/two_by_two.csv    # adds to what is stored
    python tools/two_by_two.py --seconds 0                                     # what there is

Equilibria are drawn, not solved for: demands `(1, rho_n)`, tasks x, capacities that these use up, alpha, and prices at
which users on both servers tie; weights that make X so dear exist always (`phi_n` is free). A draw counts where prices
are positive and nobody prefers the other server. By users, of whom so many are on both servers, and priced rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rng = np.random.Generator
#: (users, users on both servers, priced rows). With fewer ties the index is proved to be +1.
KINDS = (
    (4, 2, 4), (5, 2, 4), (6, 2, 4), (7, 2, 4), (4, 3, 4), (5, 3, 4), (6, 3, 4), (3, 2, 3), (4, 2, 3), (5, 2, 3),
    (6, 2, 3),
)  # fmt: skip
#: Draws at once; a condition above which a sign is rounding; what makes splits that are not unique regular.
BATCH, SINGULAR, ETA = 20_000, 1e11, 1e-9


class Draws(NamedTuple):
    """Equilibria: who is on which server, with which tasks, at which prices."""

    demand: Array  # (draws, users, 2)
    on: Mask  # (draws, users, servers)
    tasks: Array  # (draws, users, servers)
    price: Array  # (draws, servers, resources), 0 for an idle row
    cost: Array  # (draws, users, servers)


def drawn(rng: Rng, users: int, ties: int, rows: int) -> Draws:
    """What is an equilibrium of `BATCH` draws."""
    wide = np.exp(rng.uniform(np.log(0.05), np.log(20), BATCH))
    alpha = np.where(rng.random(BATCH) < 0.5, rng.uniform(0.02, 2, BATCH), wide)
    ratio = np.exp(rng.normal(0, 1, (BATCH, users)) * np.exp(rng.uniform(np.log(0.3), np.log(3), (BATCH, 1))))
    second = rng.random((BATCH, users)) < 0.5
    on = np.stack([~second, second], axis=2)
    on[:, :ties] = True
    spread = np.exp(rng.uniform(np.log(0.2), np.log(3), (BATCH, 1, 1)))
    tasks = np.where(on, np.exp(rng.normal(0, 1, on.shape) * spread), 0.0)
    tasks[:, :ties] *= np.exp(-rng.uniform(0, 7, (BATCH, 1, 1)))
    demand = np.stack([np.ones_like(ratio), ratio], axis=2)
    capacity = np.einsum("bni,bnr->bir", tasks, demand)
    if rows == 3:
        capacity[:, 1, 1] *= 1 + np.exp(rng.normal(0, 2, BATCH))
    sound = (capacity > 0).all(axis=(1, 2))
    gamma = (np.where(sound[:, None, None], capacity, 1.0)[:, None] / demand[:, :, None]).min(axis=3)
    worth = (gamma[:, :, 0] / gamma[:, :, 1]) ** (alpha[:, None] - 1)
    # Users on both servers: lambda_1 d = worth lambda_2 d. Prices are drawn among those.
    equal = np.concatenate([demand, -worth[:, :, None] * demand], axis=2)[:, :ties, :rows]
    size = np.abs(equal).max(axis=1, keepdims=True)
    free = np.linalg.svd(equal / size, full_matrices=True)[2][:, ties:]
    found = np.einsum("bk,bkr->br", rng.normal(size=free.shape[:2]), free) / size[:, 0]
    found *= np.sign(found[:, :1])
    price = np.zeros((BATCH, 4))
    price[:, :rows] = found
    price = price.reshape(BATCH, 2, 2)
    cost = np.einsum("bir,bnr->bni", price, demand)
    with np.errstate(all="ignore"):
        dearer = np.log(cost[:, :, 0] / cost[:, :, 1]) - np.log(worth)
    content = np.where(second, dearer > 0, dearer < 0)
    content[:, :ties] = True
    keep = sound & (found > 0).all(axis=1) & content.all(axis=1)
    return Draws(*(each[keep] for each in (demand, on, tasks, price, cost)))


def signs(one: Draws, ties: int, rows: int) -> Array:
    """The sign of `det [[F_x, F_v], [-use, 0]]`, with columns and rows multiplied by positive numbers; 0: unclear."""
    many, users, _ = one.demand.shape
    pairs = 2 * users
    matrix = np.zeros((many, pairs + 4, pairs + 4))
    total = one.tasks.sum(axis=2)
    for n in range(users):
        for i in range(2):
            for j in range(2):
                matrix[:, 2 * n + i, 2 * n + j] = one.tasks[:, n, j] / total[:, n]
            for r in range(2):
                at = pairs + 2 * i + r
                matrix[:, 2 * n + i, at] = one.demand[:, n, r] * one.price[:, i, r] / one.cost[:, n, i]
                matrix[:, at, 2 * n + i] = -one.demand[:, n, r] * one.tasks[:, n, i]
    matrix[:, pairs:] /= np.abs(matrix[:, pairs:]).sum(axis=2, keepdims=True)
    off = np.concatenate([~one.on.reshape(many, pairs), np.zeros((many, 4), dtype=bool)], axis=1)
    off[:, pairs + rows :] = True
    matrix = np.where(off[:, :, None] | off[:, None, :], 0.0, matrix) + np.eye(pairs + 4) * off[:, :, None]
    matrix += ETA * np.eye(pairs + 4) * (ties > 2)  # three users on both: tasks move, and no X does
    found = np.linalg.slogdet(matrix)[0]
    negative = np.flatnonzero(found < 0)
    if len(negative) and ties < 3:
        found[negative[np.linalg.cond(matrix[negative]) > SINGULAR]] = 0.0
    return np.asarray(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds")
    parser.add_argument("--store", type=Path, default=ROOT / "results" / "two_by_two.csv")
    options = parser.parse_args()
    columns = ["users", "on both", "priced rows", "seed", "equilibria", "index -1", "unclear"]
    lines = pd.read_csv(options.store).values.tolist() if options.store.exists() else []
    begun, seed = time.process_time(), 1 + max((line[3] for line in lines), default=-1)
    while time.process_time() - begun < options.seconds:
        for kind in KINDS:
            one = drawn(np.random.default_rng([seed, *kind]), *kind)
            found = signs(one, *kind[1:])
            lines.append([*kind, seed, len(found), int((found < 0).sum()), int((found == 0).sum())])
        seed += 1
        options.store.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(lines, columns=columns).to_csv(options.store, index=False)
    counts = pd.DataFrame(lines, columns=columns).drop(columns="seed").groupby(columns[:3], sort=False).sum()
    sys.stdout.write(counts.reset_index().to_markdown(index=False) + "\n")


if __name__ == "__main__":
    main()
