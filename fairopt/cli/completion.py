"""`fairopt completion SHELL`: a script that completes commands, options, files and names."""

from __future__ import annotations

import argparse

from .. import mechanisms, papers
from ..report import figures
from ..sweeps.experiment import known


def completion(options: argparse.Namespace) -> int:
    """Print the script; the shell reads it with `eval "$(fairopt completion bash)"`."""
    import shtab

    root: argparse.ArgumentParser = options.parser
    root.prog = "fairopt"
    sub = next(action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    names: dict[tuple[str, str], list[str]] = {
        ("tables", "names"): list(known()),
        ("sweep", "experiments"): list(known()),
        ("results", "experiment"): list(known()),
        ("figures", "names"): list(figures.known()),
    }
    for command, made in sub.choices.items():
        for action in made._actions:
            if action.dest in ("mechanism", "mechanisms"):
                action.choices = mechanisms.names()
            elif (command, action.dest) in names:
                action.choices = names[command, action.dest]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY
            elif action.metavar == "FILE":
                action.complete = shtab.FILE
            if command != "check" and action.dest == "file":
                action.help = f"a cluster file, or paper:NAME such as paper:{next(iter(papers.instances()))}"
    print(shtab.complete(root, options.shell))
    return 0
