"""The source papers as data: worked examples as clusters, and claims that are checked by computation.

    from fairopt import papers
    papers.instance("pf-fig1")     # a Cluster
    papers.check()                 # a table: claim, printed value, computed value, correct value, verdict

Each paper has a table `data/NAME.toml`, and so have published examples of `schedulers` and statements on `incentives`;
`drf`, `drfh`, `pf`, and `counterexamples` (small instances of this project) also have a module of functions, and
`gavel`, `pop` and `soroush` share `accelerators`. `pf_measured` has claims of PF on time and convergence, which are
judged by measurements shipped with the package. Items are numbered in the order in which they were collected from the
papers.

Values are numbers, or fractions as text such as "45/11". An `[[instance]]` has the arguments of a `Cluster`,
optionally `count`, the number of servers for each row of `capacity`, and `called`, the beginning of their names; or
`build`, a function of the paper's module and its arguments. A `[[group]]` is an item: its place in the paper, its
instance, and its `claims`. The fields of a claim are:

- `ours`: a function of the paper's module or of `_ours`, and its arguments, which computes the value;
- `then`: what is done with this value, in order: an index selects an entry, a text names a function of `_THEN`;
- `correct`: the correct value, or `derived`: a function that computes it, and its arguments;
- `printed`: the text of the paper, `value`: the printed value if it is not correct, `decimals`: its number of decimals
  if it is rounded;
- `smooth`: true if the values are compared within 1e-5; `alphas`: numbers for each of which the claim is repeated;
- `states`: indices of the statements that the claim decides, 1 to 242 for the statements of the five papers with a
  number or a direction, from 243 on for statements of other sources;
- `assuming`: an assumption without which the printed value is not reproduced.

The claims `[[measured]]` are judged by functions of `pf_measured`.

A `[[judged]]` statement is about simulated or measured results. Its `statistic` has the arguments of
`statistics.compared`, or the `name` of another function of `statistics` and its arguments. The function reads the cells
of the `experiment`; `low` and `high` bound the values that agree. The statement is judged for each combination of the
options in `[assumptions.EXPERIMENT]`, whose entries are `Assumption`s. `Judged` derives the verdict from intervals over
draws, which are shipped in `judged-PAPER.csv`. An experiment `explain_EXPERIMENT` has all combinations, and `fairopt
reproduce` runs some of them.

The table `[statements]` has all other statements by index: place, text, and a verdict that begins with `definition` or
`cannot be judged here:`; or, for a statement that a paper proves, the properties that each mechanism has or has `not`,
which are compared with the table of properties.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np

from ...base import clock, shipped
from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import meant
from ...base.progress import tqdm
from ...model.cluster import Cluster
from . import _judged, _ours, pf_measured
from ._claim import (
    CANNOT,
    DEFINITION,
    DERIVED,
    KINDS,
    MEASURED_OTHERWISE,
    NOT_REPRODUCED,
    PAPER_IN_ERROR,
    PROPERTY,
    REPRODUCED,
    UNDER,
    Claim,
    Instance,
    Printed,
    Value,
    show,
)
from ._judged import Assumption, Judged
from .pf_measured import Measurements, measurements

__all__ = [
    "DERIVED",
    "KINDS",
    "MEASURED_OTHERWISE",
    "NOT_REPRODUCED",
    "PAPER_IN_ERROR",
    "REPRODUCED",
    "Claim",
    "Instance",
    "Judged",
    "Measurements",
    "Printed",
    "check",
    "claims",
    "counts",
    "instance",
    "instances",
    "judged",
    "measurements",
    "show",
    "summary",
]


#: Relative tolerances between computed and correct values: `_RTOL` in general, `_SMOOTH` for finite alpha, where a
#: duality gap g bounds the error of tasks by about sqrt(2 g); `_ours` solves to g = 1e-11.
_RTOL, _SMOOTH = 1e-6, 1e-5
#: Modules that define the functions of a paper, by the name of its table.
_MODULES = {name: name for name in ("drf", "drfh", "pf", "counterexamples")} | dict.fromkeys(
    ("gavel", "pop", "soroush"), "accelerators"
)
_FRACTION = re.compile(r"-?\d+/\d+")


class Paper:
    """Paper of `data/NAME.toml`: key, citation, subject, instances and claims."""

    def __init__(self, name: str) -> None:
        self._name, self._said = name, shipped.content(__package__, f"data/{name}.toml")
        self.key, self.citation, self.about = (str(self._said[key]) for key in ("paper", "citation", "about"))

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Instances, whose clusters are built on demand."""
        return tuple(_instance(self._name, {"paper": self.key} | one) for one in self._said["instance"])

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Claims in the order of the file; derived values are computed at the first access."""
        groups = [(group, one) for group in self._said["group"] for one in group["claims"]]
        found = (claim for group, one in groups for claim in _claims(self._name, self.key, group | one))
        others = self._said.get("statements", {}).items()
        return (
            *found,
            *map(_as_claim, self.judged),
            *(_statement(self.key, int(number), *said) for number, said in others),
        )

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Statements about simulated and measured results."""
        stated = {
            name: tuple(Assumption(option, **one) for option, one in of.items())
            for name, of in self._said.get("assumptions", {}).items()
        }
        return tuple(_judged_statement(self.key, dict(one), stated) for one in self._said.get("judged", ()))


