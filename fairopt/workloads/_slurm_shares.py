"""Weights of accounts and persons from the associations of `sshare --json`, which form a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..base.names import listed
from ._slurm_words import number, words

#: An association: an account, or an account and a person.
Path = tuple[str, ...]
#: Code for the share `parent`, with which the members of an account compete with the siblings of that account.
_PARENT = 0x7FFFFFFF
_TREE = (
    "Shares form a tree of accounts: the weight of a leaf is the product of its shares among siblings that have jobs, "
    "so that what one leaf leaves goes to all and not to its siblings first."
)


def weights(rows: Iterable[Mapping[str, Any]], active: Collection[Path]) -> tuple[dict[Path, float], list[str]]:
    r"""Weights of the active users by their paths, and notes.

    If all users have the same parent, weights are their shares. Otherwise the weight of a leaf is its fraction of the
    cluster if all active users have unlimited demand, with shares :math:`s` and siblings b that have jobs below them:

    .. math:: \phi_n = \prod_{a \in \mathrm{path}(n)} \frac{s_a}{\sum_b s_b}
    """
    share: dict[Path, float] = {}
    parent: dict[str, str] = {}
    through = set[Path]()
    for row in rows:
        name, above = str(row.get("name")), str(row.get("parent") or "")
        person = "USER" in words(row.get("type"), "the type of an association")
        path: Path = (above, name) if person else (name,)
        amount = number(row.get("shares"), f"shares of {name[:40]!r}")
        if amount == _PARENT:
            through.add(path)
        elif amount is not None:
            share[path] = amount
        if not person and name != above:
            parent[name] = above
    top = next((above for above in parent.values() if above and not parent.get(above)), "")
    persons = {path[0] for path in share.keys() | through if len(path) > 1}

    def chain(path: Path) -> list[Path]:
        """Associations from the root to a path, without accounts whose share is `parent`."""
        found, name = [path], path[0] if len(path) > 1 else parent.get(path[0], top)
        while name and (name,) not in found:
            if (name,) not in through:
                found.insert(0, (name,))
            name = parent.get(name, "")
        return found

    chains = {path: chain(path if path[0] in persons else path[:1]) for path in sorted(active)}
    inner = {one for found in chains.values() for one in found[:-1]}
    for path, found in chains.items():  # jobs of the account itself compete with its members
        chains[path] = [*found, (*found[-1], "")] if found[-1] in inner else found
    unknown = sorted({path[0] for path in chains if path[0] not in parent}) if parent else []
    notes = [f"Not in shares.json, and counted with 1 share: {listed(unknown)}."] if unknown else []
    if len({(*found[:-1],) for found in chains.values()}) == 1:
        return {path: share.get(found[-1], 1.0) for path, found in chains.items()}, notes
    below: dict[Path, set[Path]] = defaultdict(set)
    for found in chains.values():
        for upper, lower in zip([(), *found], found, strict=False):
            below[upper].add(lower)
    made = dict.fromkeys(chains, 1.0)
    for path, found in chains.items():
        for upper, lower in zip([(), *found], found, strict=False):
            made[path] *= share.get(lower, 1.0) / (sum(share.get(one, 1.0) for one in below[upper]) or 1.0)
    return made, [*notes, _TREE]
