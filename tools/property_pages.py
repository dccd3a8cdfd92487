"""Pages of the site about properties: what each says, who has it, and its smallest counterexamples as pictures."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import fairness_tables
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt import mechanisms, properties
from fairopt.mechanisms import Mechanism
from fairopt.mechanisms._claim import Claim
from fairopt.properties import Witness
from fairopt.properties._base import described

ROOT = Path(__file__).resolve().parent.parent
#: Counterexamples shown as pictures on a page, of different mechanisms.
_PICTURES = 6
_BLUE, _ORANGE, _RED = "#0072b2", "#e69f00", "#c00000"
#: What a panel's marks are, as legends say it.
_BEFORE, _AFTER, _LIE, _DUE = "tasks", "after the change", "after a lie, as reported", "due to the user who misses it"
#: Of which clusters a claim speaks, in words; `fairopt.mechanisms._claim` has the conditions.
SCOPE = (
    "Without a condition *yes* holds on every cluster that the mechanism accepts: any weights, zero demands, placement "
    "constraints, finite task counts. *No* means that a counterexample is known."
)


def pages(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """A page for each: its name, its title, what lists say of it, and its text."""
    survey, witnesses = fairness_tables.rows(), _witnesses()
    for name in properties.names():
        prop = properties.get(name)
        lines = [f"# {name}", "", *documented(type(prop)), "", "## Mechanisms", "", *_claimed(name), ""]
        lines += [*_searched(name, survey), "", *_counterexamples(name, witnesses[name], folder)]
        lines += [f"In Python `fairopt.properties.get({name!r})`. [All properties](../properties.md), the search for",
                  "counterexamples and its verification; [proofs](../proofs.md).", ""]  # fmt: skip
        yield name, name, prop.definition, "\n".join(lines)


def documented(kind: type) -> list[str]:
    """The docstring of a class, for Sphinx."""
    return ["```{eval-rst}", f".. autoclass:: {kind.__module__}.{kind.__qualname__}", "   :no-index:", "```"]


def _witnesses() -> defaultdict[str, list[tuple[Path, Witness]]]:
    """All that are stored, by property, the smallest first: numbers in the cluster, and the length of the words."""
    found = defaultdict(list)
    for path in sorted((ROOT / "docs" / "witnesses").rglob("*.json")):
        one = Witness.load(path)
        found[one.property].append((path, one))
    for some in found.values():
        some.sort(key=lambda of: (of[1].cluster.capacity.size + of[1].cluster.demand.size, len(of[1].sentence)))
    return found


def _claimed(name: str) -> list[str]:
    """What mechanisms say of themselves, with links to proofs."""
    kinds = sorted(mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower())
    claims = [(f"[{kind.title}](../mechanisms/{kind.name}.md)", one)
              for kind in kinds for one in kind.claims if one.property == name]  # fmt: skip
    return claimed("mechanism", claims) or ["No mechanism claims it or its negation."]


def claimed(of: str, claims: list[tuple[str, Claim]]) -> list[str]:
    """Claims with what each is of as a table, and of which clusters they are; nothing where there are none."""
    rows = [f"| {of} | holds | condition | source |", "|---|---|---|---|"]
    for link, one in claims:
        ends = [f"{key} = {fairness_tables.interval(value)}" for key, value in one.parameters.items()]
        said = ", ".join([*one.conditions, *ends])
        rows.append(f"| {link} | {'yes' if one.holds else 'no'} | {said} | {proof(one)} |")
    return [*rows, "", SCOPE] if claims else []


def proof(one: Claim) -> str:
    """Where a claim stands, as a link where it is a proof of ours."""
    linked = re.sub(
        r"docs/proofs\.md, ([A-Z])\b",
        lambda found: f"[proof {found[1]}](../proofs.md#proof-{found[1].lower()})",
        one.source,
    )
    return linked if one.holds or one.source else "a counterexample"


def _searched(name: str, survey: pd.DataFrame) -> list[str]:
    """Of which mechanisms searches found nothing, and in how many trials."""
    none = survey[(survey["property"] == name) & (survey["answer"] == "none")]
    if none.empty:
        return []
    said = [
        f"{mechanisms.one(each.mechanism)} ({f'{each.conditions}, ' if each.conditions else ''}{each.trials:,})"
        for each in none.itertuples()
    ]
    return [f"Searches found no counterexample of {'; '.join(said)}. In brackets are trials."]


def _counterexamples(name: str, witnesses: list[tuple[Path, Witness]], folder: Path) -> list[str]:
    """One of each mechanism in words, the smallest as pictures."""
    first: dict[type[Mechanism], tuple[Path, Witness]] = {}
    for path, one in witnesses:
        first.setdefault(type(mechanisms.one(one.mechanism)), (path, one))
    if not first:
        return ["## Counterexamples", "", "None is known.", ""]
    shown = list(first.values())
    drawn = [one for _, one in shown[:_PICTURES]]
    columns = min(2, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(7.4, 2.5 * rows + 0.3), layout="constrained")
    table = figure.subplots(rows, columns, squeeze=False).ravel()
    marks: dict[str, Any] = {}
    for axes, one in zip(table, drawn, strict=False):
        _panel(axes, one)
        marks |= {each: mark for mark, each in zip(*axes.get_legend_handles_labels(), strict=True)}
    for axes in table[len(drawn) :]:
        axes.set_axis_off()
    known = [each for each in (_BEFORE, _AFTER, _LIE, _DUE) if each in marks]
    figure.legend([marks[each] for each in known], known, loc="outside upper center", ncols=4, fontsize=8.5,
                  frameon=False)  # fmt: skip
    figure.savefig(folder / f"{name}.png", dpi=130)
    picture = [f"```{{image}} {name}.png", f":alt: The smallest counterexamples of {name}", ":class: panels", "```", ""]
    lines = ["## Counterexamples", "", *picture,
             "Tasks of every user (blue), after the change beside them (orange, as reported), and what is due to the",
             "user who misses it (diamond). The smallest of each mechanism that searches found:", ""]  # fmt: skip
    for path, one in shown:
        link = path.relative_to(ROOT / "docs").as_posix()
        of = f"; {one.selection}" if one.selection else ""
        lines.append(f"- [{one.mechanism}](../{link}), verified by {one.route}: {one.sentence}{of}.")
    return [*lines, ""]


def _panel(axes: Axes, one: Witness) -> None:
    """Tasks of every user, after the change beside them, and a diamond at what is due to whom it is missing.

    Below stand the cluster and its change."""
    finding, users = one.replay(), one.cluster.users
    at = np.arange(len(users))
    shift = 0.2 if one.changed is not None else 0
    axes.bar(at - shift, [float(value) for value in one.before], 0.38, color=_BLUE, label=_BEFORE)
    if one.changed is not None:
        there = [users.index(user) for user in one.changed.users]
        name = _LIE if one.users and len(there) == len(users) else _AFTER
        axes.bar(np.array(there) + shift, [float(value) for value in one.after], 0.38, color=_ORANGE, label=name)
    axes.plot(users.index(finding.user), float(finding.due), "D", color=_RED, markersize=5, label=_DUE)
    axes.set_xticks(at, users, fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_title(one.mechanism, fontsize=9.5)
    lines = [re.sub(r"(?<=\d), (?=\d)", ",\u00a0", line) for line in described(*one.instance)]  # rows stay whole
    axes.set_xlabel("\n".join(fill(line, 50) for line in lines), fontsize=8)
    axes.set_xlim(-0.6, len(users) - 0.4)
    axes.margins(y=0.12)
