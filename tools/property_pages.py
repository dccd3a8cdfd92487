"""Pages of the site about properties: what each says, who has it, and its smallest counterexamples as pictures."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import docstring_text
import fairness_tables
import gallery
import pandas as pd
from matplotlib.figure import Figure

from fairopt import mechanisms, properties
from fairopt.mechanisms import Mechanism
from fairopt.mechanisms._claim import Claim
from fairopt.properties import Witness

ROOT = Path(__file__).resolve().parent.parent
#: Counterexamples shown as pictures on a page, of different mechanisms.
_PICTURES = 6
#: Of which clusters a claim speaks, in words; `fairopt.mechanisms._claim` has the conditions.
SCOPE = (
    "Where no condition stands, *yes* is for every cluster that the mechanism takes: any weights, zeros among demands, "
    "placement constraints, finite task counts. *No* is: a counterexample is known."
)


def write(folder: Path) -> list[str]:
    """A page for each, and the list of them."""
    folder.mkdir()
    made, survey, witnesses = [], fairness_tables.rows(), _witnesses()
    for name in properties.names():
        prop = properties.get(name)
        text = docstring_text.markdown(inspect.getdoc(type(prop)) or "")
        lines = [f"# {name}", "", text, "", "## Who has it", "", *_claimed(name), "", *_searched(name, survey), ""]
        lines += _counterexamples(name, witnesses.get(name, []), folder)
        lines += [f"In Python `fairopt.properties.get({name!r})`. Here are [all of them](../properties.md), how",
                  "counterexamples are found and verified, and the proofs.", ""]  # fmt: skip
        (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
        made.append(f"- [{name}](properties/{name}.md): {prop.definition}")
    return made


def _witnesses() -> dict[str, list[tuple[Path, Witness]]]:
    """All that are stored, by property, the smallest first."""
    found: dict[str, list[tuple[Path, Witness]]] = {}
    for path in sorted((ROOT / "docs" / "witnesses").rglob("*.json")):
        one = Witness.load(path)
        found.setdefault(one.property, []).append((path, one))
    for some in found.values():
        some.sort(key=lambda each: gallery.size(each[1]))
    return found


def _claimed(name: str) -> list[str]:
    """What mechanisms say of themselves, with links to proofs."""
    rows = ["| mechanism | has it | if | where it stands |", "|---|---|---|---|"]
    for kind in sorted(mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower()):
        for one in kind.claims:
            if one.property == name:
                ends = [f"{key} = {fairness_tables.interval(value)}" for key, value in one.parameters.items()]
                holds = "yes" if one.holds else "no"
                rows.append(f"| [{kind.title}](../mechanisms/{kind.name}.md) | {holds} "
                            f"| {', '.join([*one.conditions, *ends])} | {proof(one)} |")  # fmt: skip
    return [*rows, "", SCOPE] if len(rows) > 2 else ["No mechanism claims it, or its contrary."]


def proof(one: Claim) -> str:
    """Where a claim stands, as a link where it is a proof of ours."""
    linked = re.sub(r"docs/properties\.md, ([A-Z])\b", _link, one.source)
    return linked if one.holds or one.source else "a counterexample"


def _link(found: re.Match[str]) -> str:
    return f"[proof {found[1]}](../properties.md#proof-{found[1].lower()})"


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
    for axes, one in zip(table, drawn, strict=False):
        gallery.panel(axes, one, one.mechanism, 8)
    for axes in table[len(drawn) :]:
        axes.set_axis_off()
    gallery.legend(figure, 8.5)
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
