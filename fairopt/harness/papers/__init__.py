"""The source papers as data: their worked examples as clusters, and their claims, checked.

    from fairopt import papers

    papers.instance("pf-fig1")     # a Cluster
    papers.check()                 # a table: every claim, what is printed, ours, what is right, the verdict

One table per paper, `data/NAME.toml`, and functions of a paper in `drf`, `pf`, and
`counterexamples`, of small instances of our own. `pf_measured` is what PF says of time and convergence, judged by
measurements that come with the package. Items are numbered in the order in which they were collected from the papers.

A table has numbers as they are, fractions as text such as "45/11". An `[[instance]]` has the arguments of a `Cluster`,
perhaps with a `count` of servers for every row of capacity, and what they are `called`; or `build`, a function of the
paper's module. A `[[group]]` is an item: where the paper has it, of which instance, and its `claims`.
Of these `ours` is a reading and its arguments, a function of the paper's module or of `_ours`; `correct` is right, or
`derived` names the function that computes it; `printed` is what the paper prints, with `value` and `decimals` where
these are not `correct`, exactly; `smooth` ones are compared within 1e-5. With `alphas` a claim is made for each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property, partial
from importlib import import_module, resources
from itertools import chain
from typing import Any

import numpy as np

from ...base import clock
from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import meant
from ...base.progress import tqdm
from ...model.cluster import Cluster
from . import _ours, pf_measured
from ._claim import (
    MEASURED_OTHERWISE,
    NOT_REPRODUCED,
    PAPER_IN_ERROR,
    REPRODUCED,
    Claim,
    Instance,
    Printed,
    Value,
    show,
)
from .pf_measured import Measurements, measurements

__all__ = [
    "MEASURED_OTHERWISE",
    "NOT_REPRODUCED",
    "PAPER_IN_ERROR",
    "REPRODUCED",
    "Claim",
    "Instance",
    "Measurements",
    "Printed",
    "check",
    "claims",
    "instance",
    "instances",
    "measurements",
    "show",
]


#: For finite alpha a gap g vouches for tasks to about sqrt(2 g): `_ours` asks for g = 1e-11.
_RTOL, _SMOOTH = 1e-6, 1e-5
_FRACTION = re.compile(r"-?\d+/\d+")


class Paper:
    """A paper of `data/NAME.toml`: its key, how it is cited, what it is about, its instances and claims."""

    def __init__(self, name: str) -> None:
        text = resources.files(__package__).joinpath("data", f"{name}.toml").read_text(encoding="utf-8")
        self._name, self._said = name, tomllib.loads(text)
        self.key, self.citation, self.about = (str(self._said[key]) for key in ("paper", "citation", "about"))

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Their clusters are built when they are asked for."""
        return tuple(_instance(self._name, {"paper": self.key} | one) for one in self._said["instance"])

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """In the order of the file; what is derived is computed now."""
        groups = [(group, one) for group in self._said["group"] for one in group["claims"]]
        return tuple(claim for group, one in groups for claim in _claims(self._name, self.key, group | one))


def _instance(of: str, said: dict[str, Any]) -> Instance:
    name, paper, where, about = (said.pop(key) for key in ("name", "paper", "where", "description"))
    build = partial(_cluster, said) if "build" not in said else lambda: _function(of, said["build"])()
    return Instance(name, paper, where, about, build)


def _cluster(said: Mapping[str, Any]) -> Cluster:
    given = dict(said)
    if "count" in given:
        given["capacity"] = np.repeat(given["capacity"], given.pop("count"), axis=0)
        kind = given.pop("called", "server")
        given["servers"] = [f"{kind}{k + 1}" for k in range(len(given["capacity"]))]
    return Cluster(**given)


def _claims(of: str, paper: str, said: Mapping[str, Any]) -> Iterator[Claim]:
    for alpha in said.get("alphas", (None,)):
        at = {} if alpha is None else {"alpha": alpha}
        reading, *arguments = (part.format(**at) if isinstance(part, str) else part for part in said["ours"])
        derived = said.get("derived")
        correct = _function(of, derived[0])(*at.values()) if derived else _value(said["correct"])
        printed = None
        if "printed" in said:
            value = _value(said["value"]) if "value" in said else None
            printed = Printed(said["printed"], value, said.get("decimals"))
        yield Claim(
            said["item"],
            said.get("paper", paper),
            said["where"],
            said["instance"],
            said["statement"].format(**at),
            partial(_read, of, reading, tuple(map(_value, arguments))),
            correct,
            printed,
            said.get("note", ""),
            _SMOOTH if said.get("smooth") else _RTOL,
        )