def _instance(of: str, said: dict[str, Any]) -> Instance:
    name, paper, where, about = (said.pop(key) for key in ("name", "paper", "where", "description"))
    return Instance(name, paper, where, about, partial(_cluster, of, said))


def _cluster(of: str, said: Mapping[str, Any]) -> Cluster:
    if "build" in said:
        function, *arguments = said["build"]
        made: Cluster = _function(of, function)(*arguments)
        return made
    given = dict(said)
    if "count" in given:
        given["capacity"] = np.repeat(given["capacity"], given.pop("count"), axis=0)
        kind = given.pop("called", "server")
        given["servers"] = [f"{kind}{k + 1}" for k in range(len(given["capacity"]))]
    return Cluster(**given)


def _statement(paper: str, number: int, where: str, text: str, verdict: str | dict[str, str]) -> Claim:
    """Claim of an entry of `[statements]`, decided by a verdict in words, or by properties of mechanisms."""
    if isinstance(verdict, str):
        correct = verdict.partition(f"{PAPER_IN_ERROR} ")[2]
        return Claim(0, paper, where, "", text, None, correct, Printed(_AS_STATED), states=(number,), agreed=verdict)
    cells = [(mechanism, one) for mechanism, said in verdict.items() for one in said.split(", ")]
    held = tuple(not one.startswith("not ") for _, one in cells)
    ours = partial(_ours.properties, cells=[(mechanism, one.removeprefix("not ")) for mechanism, one in cells])
    about = "; ".join(f"{mechanism}: {said}" for mechanism, said in verdict.items())
    return Claim(0, paper, where, "", text, ours, held, Printed(_AS_STATED), about, states=(number,), agreed=PROPERTY)


def _judged_statement(paper: str, said: dict[str, Any], stated: Mapping[str, tuple[Assumption, ...]]) -> Judged:
    states = tuple(said.pop("states"))
    low, high = float(said.pop("low", -np.inf)), float(said.pop("high", np.inf))
    assumptions = stated.get(said["experiment"], ())
    return Judged(paper=paper, states=states, low=low, high=high, assumptions=assumptions, **said)


def _as_claim(one: Judged) -> Claim:
    """Claim whose verdict follows from the shipped intervals."""
    found = _judged.setups(one)
    printed, note = Printed(one.printed), one.numbers(found)
    return Claim(0, one.paper, one.where, "", one.statement, None, "", printed, note, states=one.states,
                 agreed=one.verdict(found))  # fmt: skip


def judged(paper: str | None = None) -> tuple[Judged, ...]:
    """Return the statements about simulated and measured results, of all papers or of the paper with the given key.

    The result is empty if no such statement of the paper is known.

    >>> import fairopt as fo
    >>> fo.papers.judged("DRFH")[0].experiment
    'drfh_dynamic'
    """
    return tuple(one for each in _PAPERS if paper in (None, each.key) for one in each.judged)


def _claims(of: str, paper: str, said: Mapping[str, Any]) -> Iterator[Claim]:
    for alpha in said.get("alphas", (None,)):
        at = {} if alpha is None else {"alpha": alpha}
        reading, *arguments = (part.format(**at) if isinstance(part, str) else part for part in said["ours"])
        derived = said.get("derived")
        correct = (
            _function(of, derived[0])(*at.values(), *map(_value, derived[1:])) if derived else _value(said["correct"])
        )
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
            partial(_read, of, reading, tuple(map(_value, arguments)), said.get("then", ())),
            correct,
            printed,
            said.get("note", ""),
            _SMOOTH if said.get("smooth") else _RTOL,
            states=tuple(said.get("states", ())),
            agreed=f"{UNDER} {said['assuming']}" if "assuming" in said else REPRODUCED,
        )


