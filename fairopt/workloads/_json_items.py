"""The items of a large JSON list, one after another: what is read is forgotten, so that memory holds one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError

#: Characters that are read at a time.
_CHUNK = 1 << 20
#: No item of a snapshot is longer: the most that Kubernetes stores of an object is 1.5 MiB.
_LONGEST = 1 << 25
_SPACE = re.compile(r"[\s,]*")
_ITEMS = re.compile(r'"items"\s*:\s*\[')


def items(path: Path, key: str = "items") -> Iterator[dict[str, Any]]:
    """The objects in the list `key` of the object in a file, as `kubectl get -o json` writes it.

    Raises
    ------
    DataError
        The file cannot be read, has no such list, or is cut off or damaged in it: with the number of the item.
    """
    begins = re.compile(rf'"{re.escape(key)}"\s*:\s*\[') if key != "items" else _ITEMS
    decode = json.JSONDecoder().raw_decode
    number = 0
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_CHUNK)
            found = begins.search(text)
            while found is None:
                more = file.read(_CHUNK)
                if not more or len(text) > _LONGEST:
                    raise DataError(
                        f"{path} has no list {key!r}; write it with: kubectl get nodes,pods,namespaces -A -o json"
                    )
                text += more
                found = begins.search(text)
            at = found.end()
            while True:
                at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
                if text[at : at + 1] == "]":
                    return
                try:
                    item, end = decode(text, at)
                except (ValueError, RecursionError) as error:
                    more = file.read(max(_CHUNK, len(text) - at))
                    if not more or len(text) - at > _LONGEST:
                        raise DataError(f"{path}: item {number + 1} of {key} is cut off or damaged: {error}") from None
                    text, at = text[at:] + more, 0
                    continue
                if not isinstance(item, dict):
                    raise DataError(f"{path}: item {number + 1} of {key} is {str(item)[:40]!r}; it must be an object")
                number += 1
                yield item
                at = end
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (near item {number + 1}): {error.reason}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
