"""Tables as text, from columns of text, no wider than a screen."""

from __future__ import annotations

from collections.abc import Sequence


def cut(text: str, most: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def joined(columns: Sequence[Sequence[str]], most: int | None) -> str:
    """Columns (header first, cells of one width) side by side.

    What is wider than `most` is broken, with the first column before every part.
    """
    parts = [columns] if most is None else _parts(columns, most)
    return "\n\n".join("\n".join(" ".join(row).rstrip() for row in zip(*part, strict=True)) for part in parts)


def _parts(columns: Sequence[Sequence[str]], most: int) -> list[list[Sequence[str]]]:
    """Columns in groups that fit, the first column in all of them."""
    if not columns:
        return []
    first, parts = columns[0], [[columns[0]]]
    used = len(first[0])
    for column in columns[1:]:
        size = len(column[0]) + 1
        if used + size > most and len(parts[-1]) > 1:
            parts.append([first])
            used = len(first[0])
        parts[-1].append(column)
        used += size
    return parts
