"""What `open_source` knows: names, readers and generators, and how the text of each option is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import alibaba, bitbrains, generators, google2011
from ._snapshot import Snapshot

Parser = Callable[[str], Any]


@dataclass(frozen=True)
class Entry:
    """A reader (with the `folder` name that its trace begins with) or a generator, and the options it takes."""

    description: str
    function: Callable[..., Snapshot]
    options: Mapping[str, Parser]
    folder: str = ""

    def run(self, options: Mapping[str, Any], **arguments: Any) -> Snapshot:
        return self.function(**arguments, **options)


def _amount(text: str) -> int | float | None:
    if text == "all":
        return None
    return float(text) if "." in text else int(text)


def _flag(text: str) -> bool:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]


def _list(text: str) -> list[str]:
    return text.split(",")


READERS = {
    "google2011": Entry(
        "Google's cluster trace of 2011: users and machines (google2011[:DIR])",
        google2011.cluster,
        {
            "at": float,
            "window": float,
            "users": _amount,
            "servers": _amount,
            "every_machine": _flag,
            "max_tasks": _flag,
            "skip_malformed": _flag,
        },
        "google-2011",
    ),
    "bitbrains": Entry(
        "Bitbrains virtual machines on the servers of the alpha-PF-VDS paper (bitbrains[:DIR])",
        bitbrains.cluster,
        {
            "at": float,
            "window": float,
            "vms": _amount,
            "servers": int,
            "statistic": str,
            "split_disk": _flag,
            "part": str,
            "skip_malformed": _flag,
        },
        "bitbrains",
    ),
    "alibaba": Entry(
        "Alibaba's GPU trace of 2023: groups of pods and nodes (alibaba[:DIR])",
        alibaba.cluster,
        {
            "at": float,
            "by": _list,
            "variant": str,
            "users": _amount,
            "max_tasks": _flag,
            "skip_malformed": _flag,
        },
        "alibaba",
    ),
}
ALIASES = {"google": "google2011"}
GENERATORS = {
    "google-like": Entry(
        "random users and servers like Google's",
        generators.google_like,
        {"users": int, "servers": int, "max_tasks": _flag},
    ),
    "bitbrains-like": Entry(
        "random virtual machines like those of Bitbrains",
        generators.bitbrains_like,
        {"vms": int, "servers": int, "split_disk": _flag},
    ),
    "alibaba-like": Entry(
        "random groups of pods and nodes like Alibaba's",
        generators.alibaba_like,
        {"users": int, "servers": int, "max_tasks": _flag},
    ),
    "lognormal": Entry(
        "random users and servers, no two alike, with any density of placement",
        generators.lognormal,
        {"users": int, "servers": int, "resources": int, "density": float, "sigma": float},
    ),
}
STAND_INS = {"google2011": "google-like", "bitbrains": "bitbrains-like", "alibaba": "alibaba-like"}
