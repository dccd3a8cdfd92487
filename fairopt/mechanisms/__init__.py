"""Allocation mechanisms, one per file; subclasses of `Mechanism` are registered automatically."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import DataError
from ..base.names import items, short
from ._base import REGISTRY, Mechanism

if TYPE_CHECKING:
    from ..model.cluster import Cluster
    from ..result.allocation import Allocation
    from ._game import GameMechanism

__all__ = [
    "REGISTRY", "GameMechanism", "Mechanism", "chosen", "described", "get", "kind", "names", "one", "parse", "solve"
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "GameMechanism":
        from ._game import GameMechanism  # deferred, as it imports the engines of the game

        return GameMechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """Names of all registered mechanisms, sorted.

    >>> import fairopt as fo
    >>> fo.mechanisms.names()[:3]
    ['alpha-fair', 'alphapf-vds', 'asset-fairness']
    """
    return REGISTRY.names()


def get(name: str, **parameters: Any) -> Mechanism:
    """Return the mechanism of a name, with the given parameters; case, `-` and `_` are ignored in names.

    Raises
    ------
    DataError
        No mechanism has this name, or it has no such parameter; the message lists the known names.

    >>> import fairopt as fo
    >>> str(fo.mechanisms.get("AlphaPF_VDS", alpha=3))
    'alphaPF-VDS(alpha=3)'
    """
    made: Mechanism = REGISTRY.made(name, parameters)
    return made


def kind(name: str) -> type[Mechanism]:
    """Return the class of a mechanism by the mechanism's or the class's name; case, `-` and `_` are ignored.

    Raises
    ------
    DataError
        No mechanism has this name.

    >>> import fairopt as fo
    >>> fo.mechanisms.kind("ps-dsf").__name__
    'PSDSF'
    """
    return REGISTRY.named(name)


def parse(text: str) -> tuple[Mechanism, ...]:
    """Parse the text of a mechanism: `drfh`, `alphapf-vds(alpha=3)`, `fds(beta=2, lam=-1)`.

    Returns
    -------
    tuple of Mechanism
        A single mechanism for a text with parameters; the variants that comparisons show by default for a bare name.

    Raises
    ------
    DataError
        No mechanism has this name, or a parameter is unknown.

    >>> import fairopt as fo
    >>> [str(one) for one in fo.mechanisms.parse("alphapf-vds")]
    ['alphaPF-VDS(alpha=1)', 'alphaPF-VDS(alpha=3)']
    """
    made: Mechanism = REGISTRY.one(text, Mechanism)
    return ("(" not in text and made.variants()) or (made,)


def chosen(given: Iterable[str | Mechanism] | str | None) -> list[Mechanism]:
    """Resolve a list of names and instances, or a text such as "drf, tsf", to instances; None is all variants.

    Raises
    ------
    DataError
        The argument is a single mechanism, a class, or empty, or a name or parameter is unknown.

    >>> import fairopt as fo
    >>> [str(one) for one in fo.mechanisms.chosen(["drf", fo.TSF()])]
    ['DRF', 'TSF']
    """
    if isinstance(given, Mechanism | type) or not (given is None or isinstance(given, Iterable)):
        raise DataError(
            f"mechanisms are {short(given)}; give a list of them, such as [{getattr(given, 'name', 'drf')!r}]"
        )
    picked: list[Mechanism] = []
    if given is None:  # a mechanism without variants is included only by name
        return [variant for name in names() for variant in get(name).variants()]
    every: Iterable[object] = items(given) if isinstance(given, str) else given
    for item in every:
        picked += parse(item) if isinstance(item, str) else [REGISTRY.one(item, Mechanism)]
    if not picked:
        raise DataError(f"the list of mechanisms is empty; known: {', '.join(names())}")
    return picked


def one(given: str | Mechanism) -> Mechanism:
    """Return the mechanism of a name with parameters, or the given instance.

    Raises
    ------
    DataError
        The name is unknown, or it names several variants, so that parameters are required.

    >>> import fairopt as fo
    >>> fo.mechanisms.one("alphapf-vds(alpha=2)")
    AlphaPFVDS(alpha=2.0, select='fast')
    """
    if not isinstance(given, str):
        made: Mechanism = REGISTRY.one(given, Mechanism)
        return made
    kinds = parse(given)
    if len(kinds) > 1:
        texts = " or ".join(map(str, kinds))
        raise DataError(f"{given!r} names several mechanisms, {texts}: choose one with its parameters")
    return kinds[0]


def described(text: str) -> tuple[type[Mechanism], dict[str, Any]]:
    """Split a text such as `alpha-fair(share=asset)` into class and parameters, without an instance.

    Raises
    ------
    DataError
        No mechanism has this name, or the parameters cannot be parsed.

    >>> import fairopt as fo
    >>> fo.mechanisms.described("alpha-fair(share=asset)")[1]
    {'share': 'asset'}
    """
    return REGISTRY.described(text)


def solve(
    cluster: Cluster,
    mechanism: str | Mechanism,
    tol: float | None = None,
    *,
    throw: bool = True,
    engine: str | None = None,
    solver: str | None = None,
    start: Allocation | None = None,
) -> Allocation:
    """Compute a certified allocation of a cluster by a mechanism, which is given as an instance or by its name.

    Parameters
    ----------
    cluster : Cluster
    mechanism : str or Mechanism
        `"drfh"`, `"alphapf-vds(alpha=3)"`, or an instance such as `AlphaPFVDS(alpha=3)`.
    tol, throw, engine, solver, start
        Parameters of `Mechanism.solve`.

    Returns
    -------
    Allocation
        Tasks (users, servers), with certificate, prices and statistics.

    Raises
    ------
    DataError
        The name is unknown or stands for several mechanisms, or the mechanism is not defined on this cluster.
    SolverError, NotConverged, CertificateError
        No solution has a certificate within `tol`; see `fairopt.errors` for remedies.

    >>> import fairopt as fo
    >>> fo.solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), "drfh").user_tasks.tolist()
    [3.0, 2.0]
    """
    return one(mechanism).solve(cluster, tol, throw=throw, engine=engine, solver=solver, start=start)
