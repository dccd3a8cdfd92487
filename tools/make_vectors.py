"""Conformance vectors of fair shares, in exact fractions: python tools/make_vectors.py
Reads the clusters of vectors/drf.txt, weighted.txt and queues.txt, rewrites their answers, the numbers behind `=`, and
writes the same in JSON. vectors/README.md has the format. The standard library alone: solvers share no code with it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("drf", "weighted", "queues")


@dataclass
class Node:
    """A queue, or a user, which has a demand; bounds are amounts by number of the resource."""

    parent: str | None
    weight: Fraction
    wants: Fraction | None = None
    demand: list[Fraction] = field(default_factory=list)
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

    def above(self, name: str | None) -> list[str]:
        """The node and all above it."""
        return [] if name is None else [name, *self.above(self.nodes[name].parent)]

    def share(self, user: str, tasks: Fraction) -> Fraction:
        """Dominant share of tasks of a user; resources of which there is nothing do not count."""
        parts = zip(self.nodes[user].demand, self.capacity, strict=True)
        return max((tasks * d / c for d, c in parts if c), default=Fraction(0))


def parse(text: str) -> list[Vector]:
    """The vectors of a text, with the answers that it states."""
    vectors: list[Vector] = []
    for line in text.splitlines():
        words, _, answers = line.partition("=")
        kind, name, *rest = words.split() or ["#", ""]
        if kind == "#":
            continue
        if kind == "vector":
            vectors.append(Vector(name, " ".join(rest)))
            continue
        numbers = [Fraction(word) if word[-1].isdigit() and not word[0].isalpha() else None for word in (name, *rest)]
        now = vectors[-1]
        if kind == "capacity":
            now.capacity = numbers
        elif kind == "combine":
            now.combine = name
        elif kind == "priority":
            now.nodes[name].priority = numbers[1]
        elif kind in ("limit", "quota"):
            getattr(now.nodes[name], kind)[int(rest[0])] = numbers[2]
        elif kind not in ("queue", "user") or name in now.nodes or rest[0] not in {"-", *now.nodes}:
            raise ValueError(f"unknown, a name twice, or a parent that does not stand above: {line}")
        else:
            wants = numbers[3] if kind == "user" else None
            now.nodes[name] = Node(None if rest[0] == "-" else rest[0], numbers[2], wants, numbers[4:])
            if answers:
                now.tasks[name] = Fraction(answers.split()[0])
    return vectors


def rates(vector: Vector, rising: set[str]) -> dict[str, Fraction]:
    """Tasks by user for a rise of the root by 1, if these users rise; 0 for others."""
    children: dict[str | None, set[str]] = {}
    for name in {one for user in rising for one in vector.above(user)}:
        children.setdefault(vector.nodes[name].parent, set()).add(name)

    def rise(name: str | None) -> dict[str, Fraction]:
        if name in rising:
            return {name: 1 / vector.share(name, Fraction(1))}
        first = max(vector.nodes[child].priority for child in children[name])
        weight = {one: vector.nodes[one].weight for one in children[name] if vector.nodes[one].priority == first}
        found = {user: weight[one] * rate for one in weight for user, rate in rise(one).items()}
        norm = sum(weight.values())
        if vector.combine == "vector":
            uses = [sum(rate * vector.nodes[user].demand[r] for user, rate in found.items()) / c
                    for r, c in enumerate(vector.capacity) if c]  # fmt: skip
            norm = max(uses)
        return {user: rate / norm for user, rate in found.items()}

    return dict.fromkeys(vector.users, Fraction(0)) | rise(None)


Row = tuple[dict[str, Fraction], Fraction]


def used(row: Row, tasks: dict[str, Fraction]) -> Fraction:
    """What tasks or their rates use of a bound."""
    return sum((tasks[user] * each for user, each in row[0].items()), Fraction(0))


def rows(vector: Vector, kind: str, depth: int | None = None) -> list[Row]:
    """Limits, or quotas of nodes at a depth: amounts by user that needs any, and their bound."""
    return [
        ({user: d for user in vector.users if name in vector.above(user) and (d := vector.nodes[user].demand[r])}, most)
        for name, node in vector.nodes.items() if depth in (None, len(vector.above(name)))
        for r, most in getattr(node, kind).items()
    ]  # fmt: skip


def bounds(vector: Vector) -> list[Row]:
    """What stops users for good: limits, those of the root are the capacities, and wants."""
    root = Node(None, Fraction(1), limit=dict(enumerate(vector.capacity)))
    inner = {name: replace(node, parent=node.parent or "") for name, node in vector.nodes.items()}
    wants = [({user: Fraction(1)}, most) for user in vector.users if (most := vector.nodes[user].wants) is not None]
    return wants + rows(replace(vector, nodes={"": root} | inner), "limit")


def fill(vector: Vector) -> dict[str, Fraction]:
    """Tasks by progressive filling of the tree, quotas first, those of the deepest nodes before others."""
    hard = bounds(vector)
    tasks, alive = (
        dict.fromkeys(vector.users, Fraction(0)),
        {*vector.users}.difference(*(n for n, most in hard if not most)),
    )
    depths = {len(vector.above(name)) for name, node in vector.nodes.items() if node.quota}
    for depth in [*sorted(depths, reverse=True), 0]:
        quotas = rows(vector, "quota", depth)
        rising = alive.intersection({user for need, _ in quotas for user in need} if depth else alive)
        while rising:
            rate, every = rates(vector, rising), [*hard, *quotas]
            step = max(
                min((row[1] - used(row, tasks)) / speed for row in every if (speed := used(row, rate))), Fraction(0)
            )
            tasks = {user: have + step * rate[user] for user, have in tasks.items()}
            alive = alive.difference(*(row[0] for row in hard if used(row, tasks) == row[1]))
            rising = (rising & alive).difference(*(row[0] for row in quotas if used(row, tasks) >= row[1]))
    return tasks


def build(kind: str, text: str, solve: Callable[[Vector], dict[str, Fraction]] = fill) -> tuple[str, str]:
    """Text with all answers, tasks by user, and JSON."""
    lines, tables, stated = text.splitlines(), [], []
    for vector in parse(text):
        found = solve(vector)
        answers = {user: {"tasks": tasks, "share": vector.share(user, tasks)} for user, tasks in found.items()}
        stated += [f"{one['tasks']} {one['share']}" for one in answers.values()]
        nodes = [{"name": name} | vars(node) | answers.get(name, {}) for name, node in vector.nodes.items()]
        tables.append(
            json.dumps(
                {key: each for key, each in vars(vector).items() if key != "tasks"} | {"nodes": nodes}, default=str
            )
        )
    each = iter(stated)
    lines = [f"{line.partition('=')[0].rstrip()} = {next(each)}" if line.startswith("user") else line for line in lines]
    head = f'{{"set": "fairopt-vectors-1", "kind": "{kind}", "vectors": [\n'
    return "\n".join(lines) + "\n", head + ",\n".join(tables) + "\n]}\n"


if __name__ == "__main__":
    for name in KINDS:
        file = ROOT / "vectors" / f"{name}.txt"
        both = build(name, file.read_text(encoding="utf-8"))
        for path, content in zip((file, file.with_suffix(".json")), both, strict=True):
            path.write_text(content, encoding="utf-8")
