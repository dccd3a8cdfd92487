"""The command properties: violations by mechanism, users' gains on a cluster, and saved counterexamples."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ... import mechanisms
from ... import properties as fairness
from ...base import clock
from ...base.errors import DataError
from ...base.libraries import pd
from ...base.progress import tqdm
from ...mechanisms import Mechanism
from ...model import _validate
from ...model.cluster import Cluster
from ...properties._tasks import accepted
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
    """`fairopt properties [FILE] --mechanisms NAME ... --properties NAME ...`, or `--replay FILE`."""
    for name in ("save", "store", "matrix", "replay"):
        if options.file is not None and getattr(options, name):
            raise DataError(f"--{name} is not about the cluster in {options.file}; leave out one of them")
    if options.replay:
        return _replay(options)
    names = [fairness.get(name).name for name in listed(options.properties) or fairness.names()]
    given = listed(options.mechanisms)
    chosen = mechanisms.chosen(given) if given else fairness.surveyed()
    _validate.whole(options.seed, "--seed", 0)
    searched = options.file is None
    frame, words = (_searched(chosen, names, options), []) if searched else _reported(chosen, names, options)
    return _screen.give(frame, options, (lambda: _screen.say(words)) if words else None)


def _searched(chosen: list[mechanisms.Mechanism], names: list[str], options: argparse.Namespace) -> pd.DataFrame:
    """Search for counterexamples: one row per mechanism and property with the smallest witness, or a matrix."""
    found = fairness.survey(
        chosen,
        names,
        trials=options.trials,
        seconds=np.inf if options.seconds is None else options.seconds,
        store=options.store,
        jobs=options.jobs,
        seed=options.seed,
        progress=_screen.shows_progress(options),
    )
    if options.matrix:
        return fairness.matrix(fairness.frame(found)).reset_index()
    rows = []
    for one in found:
        nothing = one.note or f"none in {one.trials} trials"
        if one.witness is not None and options.save:
            Path(options.save).mkdir(parents=True, exist_ok=True)
            one.witness.save(Path(options.save) / f"{one.cell.name}.json")
        rows.append(
            {
                "mechanism": str(mechanisms.one(one.cell.mechanism)),
                "property": one.cell.property,
                "clusters": ", ".join(one.cell.conditions) or "all",
                "violation": np.nan if one.note else 0.0 if one.witness is None else float(one.witness.violation[0]),
                "witness": nothing if one.witness is None else one.witness.sentence,
            }
        )
    return pd.DataFrame(rows)


def _reported(
    chosen: list[mechanisms.Mechanism], names: list[str], options: argparse.Namespace
) -> tuple[pd.DataFrame, list[str]]:
    """Check a given cluster: one row per mechanism and property, and sentences that summarise them."""
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
        words.append("The time was short: --seconds gives more, --mechanisms and --properties ask for less")
    return pd.concat(frames, ignore_index=True), words


def _replay(options: argparse.Namespace) -> int:
    """Verify a saved counterexample again."""
    witness = fairness.Witness.load(options.replay)
    finding = witness.replay()
    if options.json:
        print_json({"mechanism": witness.mechanism, "property": witness.property, "user": finding.user,
                    "violation": float(finding.violation), "text": finding.text, "route": witness.route})  # fmt: skip
    else:
        print(dataclasses.replace(witness, text=finding.text))  # the replayed text takes the place of the stored one
        print("verified again")
    return 0


def sentences(mechanism: Mechanism, cluster: Cluster, frame: pd.DataFrame, changes: int) -> Iterator[str]:
    """Sentences on gains by misreports, other violations, properties without violation, and unchecked properties.

    `frame` is that of `fairopt.properties.report`, `cluster` the one prepared by the mechanism.
    """
    loss, witness = frame["violation"], frame["witness"]
    yield f"{mechanism}"
    for lie in (True, False):
        said = loss[loss.index.isin(_MISREPORTS) == lie].dropna()
        for name, lost in said[said > 0].items():
            gain = lost / (1 - lost) if lost < 1 else float("inf")
            what = f"a lie gains {gain:.1%} ({name})" if lie else f"{name} is violated by {lost:.1%}"
            yield f"  {what}: {witness[name]}"
        if kept := [str(name) for name in said[said <= 0].index]:
            what = f"no lie found that gains, of {changes} tried each" if lie else "not violated"
            yield f"  {what}: {_proved(kept, mechanism, cluster, witness)}"
    for why in dict.fromkeys(witness[loss.isna()]):
        yield f"  {', '.join(frame.index[witness == why])}: {why}"


def _proved(names: list[str], mechanism: Mechanism, cluster: Cluster, witness: pd.Series) -> str:
    """Names of properties, each with `(proved)` if the mechanism claims it for such clusters, or with its status."""
    claimed = {one.property for one in mechanism.claims if one.holds and one.about(mechanism) and one.met(cluster)}
    words = {name: "proved" if fairness.get(name).name in claimed else witness[name] for name in names}
    return ", ".join(f"{fairness.get(name).name}{f' ({more})' if more else ''}" for name, more in words.items())
