"""The table of mechanisms and properties: what is proved, what has a counterexample, and where searches found none."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .._libraries import pd
from ..mechanisms import Mechanism, one
from ..mechanisms._claim import Claim

#: How a text refers to a proof, by its source, and to a counterexample, by the name of its file.
Link = Callable[[str, str], str]


class Answer(NamedTuple):
    """What is known of a mechanism and a property among clusters of some kind."""

    clusters: str  # names of conditions, or `all`
    known: str  # `proved`, `counterexample`, `none`, `nothing`
    text: str

    @property
    def sentence(self) -> str:
        """The text, after the kind of clusters if not all are meant."""
        return self.text if self.clusters == "all" else f"{self.clusters}: {self.text}"


def answers(mechanism: Mechanism, name: str, rows: pd.DataFrame, link: Link) -> list[Answer]:
    """Of all clusters first; of others only where that differs.

    `rows` are those of `survey` about the mechanism and the property, as a frame (`conditions`, `answer`, ...).
    """
    claims = [claim for claim in mechanism.claims if claim.property == name and claim.about(mechanism)]
    found: list[Answer] = []
    for conditions in dict.fromkeys(
        (*rows["conditions"], *(", ".join(claim.conditions) for claim in claims if claim.holds))
    ):
        row = rows[rows["conditions"] == conditions]
        proof = [claim for claim in claims if claim.holds and _within(conditions, claim)]
        if len(row) and row["file"].iloc[0]:
            other = f" (none in {row['trials'].iloc[0]})" if row["answer"].iloc[0] == "none" else ""
            found.append(Answer(conditions or "all", "counterexample", _violation(row.iloc[0], link) + other))
        elif proof:
            trials = f", {row['trials'].iloc[0]} trials" if len(row) else ""
            found.append(Answer(conditions or "all", "proved", f"{link('proved', proof[0].source)}{trials}"))
        elif len(row) and row["trials"].iloc[0]:
            doubt = row["doubted"].iloc[0]
            doubts = f" ({doubt:.2g} not verified)" if doubt > 0 else ""
            found.append(Answer(conditions or "all", "none", f"none in {row['trials'].iloc[0]}{doubts}"))
    first = next((each for each in found if each.clusters == "all"), Answer("all", "nothing", ""))
    return [first, *(each for each in found if each.clusters != "all" and each.known != first.known)]


def _within(conditions: str, claim: Claim) -> bool:
    return set(claim.conditions) <= set(conditions.split(", "))


def _violation(row: pd.Series, link: Link) -> str:
    return link(f"no: {float(row['violation']):.3f}".replace("0.", ".", 1), str(row["file"]))


def plain(text: str, to: str) -> str:
    """No links."""
    return text


def matrix(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Properties by mechanisms; a cell is what is known of all clusters, and of others after their names.

    Parameters
    ----------
    rows : as of `fairopt.properties.survey`, as a frame: `fairopt.properties.frame`
    link : how a cell refers to a proof, `link("proved", source)`, and to a counterexample, `link(text, file)`; by
        default without links

    Raises
    ------
    DataError
        A row names a mechanism that there is not.
    KeyError
        `rows` lacks a column.
    """
    rows = rows.fillna({"conditions": "", "file": ""})
    table: dict[str, dict[str, str]] = {}
    for (written, name), some in rows.groupby(["mechanism", "property"], sort=False):
        mechanism = one(written)
        said = answers(mechanism, str(name), some, link)
        cell = "; ".join(each.sentence for each in said)
        table.setdefault(str(mechanism), {})[str(name)] = cell
    return pd.DataFrame(table).fillna("").rename_axis("property").sort_index()
