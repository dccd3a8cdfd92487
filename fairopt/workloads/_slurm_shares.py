"""Tree of accounts and persons from the associations of `sshare --json`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ._slurm_words import number, words
from ._snapshot import Entries, Key, path

#: Code for the share `parent`, by which the members of an account compete with the siblings of the account.
_PARENT = 0x7FFFFFFF


def queues(rows: Iterable[Mapping[str, Any]], active: Collection[Key]) -> Entries:
    """Queues of accounts, ("account", name), and of persons in them, ("person", account, name), below the root account.

    The members of an account with the share `parent` become children of the parent of the account. `active` are the
    queues of jobs; a queue without an association has one share.
    """
    found: dict[Key, dict[str, Any]] = {}
    through = set[Key | None]()
    for row in rows:
        name, account = str(row.get("name")), str(row.get("parent") or "")
        person = "USER" in words(row.get("type"), "the type of an association")
        key: Key = ("person", account, name) if person else ("account", name)
        amount = number(row.get("shares"), f"shares of {name[:40]!r}")
        entry = found.setdefault(key, {"parent": ("account", account) if account not in ("", name) else None})
        if amount == _PARENT:
            through.add(key)
        elif amount is not None:
            entry["weight"] = amount
    accounts = [one["parent"] for key, one in found.items() if key[0] == "account" and one["parent"]]
    through.update([key for key in accounts if not found.get(key, {}).get("parent")][:1])  # the root account
    for key in active:
        found.setdefault(key, {"parent": ("account", key[1]) if key[0] == "person" else None})
    above = {key: next((one for one in path(entry["parent"], found) if one not in through), None)
             for key, entry in found.items()}  # fmt: skip
    return {key: entry | {"parent": above[key]} for key, entry in found.items()}
