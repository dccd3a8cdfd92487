"""Pages of properties for the site: mechanisms that have each, its smallest counterexamples, and tables of all.

Tables are those of docs/properties-table.md, from docs/survey.csv and the claims of mechanisms and papers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import fill, wrap
from typing import Any, NamedTuple

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
#: Pattern of a row in the table of definitions of docs/properties.md.
_DEFINED = re.compile(r"^\| `([\w-]+)` \| (.*) \|$", re.MULTILINE)
#: Largest number of counterexamples drawn on a page, one per mechanism.
_PICTURES = 6
_BLUE, _ORANGE, _RED = "#0072b2", "#e69f00", "#c00000"
#: Legend of a panel's marks.
_BEFORE, _AFTER, _LIE, _DUE = "tasks", "after the change", "after a misreport", "due to the user who lacks them"
#: Note on the conditions of claims, which `fairopt.mechanisms._claim` defines.
SCOPE = (
    "Without a condition *yes* holds on every cluster without rates of work that the mechanism accepts: any weights, "
    "zero demands, placement constraints, finite task counts. *No* means that a counterexample is known."
)


def pages(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield the pages of properties: name, title, entry in lists, and text."""
    survey, witnesses = rows(), _witnesses()
    stated = dict(_DEFINED.findall((ROOT / "docs" / "properties.md").read_text(encoding="utf-8")))
    for name in properties.names():
        prop = properties.get(name)
        lines = [
            f"# {name}",
            "",
            f"*Definition*: {stated.get(name, prop.definition)}.",
            "",
            *documented(type(prop)),
            "",
        ]
        lines += ["## Mechanisms", "", *_claimed(name), ""]
        lines += [*_searched(name, survey), "", *_counterexamples(name, witnesses[name], folder)]
        lines += [f"In Python `fairopt.properties.get({name!r})`. [All properties](../properties.md), the search for",
                  "counterexamples and its verification; [proofs](../proofs.md).", ""]  # fmt: skip
        yield name, name, prop.definition, "\n".join(lines)


def documented(kind: type) -> list[str]:
    """Docstring of a class, prepared for Sphinx."""
    return ["```{eval-rst}", f".. autoclass:: {kind.__module__}.{kind.__qualname__}", "   :no-index:", "```"]


def _witnesses() -> defaultdict[str, list[tuple[Path, Witness]]]:
    """Stored counterexamples by property, ordered by the size of the cluster and the length of their text."""
    found = defaultdict(list)
    for path in sorted((ROOT / "docs" / "witnesses").rglob("*.json")):
        one = Witness.load(path)
        found[one.property].append((path, one))
    for some in found.values():
        some.sort(key=lambda of: (of[1].cluster.capacity.size + of[1].cluster.demand.size, len(of[1].sentence)))
    return found


def _claimed(name: str) -> list[str]:
    """Claims of mechanisms about a property, with links to proofs."""
    kinds = sorted(mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower())
    claims = [(f"[{kind.title}](../mechanisms/{kind.name}.md)", one)
              for kind in kinds for one in kind.claims if one.property == name]  # fmt: skip
    return claimed("mechanism", claims) or ["No mechanism claims it or its negation."]


def claimed(of: str, claims: list[tuple[str, Claim]]) -> list[str]:
    """Table of claims with their subjects and conditions; empty without claims."""
    rows = [f"| {of} | holds | condition | source |", "|---|---|---|---|"]
    for link, one in claims:
        ends = [f"{key} = {interval(value)}" for key, value in one.parameters.items()]
        said = ", ".join([*one.conditions, *ends])
        rows.append(f"| {link} | {'yes' if one.holds else 'no'} | {said} | {proof(one)} |")
    return [*rows, "", SCOPE] if claims else []


def proof(one: Claim) -> str:
    """Source of a claim on the page of a property, with links to the proofs in docs."""
    return sourced(one.source, "../") if one.holds or one.source else "a counterexample"


def _searched(name: str, survey: pd.DataFrame) -> list[str]:
    """Sentence on mechanisms without a counterexample, with numbers of trials."""
    none = survey[(survey["property"] == name) & (survey["answer"] == "none")]
    if none.empty:
        return []
    said = [
        f"{mechanisms.one(each.mechanism)} ({f'{each.conditions}, ' if each.conditions else ''}{each.trials:,})"
        for each in none.itertuples()
    ]
    return [f"Searches found no counterexample of {'; '.join(said)}. In brackets are trials."]


def _counterexamples(name: str, witnesses: list[tuple[Path, Witness]], folder: Path) -> list[str]:
    """Counterexamples, one per mechanism, the smallest ones with pictures."""
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
             "user who lacks them (diamond). The smallest of each mechanism that searches found:", ""]  # fmt: skip
    for path, one in shown:
        link = path.relative_to(ROOT / "docs").as_posix()
        of = f"; {one.selection}" if one.selection else ""
        lines.append(f"- [{one.mechanism}](../{link}), verified by {one.route}: {one.sentence}{of}.")
    return [*lines, ""]


