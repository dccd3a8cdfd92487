"""The commands solve, check, compare, path, claims, dynamic-drf, hug and completion."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ... import mechanisms
from ...base.errors import DataError
from ...base.libraries import of_an_extra
from ...base.names import short
from ...mechanisms.alpha_fair import Share, share_per_task
from ...model import _validate
from ...model.criterion import FairnessEfficiency
from ...result import _show, allocation_file
from ...result.allocation import Allocation
from ...result.allocation_file import defaults
from . import _screen
from ._open import opened
from ._screen import print_json
from ._slips import listed

#: Largest number of alphas in a sequence LOW:HIGH:COUNT.
_MOST = 10_000
#: Largest number of characters in a cell of the table of claims.
_CELL = 48


def solve(options: argparse.Namespace) -> int:
    """`fairopt solve FILE --mechanism NAME`: compute and print a certified allocation."""
    named = opened(options)
    mechanism = named.declared(mechanisms.one(options.mechanism))
    allocation = mechanism.solve(named.cluster, options.tol, solver=options.solver)
    if options.save:
        allocation.save(options.save)
    if options.out:
        from ...harness import report

        report.export(allocation.to_frame().reset_index(), options.out)
    if not options.json:
        _screen.say((named.source or "").splitlines())
        print(_show.text(allocation, allocation._columns(), _screen.width()))
        return 0
    prices = allocation.arrays.prices
    print_json(
        {
            "mechanism": str(mechanism),
            "cluster": named.called,
            "users": dict(zip(allocation.cluster.users, allocation.arrays.user_tasks.tolist(), strict=True)),
            "servers": list(allocation.cluster.servers),
            "tasks": allocation.tasks.tolist(),
            "prices": None if prices is None else prices.tolist(),
            "summary": allocation.summary(),
            "certificate": allocation.certificate.to_dict(),
            "stats": vars(allocation.stats) | {"versions": dict(allocation.stats.versions)},
            "notes": list(allocation.notes),
        }
    )
    return 0


def check(options: argparse.Namespace) -> int:
    """`fairopt check FILE`: certify a saved allocation again; exit status 1 if it misses the tolerance."""
    try:
        allocation = Allocation.load(options.file)
    except DataError as error:
        if allocation_file.is_one(Path(options.file)):
            raise
        remedy = "name an allocation file, as fairopt solve FILE --save answer.json writes it"
        raise DataError(f"{error}; {remedy}", error.where) from None
    tol = allocation.tol if options.tol is None else _validate.tolerance(options.tol)
    certificate = allocation.certificate
    passes, by = certificate.passes(tol), stated(allocation)
    numbers = {"feasibility": certificate.feasibility, "optimality": certificate.optimality}
    if options.json:
        about = {"mechanism": allocation.mechanism, "criterion": by, "measure": certificate.measure}
        print_json(about | {"worst": certificate.worst} | numbers | {"tol": tol, "passes": passes})
    else:
        print(f"{'passes' if passes else 'fails'} at {tol:g}: {by}")
        print(f"mechanism according to the file: {short(allocation.mechanism)}")
        print(f"feasibility: {certificate.feasibility:.1e}")
        print(f"{certificate.measure}: {certificate.optimality:.1e}" if certificate.judged else certificate.measure)
        print(certificate.worst)
    return 0 if passes else 1


def stated(allocation: Allocation) -> str:
    """Description of the criterion by which an allocation is certified, independent of its label."""
    if not allocation.certificate.judged:
        return "feasibility alone"
    rule, cluster, shares = allocation.criterion, allocation.cluster, "virtual"
    if rule.share.ndim == 1:
        kinds: tuple[Share, ...] = "dominant", "asset", "task"
        runs = cluster.runnable
        named = {share_per_task(cluster, kind)[runs].tobytes(): str(kind) for kind in kinds}
        shares = named.get(rule.share[runs].tobytes(), "its own")
    goal = {0.0: "largest sum", np.inf: "max-min"}.get(rule.alpha, f"alpha = {rule.alpha:g}")
    more = [f"{name}s of its own" for name, usual in defaults(cluster).items() if (getattr(rule, name) != usual).any()]
    more += ["FDS"] if isinstance(rule, FairnessEfficiency) else []
    return ", ".join([f"{goal} of {shares} shares", rule.scope.replace("_", " "), *more])


def compare(options: argparse.Namespace) -> int:
    """`fairopt compare FILE`: compare mechanisms on a cluster; exit status 1 if an applicable mechanism failed."""
    from ...harness import report
    from ...study.blank import shown as shown_first
    from ...study.compare import Entry
    from ...study.compare import compare as compare_all
    from ...study.entitlement import DUE

    named = opened(options)
    cluster, runs = named.cluster, [] if named.running is None else [named.running]
    given = listed(options.mechanisms)
    chosen: list[Entry] = [*runs, *([named.tree] if named.tree and given is None else [])]
    chosen += map(named.declared, mechanisms.chosen(given))
    entitled = options.entitled or (("tree" if named.tree else "drfh") if runs else None)
    frame = compare_all(
        cluster,
        chosen,
        tol=options.tol,
        solver=options.solver,
        entitled=entitled and named.declared(mechanisms.one(entitled)),
        progress=not options.json,
        details=True,
    )

    def shown() -> None:
        table, others = report.comparison(frame)
        first = ["mechanism", *shown_first(cluster), *DUE]
        table = table[[name for name in table if name in first]]
        if entitled:
            others.insert(0, f"satisfaction, distance and complaints are relative to {entitled}")
        _screen.say((named.source or repr(cluster).partition("\n")[0]).splitlines())
        print(_screen.table(table))
        _screen.say(f"- {line}" for line in [*others, "--json and --out FILE have further columns"])

    _screen.give(frame.reset_index(), options, shown)
    failed = [status for status in frame["status"] if status != "ok" and not status.startswith("not applicable")]
    return 1 if failed else 0


def claims(options: argparse.Namespace) -> int:
    """`fairopt claims`: compare printed with computed values; exit status 1 if a computed value is not correct."""
    from ...harness import papers, report
    from ...harness.report.export import FORMATS

    out = Path(options.out) if options.out else None
    if out is not None and out.suffix and out.suffix not in FORMATS and not out.is_dir():
        raise DataError(f"--out {out}: a table ends in {', '.join(FORMATS)}; a new folder has a name without a dot")
    frame = papers.check(papers.claims(options.paper, options.item), progress=not options.json)
    columns = ["item", "statement", "paper", "where", "instance", "claim", "printed", "ours", "verdict"]
    if options.json:
        print_json(frame.to_dict(orient="records"))
    else:
        print(_screen.table(frame[columns], _CELL))
        measured = ~frame["instance"].isin([*papers.instances(), ""])
        reasons = frame[measured | (frame["verdict"].str.len() > _CELL)].to_dict("records")
        _screen.say("; ".join(filter(None, (f"- {row['claim']}: {row['verdict']}", row["note"]))) for row in reasons)
        print()
        _screen.say([papers.summary(frame)])
    if out is not None:
        table = frame[[*columns, "note"]]
        with _screen.remarks() as remarks:
            if out.suffix in FORMATS:
                report.export(table, out)
                written = str(out)
            else:
                caption = f"Claims of the papers: {papers.summary(frame)}"
                paths = report.write(table, out, "claims", caption, keep=papers.KEPT)
                written = ", ".join(map(str, paths))
        if not options.json:
            print(*(f"- {remark}" for remark in remarks), f"-> {written}", sep="\n")
    return int(frame["verdict"].str.startswith(papers.NOT_REPRODUCED).any())


def path(options: argparse.Namespace) -> int:
    """`fairopt path FILE --mechanism NAME --alphas LOW:HIGH:COUNT`: measures by alpha."""
    from ...harness.report import figures
    from ...study.alpha_path import alpha_path
    from ...study.blank import shown as shown_first

    alphas = values(options.alphas)
    named = opened(options)
    found = alpha_path(
        named.cluster,
        alphas,
        mechanism=options.mechanism,
        tol=options.tol,
        progress=_screen.shows_progress(options),
        details=True,
    )
    frame = found.reset_index()

    def shown() -> None:
        _screen.say([f"{found.mechanism} on {named.source or options.file}"])
        first = ["alpha", *shown_first(named.cluster)]
        print(_screen.table(frame[[name for name in frame if name in first]]))
        _screen.written(options)

    if options.plot:
        figures.write(found.draw(), options.plot)
    return _screen.give(frame, options, shown)


def values(given: Sequence[str] | None) -> list[float] | None:
    """Parse alphas: numbers, `inf`, and geometric sequences `LOW:HIGH:COUNT`; None without arguments.

    Raises `DataError` if a text has another form, or a number is out of range.
    """
    if given is None:
        return None
    alphas: list[float] = []
    for text in listed(given) or [""]:
        match = re.fullmatch(r"([^:]+):([^:]+):([0-9]{1,5})", text)
        low, high, count = match.groups() if match else (text, None, 1)
        try:
            first, last = float(low), float(high or low)
        except ValueError:
            raise DataError(f"--alphas {text}: write numbers, inf, or LOW:HIGH:COUNT such as 0.1:100:40") from None
        if high is None:
            alphas.append(_validate.alpha(first))
        elif 0 < first < math.inf and 0 < last < math.inf and 1 <= int(count) <= _MOST:
            alphas += np.geomspace(first, last, int(count)).tolist()
        else:
            raise DataError(f"--alphas {text}: both ends must be finite and > 0 (name 0 and inf by themselves), and "
                            f"the count a whole number from 1 to {_MOST:,}")  # fmt: skip
    return alphas


def dynamic_drf(options: argparse.Namespace) -> int:
    """`fairopt dynamic-drf FILE [--order USER ...]`: tasks of all users after each arrival."""
    from ... import scheduling

    found = scheduling.dynamic_drf(opened(options).cluster, options.order).tasks
    return _screen.give(found.reset_index(allow_duplicates=True), options)


def hug(options: argparse.Namespace) -> int:
    """`fairopt hug FILE`: progress of each tenant, and its bandwidth on each link, in the units of capacities."""
    from ... import scheduling

    found = scheduling.hug(opened(options).cluster).to_frame()
    return _screen.give(found.reset_index(allow_duplicates=True), options)


def completion(options: argparse.Namespace) -> int:
    """`fairopt completion SHELL`: print the completion script, to be used as `eval "$(fairopt completion bash)"`."""
    shtab = of_an_extra("shtab")
    from ...harness import papers
    from ...harness.experiment import known
    from ...harness.report import figures

    root: argparse.ArgumentParser = options.parser
    root.prog = "fairopt"
    sub = next(action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    names = {("figures", "names"): list(figures.known())}
    for each in (("tables", "names"), ("sweep", "experiments"), ("results", "experiment")):
        names[each] = list(known())
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
