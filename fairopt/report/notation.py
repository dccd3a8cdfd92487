"""The field's notation for LaTeX: words for columns, names of mechanisms, letters in math; how wide it is in print."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

from ..mechanisms import REGISTRY
from ..scheduling.policies import REGISTRY as POLICIES

#: Columns whose words are not their names with spaces.
HEADS = {
    "min_share": "smallest share", "max_share": "largest share", "jain": "Jain's index",
    "tol": "tolerance", "simulate": "seconds to simulate",
    "mean_response": "mean response (s)", "median_response": "median response (s)", "mean_wait": "mean wait (s)",
    "printed": "in the paper", "there": "games there", "level": "residual", "missed": "tolerance missed",
    "item": "no.", "cpu": "CPU", "gpu": "GPU", "ram": "RAM",
}  # fmt: skip
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
       "α": r"$\alpha$", "×": r"$\times$", "∞": r"$\infty$", "<": r"\textless{}",
       ">": r"\textgreater{}", "|": r"\textbar{}"}
)  # fmt: skip
#: How it is simulated, a name of ours, its parameters, its mark, and what is said of it.
_LABEL = re.compile(
    r"(?:(?P<how>fluid|dedicated):)?(?P<name>[a-zA-Z-]+)(?:\((?P<with>\w+=.*?)\))?(?P<mark>\*?)(?P<said>: .*)?"
)
#: Letters with what they are equal to, letters with an index, and users, resources and demands by number.
_MATH = re.compile(
    r"(?<![\w\\-])(?P<letter>alpha|beta|gamma|phi|mu|DK|sum|max|min|[xydacuwrmsnNKMU])"
    r"(?P<index>\\_[A-Za-z0-9]{1,2}|(?<=[drxU])\d)?"
    r"(?P<equal>\s?=\s?(?:-?[\d.]+(?:e-?\d+)?|inf|\([\d., ]+\))(?![\w/]))?(?![\w\\])"
)
_ALONE = {"alpha", "beta", "gamma", "phi", "mu"}
_MACRO = {*_ALONE, "sum", "max", "min"}
#: Widths of Computer Modern at 8 points, in thousandths of an em, from the space on.
_CMR8 = """333 278 500 833 500 833 778 278 389 389 500 778 278 333 278 500 500 500 500 500 500 500 500 500 500 500 278
278 778 778 778 472 778 749 708 722 763 680 652 785 749 360 513 777 625 916 749 778 680 778 736 556 722 749 749 1027
749 749 611 278 500 278 500 360 500 500 556 444 556 444 306 500 556 278 306 528 278 833 556 500 556 528 390 394
389 556 528 722 528 528 444 500 278 500 500"""
_WIDTHS = dict(zip(map(chr, range(32, 127)), map(int, _CMR8.split()), strict=True))
#: Of signs without the spaces around them, which they have of their own; others take 0.6.
_MACROS = {"pm": 555, "cdot": 55, "infty": 1000, "allowbreak": 0, "sum": 1300, "max": 1700, "min": 1500}
_TOKEN = re.compile(r"\\(?P<macro>[a-zA-Z]+)(?:\{\})?|\\?(?P<plain>.)")


def typeset(text: object) -> str:
    """Text for LaTeX: mechanisms and policies as papers call them, letters of formulas in math.

    `alphapf-vds(alpha=3.0)` is :math:`\\alpha`PF-VDS (:math:`\\alpha = 3`), and `x_n`, `d4`, `alpha = 2` are formulas.
    """
    said = re.sub("(?<=[a-z]{2})_(?=[a-z]{2})", " ", str(text))  # of identifiers
    label = _LABEL.fullmatch(said)
    if label is not None and (title := _titles().get(label["name"])):
        more = re.sub(r"=True\b|\.0\b", "", label["with"] or "").replace("=", " = ")
        how = f"{label['how']} " if label["how"] else ""
        said = f"{how}{title}{f' ({more})' if more else ''}{label['mark']}{label['said'] or ''}"
    said = re.sub(r"(?<=\w)\((?=\w+ ?=)", " (", said)  # a label in the middle of a text
    return re.sub(
        "alphapf-vds",
        r"$\\alpha$PF-VDS",
        _MATH.sub(_formula, " ".join(said.split("\n")).translate(_SPECIAL)),
        flags=re.IGNORECASE,
    )


def _formula(found: re.Match[str]) -> str:
    letter, index, equal = found["letter"], found["index"], found["equal"]
    if not (index or equal or letter in _ALONE):
        return found[0]  # a word of one letter
    value = (equal or "").strip(" =")
    if value and value[0] != "(":
        value = power(float(value)).strip("$")
    below = "_{" + index.strip("\\_") + "}" if index else ""
    return f"${chr(92) * (letter in _MACRO)}{letter}{below}{' = ' * bool(value)}{value}$"


@cache
def _titles() -> dict[str, str]:
    """Titles of mechanisms and policies, by name and by title."""
    kinds: list[Any] = [*POLICIES.items(), *REGISTRY.items()]
    return {key: kind.title for name, kind in kinds for key in (name, kind.title)}


def words(name: str) -> str:
    """The head of a column, for LaTeX."""
    return "$n$" if name == "n" else typeset(HEADS.get(name, name.replace("_", " ")))


def power(value: float, digits: int = 12) -> str:
    """A number with at most so many significant digits; below 0.001 as a power of ten."""
    if not math.isfinite(value):
        return "" if math.isnan(value) else "$\\infty$"
    plain = f"{value:.{digits}g}"
    if "e" not in plain and (value == 0 or abs(value) >= 1e-3):
        return plain
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"${mantissa} \\cdot 10^{{{int(exponent)}}}$".replace("$1 \\cdot ", "$")


@cache
def width(text: str) -> float:
    """Ems that a text for LaTeX takes in Computer Modern, at 8 points; exponents as wide as the rest."""
    total = 0.34 * text.count("^{-")  # a minus is wider than a hyphen
    for token in _TOKEN.finditer(text):
        if macro := token["macro"]:
            total += _MACROS.get(macro, 600) / 1000
        elif token["plain"] not in "{}$^_" or token[0].startswith("\\"):
            total += _WIDTHS.get(token["plain"], 800) / 1000
    return total
