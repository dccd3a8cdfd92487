"""The structure of a checkout in numbers: rooms, arrows that run up, circles, large functions, words that should go.

    python tools/structure.py [DIR ...]      # a table per checkout, by default of this one: before and after

Imports count wherever they stand: also under `if TYPE_CHECKING` and inside functions. The layers are those of the
checkout's own `pyproject.toml`; what stands in none, such as the package itself, is judged by circles alone.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: Above this a function is hard to follow.
COMPLEX = 15
#: Old words, counted wherever they stand: in code, comments, docstrings and docs.
ANYWHERE = ("sifting", "_aside", "stand aside", "let_go", "take_in", "phantom user", "know each other", "tilted",
            "prices have decided", "how_wrong", "polish", "Linearised", '"each"')  # fmt: skip
#: Old words that are English as well: as names in code, and in docs between backquotes; and as names of files.
NAMES = ("Equations", "wrong", "pay", "worth", "owed", "leak", "rest", "gone", "held", "settled", "bent", "told",
         "asked", "enough", "quiet", "BY", "_STILL", "_AGAIN", "_FEW", "_BACK", "_AIM", "_ENOUGH")  # fmt: skip
FILES = ("alone", "between", "following", "path", "infinity", "central", "uneven", "exactly", "found")
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def imports(module: str, tree: ast.AST, package: bool, known: set[str]) -> set[str]:
    """The modules among `known` that a module imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: module.count(".") + 1 - node.level + package] if node.level else []
            stem = ".".join([*base, *filter(None, [node.module])])
            whole = {f"{stem}.{alias.name}" for alias in node.names}
            found |= whole if whole <= known else whole | {stem}
    return (found & known) - {module}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components with more than one module: who reaches each other."""

    def reach(found: set[str]) -> set[str]:
        more = found.union(*(graph[module] for module in found))
        return found if more == found else reach(more)

    beyond = {module: reach(graph[module]) for module in graph}
    groups = {frozenset(other for other in beyond[one] if one in beyond[other]) for one in graph}
    return sorted(sorted(group) for group in groups if group)


def layered(linter: dict[str, Any]) -> Iterator[dict[str, int]]:
    """The layers of every contract: names with their places, from the top."""
    for contract in linter["contracts"]:
        for room in contract.get("containers", [""]):
            rows = [re.findall(r"[\w.]+", row) for row in contract["layers"]]
            yield {f"{room}.{name}".strip("."): k for k, row in enumerate(rows) for name in row}


def runs_up(one: str, other: str, layers: dict[str, int]) -> bool:
    """Does an import lead to a higher layer, or across to another name of the same one?"""
    here, there = (max((name for name in layers if f"{module}.".startswith(f"{name}.")), key=len, default="")
                   for module in (one, other))  # fmt: skip
    return "" not in (here, there) and here != there and layers[there] <= layers[here]


def inside(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions defined in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, _FUNCTIONS):
            yield node
            yield from inside(node)


def complexity(function: ast.AST) -> int:
    """Cyclomatic: 1 + branches + boolean operators + conditions of comprehensions."""
    return 1 + sum(
        len(node.values) - 1 if isinstance(node, ast.BoolOp) else len(node.ifs) if isinstance(node, ast.comprehension)
        else isinstance(node, _BRANCHES) for node in inside(function)
    )  # fmt: skip


def words(code: dict[Path, str], docs: list[str]) -> dict[str, int]:
    """How often each old word is left."""
    tokens = [token for text in code.values() for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    names, files = Counter(token.string for token in tokens), [path.stem.lstrip("_") for path in code]
    names.update(re.findall(r"\w+", " ".join(quoted for text in docs for quoted in re.findall(r"`[^`\n]+`", text))))
    everything = " ".join(" ".join([*code.values(), *docs]).split())
    found = {word: len(re.findall(rf"(?<![A-Za-z]){word}(?![A-Za-z])", everything)) for word in ANYWHERE}
    return (
        found | {f"{word} (name)": names[word] for word in NAMES} | {f"{word}.py": files.count(word) for word in FILES}
    )


def several(names: Iterable[str]) -> str:
    """How many names occur more than once, and which."""
    more = [f"{name} {count}" for name, count in Counter(names).most_common() if count > 1]
    return f"{len(more)}: {', '.join(more)}" if more else "0"


def of_imports(name: dict[Path, str], trees: dict[Path, ast.Module], linter: dict[str, Any]) -> dict[str, str]:
    """The rows about arrows between modules."""
    known = set(name.values())
    graph = {name[path]: imports(name[path], tree, path.stem == "__init__", known) for path, tree in trees.items()}
    arrows = [(one, other) for one in graph for other in sorted(graph[one])]
    rings = [", ".join(circle) for circle in circles(graph)]
    up = [f"{one} -> {other}" for one, other in arrows if any(runs_up(one, other, rows) for rows in layered(linter))]
    return {
        "arrows": f"{len(arrows)}",
        "arrows that run up": "; ".join([f"{len(up)}", *up]),
        "circles of modules": "; ".join([f"{len(rings)}", *rings]),
    }


def of_functions(name: dict[Path, str], trees: dict[Path, ast.Module]) -> dict[str, str]:
    """The rows about functions."""
    nodes = [(node, name[path]) for path, tree in trees.items() for node in ast.walk(tree)]
    functions = [(node, f"{module}.{node.name}") for node, module in nodes if isinstance(node, _FUNCTIONS)]
    long = [((node.end_lineno or 0) - node.lineno + 1, of) for node, of in functions]
    hard = [(complexity(node), of) for node, of in functions]
    return {
        "functions": f"{len(functions)}",
        "largest function": "{} lines, {}".format(*max(long)),
        "largest complexity": "{}, {}".format(*max(hard)),
        f"functions above {COMPLEX}": f"{sum(number > COMPLEX for number, _ in hard)}",
    }


def structure(root: Path) -> dict[str, str]:
    """The rows of the table of a checkout, of the package that its `pyproject.toml` names in `[tool.importlinter]`."""
    linter = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    code = {path: path.read_text(encoding="utf-8") for path in sorted((root / linter["root_package"]).rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in code.items()}
    name = {path: ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in code}
    classes = [node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    old = words(code, [path.read_text(encoding="utf-8") for path in sorted((root / "docs").glob("*.md"))])
    return {
        "rooms": f"{sum(path.stem == '__init__' for path in code) - 1}",
        "modules": f"{len(code)}",
        **of_imports(name, trees, linter),
        **of_functions(name, trees),
        "module names more than once": several(path.stem for path in code if not path.stem.startswith("__")),
        "class names more than once": several(classes),
        "old words": f"{sum(old.values())}",
    } | {f"  {word}": f"{count}" for word, count in old.items()}


def main() -> None:
    """Print the table of each checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="*", metavar="DIR", type=Path, default=[Path()], help="a checkout")
    roots: list[Path] = parser.parse_args().roots
    if lacking := [root for root in roots if not (root / "pyproject.toml").is_file()]:
        parser.error(f"{lacking[0]} has no pyproject.toml; name the folder of a checkout")
    for root in roots:
        rows = [f"{row:<30}{value}\n" for row, value in structure(root).items()]
        sys.stdout.writelines([f"\n{root.resolve().name}\n", *rows])


if __name__ == "__main__":
    main()