def _panel(axes: Axes, one: Witness) -> None:
    """Chart of users' tasks before and after a change, with a diamond at the tasks due to users who lack them.

    The cluster and its change are printed below.
    """
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
    # Lines are not broken inside rows of numbers.
    lines = [re.sub(r"(?<=\d), (?=\d)", ",\u00a0", line) for line in described(*one.instance)]
    axes.set_xlabel("\n".join(fill(line, 50) for line in lines), fontsize=8)
    axes.set_xlim(-0.6, len(users) - 0.4)
    axes.margins(y=0.12)


#: Function that links a proof by its source, or a counterexample by the name of its file.
Link = Callable[[str, str], str]


class Answer(NamedTuple):
    """Answer on a mechanism and a property for clusters of one kind."""

    clusters: str  # names of conditions, or `all`
    known: str  # `proved`, `counterexample`, `none`, `nothing`
    text: str

    @property
    def sentence(self) -> str:
        """Text, preceded by the kind of clusters unless it covers all."""
        return self.text if self.clusters == "all" else f"{self.clusters}: {self.text}"


def answers(mechanism: Mechanism, name: str, rows: pd.DataFrame, link: Link) -> list[Answer]:
    """Answers on all clusters, and on special ones if they differ.

    `rows` are those of the survey on the mechanism and the property (`conditions`, `answer`, ...).
    """
    claims = [one for one in mechanism.claims if one.property == name and one.holds and one.about(mechanism)]
    searched = {row["conditions"]: row for row in rows[::-1].to_dict("records")}  # the first row of each condition
    found: list[Answer] = []
    for conditions in dict.fromkeys((*rows["conditions"], *(", ".join(claim.conditions) for claim in claims))):
        row, which = searched.get(conditions, {}), conditions or "all"
        proof = [claim for claim in claims if {*claim.conditions} <= {*conditions.split(", ")}]
        if row.get("file"):
            loss = f"{float(row['violation']):.3f}".replace("0.", ".", 1)
            other = f" (none in {row['trials']})" if row["answer"] == "none" else ""
            found.append(Answer(which, "counterexample", link(f"no: {loss}", str(row["file"])) + other))
        elif proof:
            trials = f", {row['trials']} trials" if row else ""
            found.append(Answer(which, "proved", link("proved", proof[0].source) + trials))
        elif row.get("trials"):
            doubts = f" ({row['doubted']:.2g} not verified)" if row["doubted"] > 0 else ""
            found.append(Answer(which, "none", f"none in {row['trials']}{doubts}"))
    first = next((each for each in found if each.clusters == "all"), Answer("all", "nothing", ""))
    return [first, *(each for each in found if each.clusters != "all" and each.known != first.known)]


def plain(text: str, to: str) -> str:
    """Return the text without a link."""
    return text


