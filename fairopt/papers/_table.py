"""A paper in `data/NAME.toml`: its instances and claims; numbers as they are, fractions as text such as "45/11".

An `[[instance]]` has the arguments of a `Cluster`, perhaps with a `count` of servers for every row of capacity, and
what they are `called`; or `build`, a function of the paper's module. A `[[group]]` is an item of the catalogue: where
the paper has it, of which instance, and its `claims`. Of these `ours` is a reading and its arguments, a function of the
paper's module or of `_ours`; `correct` is right, or `derived` names the function that computes it; `printed` is what
the paper prints, with `value` and `decimals` where these are not `correct`, exactly; `smooth` ones are compared within
1e-5. With `alphas` a claim is made for each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module, resources
from typing import Any

import numpy as np

from ..model.cluster import Cluster
from . import _ours
from ._claim import Claim, Instance, Printed, Value

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
