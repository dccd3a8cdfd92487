"""Tables of docs/properties-table.md, from docs/survey.csv and what mechanisms and papers state."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap

import pandas as pd

from fairopt import properties
from fairopt.mechanisms import one
from fairopt.properties._table import Link, answers, plain

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "survey.csv"
#: Mechanisms side by side.
_BESIDE = 4


def rows() -> pd.DataFrame:
    """The stored survey."""
    return pd.read_csv(TABLE).fillna({"conditions": "", "file": "", "meets": "", "route": ""})


def link(text: str, to: str) -> str:
    """A link of docs/properties-table.md to a proof, by its source, or to a counterexample."""
    if to.endswith(".json"):
        return f"[{text}](witnesses/{to.removeprefix('../') if to.startswith('../') else f'found/{to}'})"
    proof = re.search(r"docs/proofs\.md, ([A-Z])", to)
    return f"[{text}](proofs.md#proof-{proof[1].lower()})" if proof else f"{text} ({to})"


def interval(ends: tuple[float, float] | None) -> str:
    """The values of a parameter that a claim is about."""
    return "none" if ends is None else f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


def survey() -> str:
    """Properties by mechanisms, a few mechanisms at a time."""
    frame = properties.matrix(rows(), link).replace(r",? (in )?[\d,]+( trials)?(?=;|$| \()", "", regex=True)
    names = sorted(frame.columns, key=_by_number)
    parts = [frame[names[k : k + _BESIDE]] for k in range(0, len(names), _BESIDE)]
    return "\n\n".join(str(part[part.ne("").any(axis=1)].to_markdown()) for part in parts)


def _by_number(name: str) -> str:
    """A name by which alpha = 16 comes after alpha = 2."""
    return re.sub(r"[\d.]+", lambda found: f"{float(found[0]):08.2f}", name.lower())


def papers() -> str:
    """What papers say otherwise, and why ours differs."""
    return str(compared(rows(), link).query("why != ''").to_markdown(index=False))


def budget() -> str:
    """What was spent, in a few sentences."""
    made = rows()
    made = made[made["trials"] > 0]
    none = made[made["answer"] == "none"]
    most = none["trials"].max()
    full, least = (none["trials"] == most).sum(), none["trials"].min()
    slow = made.groupby("mechanism")["seconds"].sum()
    names = ("fairopt", "python", "numpy", "numba", "scipy")
    versions = ", ".join(f"{name} {made[name].iloc[0]}" for name in names)
    said = [
        f"{len(made)} searches, {made['trials'].sum():,} trials, {made['seconds'].sum() / 3600:.2f} CPU hours;",
        f"{len(made) - len(none)} of them found a counterexample. Of {len(none)} that found none {full} made {most:,}",
        f"trials{f', the others {least:,} or more' if full < len(none) else ''}. The longest mechanism took",
        f"{slow.max():.0f} CPU seconds ({one(str(slow.idxmax()))}), the median one {slow.median():.0f}.",
        f"Seed {made['seed'].iloc[0]}; {versions}.",
    ]
    return "\n".join(wrap(" ".join(said), 120, break_on_hyphens=False))


#: Everything that papers say, with why ours differs where it does. DRF's table 2 has no body in the available text:
#: what is denied is theorems 1 to 6, the rest from memory.
SAID = ROOT / "docs" / "survey-papers.csv"


def compared(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Statements beside what is known here: `paper`, `where`, `mechanism`, `property`, `says`, `ours`, `why`.

    `rows` as of `fairopt.properties.frame`. `why` explains what differs; it is empty where nothing does.
    """
    rows, found = rows.fillna({"conditions": "", "file": ""}), []
    for each in pd.read_csv(SAID).fillna({"note": ""}).itertuples():
        some = rows[(rows["mechanism"] == each.mechanism) & (rows["property"] == each.property)]
        known = answers(one(each.mechanism), each.property, some, link)
        texts = [part.sentence for part in known if part.text]
        differs = known[0].known != "nothing" and (known[0].known == "counterexample") == (each.says == "yes")
        found.append(
            {
                "paper": f"{each.paper}, {each.where}",
                "mechanism": str(one(each.mechanism)),
                "property": each.property,
                "says": each.says,
                "ours": "; ".join(texts) or "not searched",
                "why": (each.note or "UNEXPLAINED") if differs else "",
            }
        )
    return pd.DataFrame(found)
