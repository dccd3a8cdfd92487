"""Conformance vectors of fair shares, in exact fractions: python tools/make_vectors.py [FOLDER]
Reads the clusters of vectors/drf.txt, weighted.txt and queues.txt, rewrites their answers, the numbers behind `=`, and
writes the same in JSON. vectors/README.md has the format."""

import json
import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from fairopt.certificates import rational

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("drf", "weighted", "queues")


@dataclass
class Node:
    """A queue, or a user, which has a demand; bounds are amounts by number of the resource."""

    parent: str
    weight: Fraction
    wants: Fraction | float = math.inf
    demand: tuple[Fraction, ...] = ()
    priority: Fraction = Fraction(0)
    limit: dict[int, Fraction] = field(default_factory=dict)
    quota: dict[int, Fraction] = field(default_factory=dict)


@dataclass
class Vector:
    """A pool of capacities, and the nodes of a tree by name; `tasks` by user are the answer that the text states."""

    name: str
    source: str
    combine: str = "sum"
    capacity: list[Fraction] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    tasks: dict[str, Fraction] = field(default_factory=dict)

    @property
    def users(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.demand]

    def above(self, name: str) -> list[str]:
        """The node and all above it."""
        line = []
        while name != "-":
            line.append(name)
            name = self.nodes[name].parent
        return line

    def unit(self, user: str) -> Fraction | float:
        """Dominant share of a task; infinite if the user can run none."""
        pairs = zip(self.nodes[user].demand, self.capacity, strict=True)
        return max(math.inf if not c else d / c for d, c in pairs if d)

    def share(self, user: str, tasks: Fraction) -> Fraction:
        return tasks * Fraction(self.unit(user)) if tasks else Fraction(0)


def parse(text: str) -> list[Vector]:
    """The vectors of a text, with the answers that it states."""
    vectors: list[Vector] = []
    for line in text.splitlines():
        kind, name, *rest = line.partition("=")[0].split() or ["#", ""]
        if kind in ("queue", "user") and (name in vectors[-1].nodes or rest[0] not in {"-", *vectors[-1].nodes}):
            raise ValueError(f"a name twice, or a parent that does not stand above: {line}")
        if kind == "vector":
            vectors.append(Vector(name, " ".join(rest)))
        elif kind == "capacity":
            vectors[-1].capacity = [Fraction(one) for one in (name, *rest)]
        elif kind == "combine":
            vectors[-1].combine = name
        elif kind == "queue":
            vectors[-1].nodes[name] = Node(rest[0], Fraction(rest[1]))
        elif kind == "user":
            wants = math.inf if rest[2] == "-" else Fraction(rest[2])
            vectors[-1].nodes[name] = Node(rest[0], Fraction(rest[1]), wants, tuple(map(Fraction, rest[3:])))
            if "=" in line:
                vectors[-1].tasks[name] = Fraction(line.split()[-2])
        elif kind == "priority":
            vectors[-1].nodes[name].priority = Fraction(rest[0])
        elif kind in ("limit", "quota"):
            getattr(vectors[-1].nodes[name], kind)[int(rest[0])] = Fraction(rest[1])
        elif not kind.startswith("#"):
            raise ValueError(f"unknown line: {line}")
    return vectors


def rates(vector: Vector, rising: set[str]) -> dict[str, Fraction]:
    """Tasks by user for a rise of the root by 1, if these users rise; 0 for others."""
    children: dict[str, set[str]] = {}
    for name in {one for user in rising for one in vector.above(user)}:
        children.setdefault(vector.nodes[name].parent, set()).add(name)

    def rise(name: str) -> dict[str, Fraction]:
        if name in rising:
            return {name: 1 / Fraction(vector.unit(name))}
        first = max(vector.nodes[child].priority for child in children[name])
        weight = {one: vector.nodes[one].weight for one in children[name] if vector.nodes[one].priority == first}
        found = {user: weight[one] * rate for one in weight for user, rate in rise(one).items()}
        norm = sum(weight.values())
        if vector.combine == "vector":
            uses = [({user: vector.nodes[user].demand[r] for user in found}, c) for r, c in enumerate(vector.capacity)]
            norm = max(sum(rate * need[user] for user, rate in found.items()) / c for need, c in uses if c)
        return {user: rate / norm for user, rate in found.items()}

    return dict.fromkeys(vector.users, Fraction(0)) | rise("-")


Row = tuple[dict[str, Fraction], Fraction | float]


def rows(vector: Vector, kind: str, depth: int = 0) -> list[Row]:
    """Limits, or quotas of nodes at a depth: amounts by user that needs any, and their bound."""
    found: list[Row] = []
    for name, node in vector.nodes.items():
        if depth in (0, len(vector.above(name))):
            for r, bound in getattr(node, kind).items():
                need = {user: vector.nodes[user].demand[r] for user in vector.users if name in vector.above(user)}
                found.append(({user: one for user, one in need.items() if one}, bound))
    return found


