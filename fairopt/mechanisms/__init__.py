"""Every mechanism of the field, one file each. A mechanism is registered by being defined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import DataError
from ..base.names import short
from ._base import REGISTRY, Mechanism

if TYPE_CHECKING:
    from ._game import GameMechanism

__all__ = ["REGISTRY", "GameMechanism", "Mechanism", "chosen", "described", "get", "kind", "names", "one", "parse"]


def __getattr__(name: str) -> Any:
    if name == "GameMechanism":
        from ._game import GameMechanism  # with the engines of the game

        return GameMechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """Names of all mechanisms, sorted."""
    return REGISTRY.names()


def get(name: str, **parameters: Any) -> Mechanism:
    """A mechanism by its name, with parameters: `get("alphapf-vds", alpha=3)`. Case, `-` and `_` do not matter."""
    made: Mechanism = REGISTRY.made(name, parameters)
    return made


def kind(name: str) -> type[Mechanism]:
    """The class of a mechanism by its name, or by its own (`DRF`); case, `-` and `_` do not matter."""
    return REGISTRY.named(name)


def parse(text: str) -> tuple[Mechanism, ...]:
    """Mechanisms from a command line: `drfh`, `alphapf-vds(alpha=3)`, `fds(beta=2, lam=-1)`.

    A name without parameters stands for the variants that comparisons show by default.
    """
    made: Mechanism = REGISTRY.one(text, Mechanism)
    return (made,) if "(" in text else made.variants()


def chosen(given: Iterable[str | Mechanism] | None) -> list[Mechanism]:
    """Mechanisms by their names or as they are; by default all.

    Raises
    ------
    DataError
        What is given is one name, a class, or no mechanism at all; the message says what to write.
    """
    if isinstance(given, str | Mechanism | type) or not (given is None or isinstance(given, Iterable)):
        what = given if isinstance(given, str) else getattr(given, "name", "drf")
        raise DataError(f"mechanisms are {short(given)}; give a list of them, such as [{what!r}]")
    picked: list[Mechanism] = []
    every: Iterable[object] = names() if given is None else given
    for item in every:
        picked += parse(item) if isinstance(item, str) else [REGISTRY.one(item, Mechanism)]
    if not picked:
        raise DataError(f"the list of mechanisms is empty; known: {', '.join(names())}")
    return picked


def one(given: str | Mechanism) -> Mechanism:
    """One mechanism, as it is or by its name; a name that stands for several variants needs its parameters."""
    if not isinstance(given, str):
        made: Mechanism = REGISTRY.one(given, Mechanism)
        return made
    kinds = parse(given)
    if len(kinds) > 1:
        texts = " or ".join(map(str, kinds))
        raise DataError(f"{given!r} stands for several mechanisms, {texts}: choose one with its parameters")
    return kinds[0]


def described(text: str) -> tuple[type[Mechanism], dict[str, Any]]:
    """The class and the parameters that a text such as `alpha-fair(share=asset)` names."""
    return REGISTRY.described(text)
