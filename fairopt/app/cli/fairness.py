"""The command properties: violations, gains by misreports, saved counterexamples, and bounds on all mechanisms."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ... import mechanisms
from ... import properties as fairness
from ...base import clock, files, plugins
from ...base.errors import DataError
from ...base.libraries import of_an_extra, pd
from ...base.progress import tqdm
from ...mechanisms import Mechanism
from ...model import _validate
from ...model.cluster import Cluster
from ...properties._search import known_conditions
from ...properties._tasks import accepted
from ...properties.witness import Witness, written
from . import _screen
from ._open import opened
from ._screen import print_json
from ._slips import listed

#: Default CPU time in seconds for a FILE, such that the command including imports takes less than 20 s.
_SECONDS = 13.0
#: Properties about misreports.
_MISREPORTS = (
    "strategy-proofness",
    "strategy-proofness-placement",
    "strategy-proofness-counts",
    "group-strategy-proofness",
    "strong-group-strategy-proofness",
)


def properties(options: argparse.Namespace) -> int:
    """`fairopt properties`: check properties on a FILE, search for violations, bound mechanisms, or replay a file."""
    if options.possible:
        return _possible(options)
    for name in ("save", "conditions", "replay"):
        if options.file is not None and getattr(options, name):
            raise DataError(f"--{name} does not apply to the cluster in {options.file}; leave out one of them")
    if options.file is None and options.seconds is not None:
        raise DataError("--seconds applies to a FILE, and none is given; --trials bounds a search")
    if options.replay:
        return _replay(options)
    names = [fairness.get(name).name for name in listed(options.properties) or fairness.names()]
    given = listed(options.mechanisms)
    chosen = mechanisms.chosen(given) if given else fairness.surveyed()
    _validate.whole(options.seed, "--seed", 0)
    searched = options.file is None
    frame, words = (_searched(chosen, names, options), []) if searched else _reported(chosen, names, options)
    return _screen.give(frame, options, (lambda: _screen.say(words)) if words else None)


def _searched(chosen: list[Mechanism], names: list[str], options: argparse.Namespace) -> pd.DataFrame:
    """Search for counterexamples: one row per mechanism and property, with the violation of a small witness."""
    trials, jobs = (_validate.whole(getattr(options, name), name) for name in ("trials", "jobs"))
    conditions = known_conditions(listed(options.conditions) or [])
    about = {"trials": trials, "rng": options.seed, "conditions": conditions}
    pairs = [(mechanism, name) for mechanism in chosen for name in names]
    found: Iterable[Witness | str | None]
    if jobs == 1:
        found = (_search(mechanism, name, about) for mechanism, name in pairs)
    else:
        joblib = of_an_extra("joblib")
        needed = [(str(one.path), one.digest) for one in plugins.loaded()]
        found = joblib.Parallel(jobs, return_as="generator", batch_size=1)(
            joblib.delayed(_search)(written(mechanism), name, about, needed) for mechanism, name in pairs
        )
    shown = tqdm(found, total=len(pairs), disable=not _screen.shows_progress(options), unit="pair", leave=False)
    rows = []
    for (mechanism, name), one in zip(pairs, shown, strict=True):
        violation, text = 0.0 if one is None else np.nan, one or f"none in {trials} trials"
        if isinstance(one, Witness):
            violation, text = float(one.violation[0]), one.sentence
            if options.save:
                from ...harness.report.export import file_name  # imported only if needed, since the import takes long

                files.folder(Path(options.save))
                one.save(Path(options.save) / f"{file_name(f'{one.mechanism}--{name}')}.json")
        rows.append((str(mechanism), name, ", ".join(conditions) or "all", violation, text))
    return pd.DataFrame(rows, columns=["mechanism", "property", "clusters", "violation", "witness"])


def _search(
    mechanism: Mechanism | str, name: str, about: dict[str, Any], needed: Iterable[tuple[str, str]] = ()
) -> Witness | str | None:
    """Search for a witness, possibly in another process, after loading plug-ins.

    Return the witness, None if none is found, or a text on why no search applies.
    """
    plugins.needed(needed)
    try:
        return fairness.search(mechanism, name, **about)
    except DataError as error:
        return str(error)


def _reported(
    chosen: list[mechanisms.Mechanism], names: list[str], options: argparse.Namespace
) -> tuple[pd.DataFrame, list[str]]:
    """Check a given cluster: one row per mechanism and property, and sentences that summarise the results."""
    cluster = opened(options).cluster
    frames: list[pd.DataFrame] = []
    words: list[str] = []
    if not listed(options.mechanisms):  # without a choice, mechanisms that do not apply to the cluster are skipped
        chosen = [mechanism for mechanism in chosen if accepted(mechanism, cluster)]
    end = clock.cpu() + (_SECONDS if options.seconds is None else options.seconds)
    shown = None if _screen.shows_progress(options) else True
    with tqdm(total=len(chosen) * len(names), disable=shown, unit="property", leave=False) as bar:
        for place, mechanism in enumerate(chosen):
            bar.set_description(str(mechanism))
            share = max(end - clock.cpu(), 0.0) / (len(chosen) - place)
            about = {"changes": options.changes, "rng": options.seed, "seconds": share, "done": bar.update}
            frame = fairness.report(mechanism, cluster, names, **about)
            words += sentences(mechanism, mechanism.prepare(cluster)[0], frame, options.changes)
            frame = frame.reset_index()
            frame.insert(0, "mechanism", str(mechanism))
            frames.append(frame)
    if any(frame["witness"].str.contains(" the time").any() for frame in frames):
        words.append(
            "Not all properties were checked in time: raise --seconds, or name fewer of them or of --mechanisms"
        )
    return pd.concat(frames, ignore_index=True), words


def _possible(options: argparse.Namespace) -> int:
    """Print a bound on the worst-case welfare ratio of any mechanism with the given properties on the servers of FILE.

    The worst-case ratios of given mechanisms are printed as well.
    """
    if options.file is None:
        raise DataError("--possible applies to the servers of a cluster; name its FILE first")
    bound = fairness.possible(opened(options).cluster, listed(options.possible) or [], options.types)
    given = listed(options.mechanisms)
    reached = {str(each): bound.reached(each) for each in (mechanisms.chosen(given) if given else ())}
    if options.save:
        files.folder(Path(options.save))
        bound.save(Path(options.save) / "possible.json")
    if options.out:
        from ...harness import report

        report.export(bound.table, options.out)
    if options.json:
        print_json({"properties": bound.grid.properties, "bound": float(bound.bound), "fraction": str(bound.bound),
                    "reached": reached, "table": bound.table.to_dict(orient="records")})  # fmt: skip
    else:
        print(bound, *(f"{name} reaches {ratio:.6g}" for name, ratio in reached.items()), sep="\n")
    return 0


def _replay(options: argparse.Namespace) -> int:
    """Verify a saved counterexample or bound again."""
    witness = files.read_json(options.replay, "witness file", _saved)
    if isinstance(witness, fairness.Possible):
        found = str(witness.replay())
        print_json({"bound": found}) if options.json else print(witness, "verified again", sep="\n")
        return 0
    finding = witness.replay()
    if options.json:
        print_json({"mechanism": witness.mechanism, "property": witness.property, "user": finding.user,
                    "violation": float(finding.violation), "text": finding.text, "route": witness.route})  # fmt: skip
    else:
        print(dataclasses.replace(witness, text=finding.text))  # with the text of the replay, not with the stored text
        print("verified again")
    return 0


def _saved(document: Any) -> Witness | fairness.Possible:
    """Construct a witness or bound from a file, by the entry that names the kind."""
    bound = isinstance(document, dict) and "fairopt_possible" in document
    return fairness.Possible.of(document) if bound else Witness.of(document)


def sentences(mechanism: Mechanism, cluster: Cluster, frame: pd.DataFrame, changes: int) -> Iterator[str]:
    """Yield sentences on gains by misreports, other violations, properties without violation, and unchecked properties.

    `frame` is returned by `fairopt.properties.report`, and `cluster` is prepared by the mechanism.
    """
    loss, witness = frame["violation"], frame["witness"]
    yield f"{mechanism}"
    for misreport in (True, False):
        said = loss[loss.index.isin(_MISREPORTS) == misreport].dropna()
        for name, lost in said[said > 0].items():
            gain = lost / (1 - lost) if lost < 1 else float("inf")
            what = f"a misreport gains {gain:.1%} ({name})" if misreport else f"{name} is violated by {lost:.1%}"
            yield f"  {what}: {witness[name]}"
        if kept := [str(name) for name in said[said <= 0].index]:
            what = f"no misreport found that gains, of {changes} tried each" if misreport else "not violated"
            yield f"  {what}: {_proved(kept, mechanism, cluster, witness)}"
    for why in dict.fromkeys(witness[loss.isna()]):
        yield f"  {', '.join(frame.index[witness == why])}: {why}"


def _proved(names: list[str], mechanism: Mechanism, cluster: Cluster, witness: pd.Series) -> str:
    """Names of properties, each with `(proved)` if a claim of the mechanism covers the cluster, or with its status."""
    claimed = {one.property for one in mechanism.claims if one.holds and one.about(mechanism) and one.met(cluster)}
    words = {name: "proved" if fairness.get(name).name in claimed else witness[name] for name in names}
    return ", ".join(f"{fairness.get(name).name}{f' ({more})' if more else ''}" for name, more in words.items())