def bounds(vector: Vector) -> list[Row]:
    """What stops users for good: capacities, wants and limits."""
    found: list[Row] = [({user: Fraction(1)}, vector.nodes[user].wants) for user in vector.users]
    for r, bound in enumerate(vector.capacity):
        found.append(({user: d for user in vector.users if (d := vector.nodes[user].demand[r])}, bound))
    return found + rows(vector, "limit")


def fill(vector: Vector) -> dict[str, Fraction]:
    """Tasks by progressive filling of the tree, quotas first, those of the deepest nodes before others."""
    tasks, alive, hard = dict.fromkeys(vector.users, Fraction(0)), set(vector.users), bounds(vector)
    for need, bound in hard:
        alive -= {*need} if not bound else set()
    depths = {len(vector.above(name)) for name, node in vector.nodes.items() if node.quota}
    for depth in [*sorted(depths, reverse=True), None]:
        quotas = [] if depth is None else rows(vector, "quota", depth)
        rising = set(alive) if depth is None else {user for need, _ in quotas for user in need} & alive
        while rising:
            rate = rates(vector, rising)
            room = [
                (bound - sum(tasks[user] * one for user, one in need.items()), speed, need)
                for need, bound in [*hard, *quotas]
                if (speed := sum(rate[user] * one for user, one in need.items()))
            ]
            step = max(min(left / speed for left, speed, _ in room), Fraction(0))
            tasks = {user: have + step * rate[user] for user, have in tasks.items()}
            for need, bound in [*hard, *quotas]:
                if sum(tasks[user] * one for user, one in need.items()) >= bound:
                    rising -= {*need}
                    alive -= {*need} if (need, bound) in hard else set()
        if any(
            sum(tasks[user] * one for user, one in need.items()) < bound and alive & {*need} for need, bound in quotas
        ):
            raise ValueError(f"{vector.name}: a quota is not met")
    return tasks


def answer(vector: Vector) -> dict[str, Fraction]:
    """Tasks by user: exact max-min of the package's certificates if all are siblings, else `fill`."""
    if len(vector.users) < len(vector.nodes) or any(n.limit or n.quota or n.priority for n in vector.nodes.values()):
        return fill(vector)
    nodes = [vector.nodes[user] for user in vector.users]
    runs = [vector.unit(user) < math.inf and node.wants > 0 for user, node in vector.nodes.items()]
    rate = [node.weight / Fraction(vector.unit(user)) if run else Fraction(0)
            for (user, node), run in zip(vector.nodes.items(), runs, strict=True)]  # fmt: skip
    capacity, demand, rated, wants = (
        np.array(one, dtype=object)
        for one in ([vector.capacity], [node.demand for node in nodes], rate, [node.wants for node in nodes])
    )
    found = rational.optimum(capacity, demand, np.array(runs)[:, None], rated, wants)
    assert found is not None
    return dict(zip(vector.users, found.tasks[:, 0], strict=True))


def table(vector: Vector, tasks: dict[str, Fraction]) -> dict[str, object]:
    """The vector and its answer as JSON has them."""

    def entry(name: str, node: Node) -> dict[str, object]:
        result: dict[str, object] = {"name": name, "parent": None if node.parent == "-" else node.parent}
        result["weight"] = str(node.weight)
        result |= {kind: {str(r): str(most) for r, most in amounts.items()}
                   for kind in ("quota", "limit") if (amounts := getattr(node, kind))}  # fmt: skip
        result |= {"priority": str(node.priority)} if node.priority else {}
        if node.demand:
            result["wants"] = None if node.wants == math.inf else str(node.wants)
            result["demand"] = [str(one) for one in node.demand]
            result |= {"tasks": str(tasks[name]), "share": str(vector.share(name, tasks[name]))}
        return result

    entries = [(entry(name, node), bool(node.demand)) for name, node in vector.nodes.items()]
    queues, users = ([one for one, user in entries if user == wanted] for wanted in (False, True))
    capacity = [str(one) for one in vector.capacity]
    result = {"name": vector.name, "source": vector.source, "capacity": capacity}
    return result | {"combine": vector.combine, "queues": queues, "users": users}


def build(kind: str, text: str) -> tuple[str, str]:
    """Text with all answers, and JSON."""
    lines, answers = text.splitlines(), [(one, answer(one)) for one in parse(text)]
    each = iter(
        f"{tasks[user]} {vector.share(user, tasks[user])}" for vector, tasks in answers for user in vector.users
    )
    lines = [f"{line.partition('=')[0].rstrip()} = {next(each)}" if line.startswith("user") else line for line in lines]
    rest = ",\n".join(json.dumps(table(*one), ensure_ascii=False) for one in answers)
    return "\n".join(lines) + "\n", f'{{"set": "fairopt-vectors-1", "kind": "{kind}", "vectors": [\n{rest}\n]}}\n'


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "vectors"
    for kind in KINDS:
        lines, data = build(kind, (folder / f"{kind}.txt").read_text(encoding="utf-8"))
        (folder / f"{kind}.txt").write_text(lines, encoding="utf-8")
        (folder / f"{kind}.json").write_text(data, encoding="utf-8")
