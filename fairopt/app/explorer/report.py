"""Report on the users of a cluster for its operators, on a terminal, as Markdown, or as a page with the explorer.

The content is computed in `fairopt.app.explorer.standing`; this module formats it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...harness.report.export import escape, for_people, markdown
from . import page as pages
from .standing import MORE, Standing

#: Largest number of rows of a table; users with the largest shortfalls come first.
_ROWS = 40
#: Relative change of tasks up to which a user counts as unaffected.
_KEPT = 0.01

#: Glossary of the report.
GLOSSARY = {
    "user": "pods or jobs of one namespace or account that ask for the same and may run on the same nodes; "
    "in other sources whatever the source calls a user",
    "running, wanted": "tasks (pods, jobs) that run now, and those that run or wait; inf where there is no limit",
    "weight": "how much a user counts: of two that compete for the same, one of weight 2 gets twice as much",
    "entitled": "the tasks that a mechanism gives if all nodes are allocated anew; fractions are averages over time",
    "satisfaction": "running tasks divided by entitled ones, at most 1",
    "below": "tasks that a user is entitled to and does not run, where that is a whole task or more",
    "could give": "idle room, and users above their entitlement by so many tasks on nodes that the user may use",
    "distance": "sum of dominant shares that would have to change hands until every user has its entitlement",
    "complaints": "pairs of users, one below and one above its entitlement, on a node that the first may use",
    "(want more)": "among users with fewer tasks than they want; 'all met' if there are none",
    "share": "the largest part of any resource of the whole cluster that a group takes (dominant share)",
    "limited by": "why a user runs no more now: the resource that its nodes lack, or that all its tasks run",
    "DRFH": "equal dominant shares, measured on the whole cluster",
    "TSF": "equal parts of what each user could run if the cluster were its own and placement free",
    "PS-DSF": "fair on every server by itself: parts of what each user could run on that server",
    "alphaPF-VDS": "between the largest sum of shares (alpha 0) and PS-DSF (infinite); 1 is proportional fairness",
    "used up on": "nodes on which the entitled tasks use all of a resource",
    "tasks more": f"tasks that {MORE:.0%} more of a resource, on every node that has it, would add, from another solve",
    "a little more": "tasks that 1% more of a resource on all nodes of a kind would add, by derivatives or a solve",
    "Jain's index": "1 where all weighted shares are equal, 1/n where one of n users has everything",
}


@dataclass(frozen=True)
class Section:
    """Section of a report: a heading, a table, and a note."""

    title: str
    table: pd.DataFrame
    note: str = ""


def sections(found: Standing) -> Iterator[Section]:
    """Yield the sections of a report in order."""
    users = found.users.drop(columns="group")
    if found.judged is not None:  # users are sorted by shortfall in dominant shares
        users = users.iloc[np.argsort(-found.judged.lacks, kind="stable")]
    yield _cut("Users: what they run, want and are entitled to", users, "user", "users")
    yield Section("The states in numbers", _parts(found.measures))
    yield _cut("Namespaces and accounts", _parts(found.groups), "group", "groups")
    yield Section("Resources: which are scarce, and who would gain from more", _parts(found.resources))
    yield _cut("Where a little more adds most tasks", found.margins, "kind", "kinds", found.margins_note)
    if found.changes is not None:
        moved = found.changes[found.changes["change"].abs() > _KEPT * found.changes["entitled"].clip(lower=1e-9)]
        still = len(found.changes) - len(moved)
        yield _cut(f"What if {', '.join(found.requested)}", moved.drop(columns="group"), "user", "users",
                   f"{still} users keep what they had, within {_KEPT:.0%}.")  # fmt: skip


def _parts(table: pd.DataFrame) -> pd.DataFrame:
    """Format fractions as percentages."""
    names = [name for name in ("used", "used now", "utilization", "share now", "share entitled") if name in table]
    return table.assign(**{name: [f"{part:.1%}" for part in table[name]] for name in names})


def _cut(title: str, table: pd.DataFrame, one: str, several: str, note: str = "") -> Section:
    left = len(table) - _ROWS
    more = f"{left} more {one if left == 1 else several}, not shown." if left > 0 else ""
    return Section(title, table.head(_ROWS), " ".join(filter(None, (more, note))))


def _head(found: Standing) -> list[str]:
    session = found.session
    shared = session.state.edits.get("weights") == "shared"
    users, servers, _ = session.cluster.shape
    weights = (
        "weights are those of queues, among siblings" if session.queues(session.state) is not None
        else "weights of groups are shared in equal parts among their users" if shared
        else "weights count for each user by itself"
    )  # fmt: skip
    return [
        *found.verdict,
        f"{users:,} user{'s' * (users > 1)} on {servers:,} node{'s' * (servers > 1)}; {weights}.",
        *found.notes,
    ]


def _blocks(found: Standing, forms: Mapping[str, Callable[[Any], str]]) -> list[str]:
    """Format everything except the entries of the glossary; `forms` formats a `title`, `line`, `section` or `table`."""
    said: list[tuple[str, Any]] = [("title", found.session.source), *(("line", line) for line in _head(found))]
    for section in sections(found):
        said += [("section", section.title), ("table", section.table) if len(section.table) else ("line", "(none)")]
        said += [("line", section.note)] if section.note else []
    return [forms[kind](one) for kind, one in [*said, ("section", "Words")]]


def text(found: Standing, table: Callable[[pd.DataFrame], str]) -> str:
    """Report as plain text; `table` formats a frame. Texts that are too wide for a column follow below the table."""

    def shown(frame: pd.DataFrame) -> str:
        longer = [name for name in ("limited by", "could give") if name in frame]
        rows = frame[[frame.columns[0], *longer]].itertuples(index=False) if longer else ()
        said = [f"  {user}: " + "; ".join(f"{name} {text}" for name, text in zip(longer, texts, strict=True) if text)
                for user, *texts in rows]  # fmt: skip
        return "\n".join([table(frame.drop(columns=longer)), *said])

    parts = _blocks(found, {"title": str, "line": str, "section": "\n{}".format, "table": shown})
    return "\n".join([*parts, *(f"  {word}: {meaning}" for word, meaning in GLOSSARY.items())])


def as_markdown(found: Standing) -> str:
    """Report as Markdown."""
    forms = {"title": lambda line: f"# {escape(line)}", "line": escape,
             "section": lambda line: f"## {escape(line)}", "table": markdown}  # fmt: skip
    words = "\n".join(f"- **{word}**: {meaning}" for word, meaning in GLOSSARY.items())
    return "\n\n".join([*_blocks(found, forms), words]) + "\n"


def as_html(found: Standing, progress: bool = False) -> str:
    """Report as one HTML page that works offline, with the explorer below the tables."""

    def tagged(tag: str) -> Callable[[Any], str]:
        return lambda line: f"<{tag}>{html.escape(line)}</{tag}>"

    def table(frame: pd.DataFrame) -> str:
        drawn = for_people(frame).to_html(index=False, escape=True, border=0)
        return f'<div class="wide" tabindex="0">\n{drawn}\n</div>'

    begin = pages.head(f"{found.session.source}: report", linked=False)
    forms = {"title": tagged("h1"), "line": tagged("p"), "section": tagged("h2"), "table": table}
    words = "".join(tagged("dt")(word) + tagged("dd")(meaning) for word, meaning in GLOSSARY.items())
    parts = [begin, f"<style>\n{_STYLE}</style>", '<div class="report">', *_blocks(found, forms)]
    return "\n".join([*parts, f"<dl>{words}</dl>\n<h2>Explorer</h2></div>", pages.body(found.session, progress)])


_STYLE = """:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0; }
.report { max-width: 1180px; margin: 0 auto; padding: 16px; box-sizing: border-box; }
.report h1 { font-size: 22px; } .report h2 { font-size: 17px; margin: 22px 0 6px; }
.report .wide { overflow-x: auto; }
.report table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
.report td, .report th { padding: 2px 9px; text-align: left; border-bottom: 1px solid #8886; white-space: nowrap; }
.report td:last-child { white-space: normal; }
.report dt { font-weight: 600; } .report dd { margin: 0 0 4px 16px; }
@media (prefers-color-scheme: dark) { body { background: #17191c; color: #ececec; } }
"""