#: Functions of computed values, by their names in `then`.
_THEN: Mapping[str, Callable[[Any], object]] = {
    "not": operator.not_, "sum": np.sum, "floor": np.floor,
    "never rises": lambda values: bool((np.diff(values) <= _ours.TOL).all()),
}  # fmt: skip


def _read(of: str, reading: str, arguments: tuple[Any, ...], then: Sequence[int | str], cluster: Cluster) -> object:
    value = _function(of, reading)(cluster, *arguments)
    for step in then:
        value = _THEN[step](value) if isinstance(step, str) else np.asarray(value)[step]
    return value


def _function(of: str, name: str) -> Callable[..., Any]:
    """Look up a function in the paper's module, or else in `_ours`."""
    own = import_module(f".{_MODULES[of]}", __package__) if of in _MODULES else _ours
    found: Callable[..., Any] = getattr(own, name, None) or getattr(_ours, name)
    return found


def _value(said: Any) -> Value:
    if isinstance(said, list):
        return tuple(map(_value, said))
    return Fraction(said) if isinstance(said, str) and _FRACTION.fullmatch(said) else said


#: Papers in the order of their claims.
_PAPERS = tuple(
    map(
        Paper,
        ("lec", "drf", "drfh", "mqdrf", "pf", "schedulers", "gavel", "pop", "soroush", "incentives", "counterexamples"),
    )
)
#: Citations and subjects of papers by the keys of their claims.
CITATIONS = {paper.key: paper.citation for paper in _PAPERS}
ABOUT = {paper.key: paper.about for paper in _PAPERS}
#: Columns of the table of claims that stay at any width.
KEPT = ("item", "claim", "verdict")
COLUMNS = (
    "item", "statement", "paper", "where", "instance", "claim", "printed", "ours", "correct", "verdict", "seconds",
    "note",
)  # fmt: skip
#: `_AS_STATED`: text in place of a printed value for entries of `[statements]`. `_FROM_DATA`, `_FOUND_HERE`: the two
#: origins of values that no paper prints.
_AS_STATED, _FROM_DATA, _FOUND_HERE = "as stated", "derived from the paper's data", "found here"
#: Verdicts that `summary` states first.
_FIRST = (REPRODUCED, UNDER, PAPER_IN_ERROR, NOT_REPRODUCED, CANNOT)


@cache
def _by_name() -> dict[str, Instance]:
    return {one.name: one for paper in _PAPERS for one in paper.instances}


def instances() -> dict[str, Instance]:
    """Return all instances by name, each with paper, section and description; `build()` constructs the cluster.

    >>> import fairopt as fo
    >>> one = fo.papers.instances()["pf-fig1"]
    >>> one.paper, one.where
    ('PF', '2.2, figure 1')
    """
    return dict(_by_name())


def instance(name: str) -> Cluster:
    """Return the cluster of a worked example by name.

    Raises
    ------
    DataError
        There is no instance of this name; the message lists the names.

    >>> import fairopt as fo
    >>> fo.papers.instance("drf-4.1").demand.tolist()
    [[1.0, 4.0], [3.0, 1.0]]
    """
    known = _by_name()
    if name not in known:
        raise DataError(f"there is no instance {name!r}; known: {', '.join(known)}{meant(name.lower(), known)}")
    return known[name].build()


def claims(paper: str | None = None, item: int | None = None) -> tuple[Claim, ...]:
    """Return all claims, or those of one paper or item, in the order of items.

    Parameters
    ----------
    paper : str, optional
        Key of the paper, such as `DRF`.
    item : int, optional
        Index of the item.

    Raises
    ------
    DataError
        There is no such claim; the message lists papers and items.

    >>> import fairopt as fo
    >>> [claim.statement for claim in fo.papers.claims("DRF", 2)[:2]]
    ['DRF: tasks', 'DRF: (CPU, GB) of A and of B']
    """
    of_papers = chain(pf_measured.claims(), *(paper.claims for paper in _PAPERS))
    every = sorted(of_papers, key=lambda claim: claim.item or np.inf)  # statements without an item come last
    found = tuple(claim for claim in every if paper in (None, claim.paper) and item in (None, claim.item))
    if not found:
        papers = [*dict.fromkeys(claim.paper for claim in every)]
        if paper is not None and paper not in papers:
            raise DataError(
                f"there are no claims of a paper {paper!r}; known: {', '.join(papers)}{meant(paper.upper(), papers)}"
            )
        items = sorted({claim.item for claim in every if claim.item and paper in (None, claim.paper)})
        whose = f" of {paper}" if paper else ""
        raise DataError(f"there is no item {item}{whose}; there are {', '.join(map(str, items))}")
    return found


