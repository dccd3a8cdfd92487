"""What each command does. What only some commands need, they import themselves."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import mechanisms
from ..errors import DataError
from ..model import _validate
from ..result import _show
from ..result.allocation import Allocation
from . import _screen
from ._json import print_json
from ._open import open_cluster
from ._slips import listed


def solve(options: argparse.Namespace) -> int:
    """`fairopt solve FILE --mechanism NAME`."""
    cluster, source = open_cluster(options.file, options.traces)
    if len(several := listed([options.mechanism]) or []) > 1:
        raise DataError(f"solve takes one mechanism, and these are {len(several)}; compare takes several")
    if options.out:
        from .. import report

        report.exportable(Path(options.out))
    mechanism, *more = mechanisms.parse(options.mechanism)
    if more:
        names = ", ".join(f"'{one}'" for one in (mechanism, *more))
        raise DataError(f"{options.mechanism} stands for several mechanisms ({names}); give its parameters")
    allocation = mechanism.solve(cluster, options.tol, solver=options.solver)
    if options.save:
        allocation.save(options.save)
    if options.out:
        report.export(allocation.to_frame().reset_index(), Path(options.out))
    if not options.json:
        if source is not None:
            _screen.say(source.splitlines())
        print(_show.text(allocation, allocation._columns(), _screen.width()))
        return 0
    print_json(
        {
            "mechanism": str(mechanism),
            "cluster": source or Path(options.file).name,
            "users": dict(zip(allocation.cluster.users, allocation.user_tasks.tolist(), strict=True)),
            "servers": list(allocation.cluster.servers),
            "tasks": allocation.tasks.tolist(),
            "prices": None if allocation.prices is None else allocation.prices.tolist(),
            "summary": allocation.summary(),
            "certificate": allocation.certificate.to_dict(),
            "stats": vars(allocation.stats) | {"versions": dict(allocation.stats.versions)},
            "notes": list(allocation.notes),
        }
    )
    return 0


def check(options: argparse.Namespace) -> int:
    """`fairopt check FILE`; exit 1 if the allocation misses the tolerance."""
    allocation = Allocation.load(options.file)
    tol = allocation.tol if options.tol is None else _validate.tolerance(options.tol)
    certificate = allocation.certificate
    passes = certificate.passes(tol)
    numbers = {"feasibility": certificate.feasibility, "optimality": certificate.optimality}
    if options.json:
        about = {"mechanism": allocation.mechanism, "measure": certificate.measure, "worst": certificate.worst}
        print_json(about | numbers | {"tol": tol, "passes": passes})
    else:
        print(f"{allocation.mechanism}: {'passes' if passes else 'fails'} at {tol:g}")
        print(f"feasibility: {certificate.feasibility:.1e}")
        print(f"{certificate.measure}: {certificate.optimality:.1e}")
        print(certificate.worst)
    return 0 if passes else 1


def compare(options: argparse.Namespace) -> int:
    """`fairopt compare FILE [--mechanisms ...]`; exit 1 if a mechanism that applies failed."""
    from .. import report
    from ..study.compare import compare as compare_all

    if options.out:
        report.exportable(Path(options.out))
    cluster, source = open_cluster(options.file, options.traces)
    frame = compare_all(
        cluster, listed(options.mechanisms), tol=options.tol, solver=options.solver, progress=not options.json
    )
    if options.out:
        report.export(frame.reset_index(), Path(options.out))
    if options.json:
        print_json(frame.reset_index().to_dict(orient="records"))
    else:
        table, others = report.comparison(frame)
        _screen.say((source or repr(cluster).splitlines()[0]).splitlines())
        print(_screen.table(table))
        _screen.say(f"- {line}" for line in others)
    failed = [status for status in frame["status"] if status != "ok" and not status.startswith("not applicable")]
    return 1 if failed else 0


def claims(options: argparse.Namespace) -> int:
    """`fairopt claims`; exit 1 if a claim is neither reproduced nor shown to be in error."""
    from .. import papers, report

    frame = papers.check(papers.claims(options.paper, options.item), progress=not options.json)
    columns = ["item", "paper", "instance", "claim", "printed", "ours", "verdict"]
    if options.json:
        print_json(frame.to_dict(orient="records"))
    else:
        print(_screen.table(frame[columns], 48))
        measured = frame[~frame["instance"].isin(papers.instances())]
        _screen.say([f"- {row['claim']}: {row['verdict']}; {row['note']}" for row in measured.to_dict("records")])
        kinds = frame["verdict"].str.split(",").str[0].value_counts()
        print("\n" + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    if options.out:
        every = [*columns, "note"]
        written = report.write(frame[every], Path(options.out), "claims", "Claims of the papers, checked")
        if not options.json:
            print(f"-> {', '.join(str(path) for path in written)}")
    return int((frame["verdict"] == papers.NOT_REPRODUCED).any())
