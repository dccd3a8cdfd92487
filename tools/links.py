"""Make the lines right that docs link to: `[Polytope.use](../fairopt/model/polytope.py#L54)`.

    python tools/links.py                # rewrite docs/*.md; a test does the same without writing

What a link says is a name that the file defines: a function, a class, a constant, or a method as `Class.method`.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[`?([\w.]+)`?\]\(([\w./]+\.py)#L(\d+)\)")


def line(path: Path, name: str) -> int:
    """The line on which a file defines a name.

    Raises
    ------
    LookupError
        It does not.
    """
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    found = 0
    for part in name.split("."):
        nodes = [node for node in body if part in _names(node)]
        if not nodes:
            raise LookupError(f"{path.name} does not define {name}")
        found, body = nodes[0].lineno, getattr(nodes[0], "body", [])
    return found


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def render(text: str, folder: Path) -> str:
    """A text in `folder` with the lines of its links as they are."""
    return LINK.sub(lambda link: f"{link[0][: link[0].rindex('#')]}#L{line(folder / link[2], link[1])})", text)


def main() -> None:
    """Rewrite the docs; say which changed."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = render(before, path.parent)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)} rewritten\n")


if __name__ == "__main__":
    main()