#: Alias of `claims` for `check`, whose argument hides the name.
_every = claims


def check(claims: Iterable[Claim] | None = None, progress: bool = False) -> pd.DataFrame:
    """Compute the values of claims, and compare them with the correct and the printed values.

    Parameters
    ----------
    claims : iterable of Claim, optional
        Default: all of `fairopt.papers.claims()`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        One row per claim: item, statement (indices in the list of the papers' statements), paper, where, instance,
        claim, printed, ours, correct, verdict, seconds (CPU), note. `printed` is the text of the paper, `derived from
        the paper's data`, or `found here`; in the latter two cases the verdict is `derived`. Other verdicts begin with
        a key of `KINDS`; `NOT REPRODUCED` is followed by the error if one was raised.

    >>> import fairopt as fo
    >>> fo.papers.check(fo.papers.claims("DRF", 2)[:1])[["printed", "ours", "verdict"]].iloc[0].tolist()
    ['x=3, y=2', '(3, 2)', 'reproduced']
    """
    chosen = _every() if claims is None else tuple(claims)
    rows = [_row(claim) for claim in tqdm(chosen, unit="claim", disable=not progress)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(claim: Claim) -> tuple[object, ...]:
    """Row of a claim, in the order of `COLUMNS`."""
    start = clock.cpu()
    ours, verdict = "", claim.agreed
    try:
        if claim.ours is not None:
            value = claim.ours(_subject(claim))
            ours, verdict = show(value), claim.verdict(value)
    except FairoptError as error:
        verdict = f"{NOT_REPRODUCED}: {type(error).__name__}: {error}"
    about = claim.paper, claim.where, claim.instance, claim.statement
    origin = _FOUND_HERE if claim.instance in _own() else _FROM_DATA
    printed, number = claim.printed.text if claim.printed else origin, ", ".join(map(str, claim.states))
    seconds, note = clock.cpu() - start, claim.note if claim.numbers is None else claim.numbers(measurements())
    return (claim.item, number, *about, printed, ours, show(claim.correct), verdict, seconds, note)


def _subject(claim: Claim) -> Cluster | Measurements | None:
    """Argument of `Claim.ours`: the cluster or the measurements; None if the claim has no instance."""
    if claim.numbers is not None:
        return measurements()
    return instance(claim.instance) if claim.instance else None


@cache
def _own() -> frozenset[str]:
    """Names of the experiment and of the instances of this project, whose values are printed in no paper."""
    return frozenset((pf_measured.EXPERIMENT, *(one.name for one in _PAPERS[-1].instances)))


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Count the statements and the derived values in a frame that `check` returns, by verdict.

    The keys are labels of verdicts, such as `reproduced` (the values of `KINDS`), and `derived`; counts of 0 are
    omitted. If several claims are about one statement, the last of their verdicts in the order of `KINDS` counts.

    >>> import fairopt as fo
    >>> fo.papers.counts(fo.papers.check(fo.papers.claims("DRF", 3)))
    {'reproduced': 4}
    """
    order, worst = list(KINDS), dict[str, int]()
    for numbers, verdict in zip(frame["statement"], frame["verdict"], strict=True):
        kind = max((k for k, begins in enumerate(order) if verdict.startswith(begins)), default=len(order) - 1)
        for number in filter(None, numbers.split(", ")):
            worst[number] = max(kind, worst.get(number, kind))
    found = dict.fromkeys((*map(KINDS.__getitem__, _FIRST), *KINDS.values()), 0)
    found[DERIVED] = int((frame["verdict"] == DERIVED).sum())
    for kind in worst.values():
        found[KINDS[order[kind]]] += 1
    return {kind: many for kind, many in found.items() if many}


def summary(frame: pd.DataFrame) -> str:
    """Summarise in one sentence the verdicts on printed numbers and directions in a frame that `check` returns.

    The sentence is '' if the frame has no statements and no derived values.

    >>> import fairopt as fo
    >>> fo.papers.summary(fo.papers.check(fo.papers.claims("DRF", 3)))
    'of 4 printed numbers and directions 4 reproduced'
    """
    found = counts(frame)
    apart = {kind: found.pop(kind) for kind in (DERIVED, KINDS[DEFINITION]) if kind in found}
    judged = ", ".join(f"{many} {kind}" for kind, many in found.items())
    said = [f"of {sum(found.values())} printed numbers and directions {judged}"] if found else []
    said += [f"{many} {kind}{', which no paper prints' if kind == DERIVED else ''}" for kind, many in apart.items()]
    return "; ".join(said)