def _read(of: str, reading: str, arguments: tuple[Any, ...], cluster: Cluster) -> object:
    return _function(of, reading)(cluster, *arguments)


def _function(of: str, name: str) -> Callable[..., Any]:
    """Find a function in the paper's module, else in `_ours`."""
    own = import_module(f".{of}", __package__) if of in ("drf", "pf", "counterexamples") else _ours
    found: Callable[..., Any] = getattr(own, name, None) or getattr(_ours, name)
    return found


def _value(said: Any) -> Value:
    if isinstance(said, list):
        return tuple(map(_value, said))
    return Fraction(said) if isinstance(said, str) and _FRACTION.fullmatch(said) else said


#: In the order of their claims.
_PAPERS = tuple(map(Paper, ("lec", "drf", "drfh", "mqdrf", "pf", "counterexamples")))
#: How papers are cited, and what they are, by the keys of their claims.
CITATIONS = {paper.key: paper.citation for paper in _PAPERS}
ABOUT = {paper.key: paper.about for paper in _PAPERS}
COLUMNS = ("item", "paper", "where", "instance", "claim", "printed", "ours", "correct", "verdict", "seconds", "note")


@cache
def _by_name() -> dict[str, Instance]:
    return {one.name: one for paper in _PAPERS for one in paper.instances}


def instances() -> dict[str, Instance]:
    """Every instance by its name: paper, section and one line about it; `build()` makes its cluster."""
    return dict(_by_name())


def instance(name: str) -> Cluster:
    """The cluster of a worked example, by its name.

    Raises
    ------
    DataError
        There is no instance of this name; the message lists the names.
    """
    known = _by_name()
    if name not in known:
        raise DataError(f"there is no instance {name!r}; known: {', '.join(known)}{meant(name.lower(), known)}")
    return known[name].build()


def claims(paper: str | None = None, item: int | None = None) -> tuple[Claim, ...]:
    """Every claim, or those of one paper or one item, by item.

    Parameters
    ----------
    paper : its short name, such as `DRF`; None for all
    item : its number; None for all

    Raises
    ------
    DataError
        There is no such claim; the message lists papers and items.
    """
    every = sorted(chain(pf_measured.claims(), *(paper.claims for paper in _PAPERS)), key=lambda claim: claim.item)
    found = tuple(claim for claim in every if paper in (None, claim.paper) and item in (None, claim.item))
    if not found:
        papers = ", ".join(dict.fromkeys(claim.paper for claim in every))
        items = ", ".join(str(number) for number in dict.fromkeys(claim.item for claim in every))
        raise DataError(f"there is no claim with paper={paper!r}, item={item!r}; papers: {papers}; items: {items}")
    return found


#: All of them: `check` has an argument that is called like it.
_every = claims


def check(claims: Iterable[Claim] | None = None, progress: bool = False) -> pd.DataFrame:
    """Compute every claim through the mechanisms and compare with what is right and with what the paper prints.

    Parameters
    ----------
    claims : claims, optional
        Default: all of `fairopt.papers.claims()`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        A row per claim: item, paper, where, instance, claim, printed, ours, correct, verdict, seconds, note. The
        verdict is `reproduced`, `paper in error, correct value ...`, `measured otherwise`, or `NOT REPRODUCED`, with
        the error if any.
    """
    chosen = _every() if claims is None else tuple(claims)
    rows = [_row(claim) for claim in tqdm(chosen, unit="claim", disable=not progress)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(claim: Claim) -> tuple[object, ...]:
    """In the order of `COLUMNS`."""
    start = clock.cpu()
    try:
        subject = instance(claim.instance) if claim.numbers is None else measurements()
        value = claim.ours(subject)
        ours, verdict = show(value), claim.verdict(value)
    except FairoptError as error:
        ours, verdict = "", f"{NOT_REPRODUCED}: {type(error).__name__}: {error}"
    about = claim.item, claim.paper, claim.where, claim.instance, claim.statement
    printed = claim.printed.text if claim.printed else "derived here"
    seconds, note = clock.cpu() - start, claim.note if claim.numbers is None else claim.numbers(measurements())
    return (*about, printed, ours, show(claim.correct), verdict, seconds, note)