def matrix(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Table of properties by mechanisms, where a cell has the answer on all clusters, and on special ones.

    Parameters
    ----------
    rows : DataFrame
        Rows of docs/survey.csv.
    link : callable
        Links a proof, `link("proved", source)`, or a counterexample, `link(text, file)`. Default: no links.
    """
    rows = rows.fillna({"conditions": "", "file": ""})
    table: dict[str, dict[str, str]] = {}
    for (written, name), some in rows.groupby(["mechanism", "property"], sort=False):
        said = "; ".join(each.sentence for each in answers(mechanisms.one(written), str(name), some, link))
        table.setdefault(str(mechanisms.one(written)), {})[str(name)] = said
    return pd.DataFrame(table).fillna("").rename_axis("property").sort_index()


TABLE = ROOT / "docs" / "survey.csv"
#: Number of mechanisms per table.
_BESIDE = 8


def rows() -> pd.DataFrame:
    """Stored survey of properties."""
    return pd.read_csv(TABLE).fillna({"conditions": "", "file": "", "meets": "", "route": ""})


def link(text: str, to: str) -> str:
    """Link of docs/properties-table.md to a proof, by its source, or to a counterexample."""
    if to.endswith(".json"):
        return f"[{text}](witnesses/{to.removeprefix('../') if to.startswith('../') else f'found/{to}'})"
    proof = re.search(r"docs/proofs\.md, ([A-Z])", to)
    return f"[{text}](proofs.md#proof-{proof[1].lower()})" if proof else f"{text} ({to})"


def interval(ends: tuple[float, float] | None) -> str:
    """Range of a parameter that a claim covers."""
    return "none" if ends is None else f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


def survey() -> str:
    """Tables of properties by mechanisms, a few mechanisms each; a counterexample is shown by its violation."""
    brief = {
        r",? (in )?[\d,]+( trials)?(?=;|$| \()": "",
        r"\[no: ": "[",
        r"^none( in \d+)?; ": "",
        r" \(none in \d+\)": "",
    }
    frame = matrix(rows(), link).replace(brief, regex=True)
    names = sorted(frame.columns, key=_by_number)
    parts = [frame[names[k : k + _BESIDE]] for k in range(0, len(names), _BESIDE)]
    return "\n\n".join(str(part[part.ne("").any(axis=1)].to_markdown()) for part in parts)


def _by_number(name: str) -> str:
    """Sort key by which alpha = 16 follows alpha = 2."""
    return re.sub(r"[\d.]+", lambda found: f"{float(found[0]):08.2f}", name.lower())


def papers() -> str:
    """Statements of papers that differ from the results here, with reasons."""
    return str(compared(rows(), link).query("why != ''").to_markdown(index=False))


#: Headings of answers, in this order.
_KNOWN = {"proved": "proved", "counterexample": "refuted", "none": "unknown"}


def known(written: str, to: str = "") -> list[str]:
    """Properties of a mechanism by its name in the survey: proved, refuted, and unknown ones, one item each.

    Proved ones have their source, and refuted ones link to the counterexample; conditions are in brackets. `to` is the
    path from the page to docs/.
    """
    every, mechanism = rows(), mechanisms.one(written)
    found: dict[str, dict[str, list[str]]] = {one: {} for one in _KNOWN}
    for name, some in every[every["mechanism"] == written].groupby("property"):
        for one in answers(mechanism, str(name), some, lambda text, to: to):
            if one.known in _KNOWN:
                of = "" if one.clusters == "all" else f" ({one.clusters})"
                source = sourced(re.sub(r", \d+ trials$", "", one.text), to) if one.known == "proved" else ""
                file = one.text.partition(" ")[0] if one.known == "counterexample" else ""
                said = link(str(name), file).replace("](", f"]({to}") if file else str(name)
                found[one.known].setdefault(source, []).append(f"{said}{of}")
    lines = []
    for one, groups in found.items():
        parts = [", ".join(each) + f" by {source}" * bool(source) for source, each in groups.items()]
        lines += [f"*{_KNOWN[one]}*: {'; '.join(parts)}"] if parts else []
    return lines


def sourced(source: str, to: str) -> str:
    """Source of a claim, with links to the proofs in docs; `to` is the path from the page to docs/."""
    return re.sub(
        r"docs/proofs\.md, ([A-Z])\b",
        lambda found: f"[proof {found[1]}]({to}proofs.md#proof-{found[1].lower()})",
        source,
    ).replace("; ", ", ")


def budget() -> str:
    """Sentences on the effort of the survey."""
    made = rows()
    made = made[made["trials"] > 0]
    none = made[made["answer"] == "none"]
    names = ("fairopt", "python", "numpy", "numba", "scipy")
    versions = ", ".join(f"{name} {made[name].iloc[0]}" for name in names)
    said = [
        f"{len(made)} searches, {made['trials'].sum():,} trials, {made['seconds'].sum() / 3600:.2f} CPU hours.",
        f"{len(made) - len(none)} found a counterexample; {len(none)} found none in {none['trials'].min():,} to",
        f"{none['trials'].max():,} trials. Seed {made['seed'].iloc[0]}; {versions}.",
    ]
    return "\n".join(wrap(" ".join(said), 120, break_on_hyphens=False))


#: All statements of papers on properties, with reasons for differences. The body of DRF's table 2 is missing in the
#: available text: negative entries are theorems 1 to 6, and the others are from memory.
SAID = ROOT / "docs" / "survey-papers.csv"


def compared(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Statements of papers and known results: `paper`, `where`, `mechanism`, `property`, `says`, `ours`, `why`.

    `rows` are those of docs/survey.csv. `why` explains a difference, and is empty without one.
    """
    rows, found = rows.fillna({"conditions": "", "file": ""}), []
    for each in pd.read_csv(SAID).fillna({"note": ""}).itertuples():
        some = rows[(rows["mechanism"] == each.mechanism) & (rows["property"] == each.property)]
        known = answers(mechanisms.one(each.mechanism), each.property, some, link)
        texts = [part.sentence for part in known if part.text]
        differs = known[0].known != "nothing" and (known[0].known == "counterexample") == (each.says == "yes")
        found.append(
            {
                "paper": f"{each.paper}, {each.where}",
                "mechanism": str(mechanisms.one(each.mechanism)),
                "property": each.property,
                "says": each.says,
                "ours": "; ".join(texts) or "not searched",
                "why": (each.note or "UNEXPLAINED") if differs else "",
            }
        )
    return pd.DataFrame(found)
