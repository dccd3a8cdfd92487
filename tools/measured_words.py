"""Measurements in words and tables: the sections of README.md and docs/alpha.md that `tools/readme.py` makes anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from textwrap import wrap

import pandas as pd

from fairopt.harness import cells, load
from fairopt.papers import Measurements, check, claims, measurements
from fairopt.papers._measured import EXPERIMENT
from fairopt.papers.pf_measured import come, interval_text

NAMES = {
    "small": "20 x 10", "dense": "100 x 20", "sparse": "100 x 20 sparse", "bitbrains": "Bitbrains", "google": "Google",
    "thousands": "2,000 x 60",
}  # fmt: skip
#: Alphas of tables in which all would be too many.
FEW = (0.1, 0.5, 0.9, 1.0, 1.1, 3.0, 8.0, 64.0, math.inf)
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
#: Alphas that behave alike, by their ends.
BANDS = ((0.1, 0.5), (0.7, 0.95), (1.0, 1.0), (1.05, 2.0), (3.0, 64.0), (math.inf, math.inf))
WAYS: tuple[tuple[str, float | None], ...] = (
    ("cyclic", None), ("random", None), ("cyclic", 0.8), ("cyclic", 0.5), ("cyclic", 0.2), ("jacobi", 0.2),
    ("jacobi", 0.5), ("jacobi", 0.8),
)  # fmt: skip


def sections() -> dict[str, Callable[[], str]]:
    """The generated sections by name."""
    made: dict[str, Callable[[Measurements], str]] = {
        "convergence": _sentences, "measured": _about, "rounds": _rounds, "residuals": _residuals, "ways": _ways,
        "ends": _ends, "seconds": _seconds, "equilibria": _equilibria,
    }  # fmt: skip
    return {name: lambda make=make: make(measurements()) for name, make in made.items()} | {"pf": _verdicts}


def _sentences(data: Measurements) -> str:
    """Convergence, time and utilization: three sentences."""
    small, vms, many = data.games("small"), data.games("bitbrains"), data.equilibria("thousands")
    (rough, last), every = (come(data, level)[0] for level in (1e-2, 1e-6)), come(data, 1e-2)[1]
    worst, slowest = float(small["rounds"].idxmax()), float(many["seconds"].drop(math.inf).idxmax())
    usual = data.solved[data.solved["cluster"] != "thousands"]["seconds"]
    real = {name: data.equilibria(name) for name in ("bitbrains", "google")}
    use, jain = ({a: [f"{one[what][a]:{form}}" for one in real.values()] for a in (0.1, 1.0, math.inf)}
                 for what, form in (("utilization", ".1%"), ("jain", ".2f")))  # fmt: skip
    three = [
        f"Servers that respond in turn do not take longer the larger alpha is: until nobody would change its tasks by "
        f"more than 1e-3, the median on 20 users and 10 servers is {_at(small, 0.1)} rounds at alpha = 0.1, "
        f"{_at(small, worst)} at {worst:g}, {_at(small, 1.0)} at 1, {_at(small, 64.0)} at 64 and "
        f"{_at(small, math.inf)} for PS-DSF, and on Bitbrains {_at(vms, 0.1)} at 0.1, {_at(vms, 1.0)} at 1 and "
        f"{_at(vms, 64.0)} at 64 (in brackets 95% intervals); of {every:,} games on five kinds of clusters "
        f"{rough / every:.1%} came to 1e-2 but {last / every:.0%} to 1e-6 in the 300 to 2,000 rounds they had.",
        f"The engine that solves for the equilibrium takes {usual.min():.2g} to {usual.max():.2g} s on up to 100 users "
        f"and 20 servers whatever alpha is, and with 2,000 users on 60 servers {_at(many, 1.0, 'seconds')} s at "
        f"alpha = 1, {_at(many, slowest, 'seconds')} s at {slowest:g} and {_at(many, math.inf, 'seconds')} s for "
        f"PS-DSF (medians).",
        f"From alpha = 0.1 over 1 to infinity utilization goes from {_over(use)} (Bitbrains and Google), and Jain's "
        f"index from {_over(jain)}.",
    ]
    return "\n\n".join("\n".join(wrap(sentence, 120, break_on_hyphens=False)) for sentence in three)


def _over(values: dict[float, list[str]]) -> str:
    low, middle, high = (" and ".join(values[alpha]) for alpha in (0.1, 1.0, math.inf))
    return f"{low} over {middle} to {high}"


def _at(frame: pd.DataFrame, alpha: float, what: str = "rounds") -> str:
    return interval_text(frame.loc[alpha], what)


def _about(data: Measurements) -> str:
    about = data.about
    draws = {name: int(data.equilibria(name)["n"].max()) for name in data.clusters()}
    games = {name: int(data.games(name, 1e-2)["n"].max()) for name in data.clusters()}
    rows = [
        {"name": NAMES[name], "cluster": about["clusters"][name], "draws": draws[name], "draws of games": games[name]}
        for name in data.clusters()
    ]
    planned = len(cells(load(EXPERIMENT)))
    days = about["from"] if about["from"] == about["to"] else f"{about['from']} to {about['to']}"
    who = f"fairopt at {', '.join(about['commits'])}, Python {', '.join(about['python'])}"
    said = (
        f"`{EXPERIMENT}`, {about['cells']:,} of its {planned:,} cells, {days}, {who}, one thread of a machine of "
        f"{about['cores']} cores. Seconds are by the clock: others used the machine while games were played, whose "
        "seconds are two to six times those of the processor; the engine had a core to itself."
    )
    return "\n".join(wrap(said, 120, break_on_hyphens=False)) + f"\n\n{_table(rows)}"


def _rounds(data: Measurements) -> str:
    return _by_alpha({NAMES[name]: data.games(name) for name in data.clusters()}, "rounds")


def _residuals(data: Measurements) -> str:
    rows = []
    for alpha in FEW:
        row: dict[str, object] = {"alpha": _alpha(alpha)}
        for level in LEVELS:
            row[f"{level:.0e}"] = _at(data.games("small", level), alpha)
        rows.append(row)
    return _table(rows)


def _ways(data: Measurements) -> str:
    rows = []
    for order, damping in WAYS:
        row: dict[str, object] = {"order": order, "part of the way": "1" if damping is None else f"{damping:g}"}
        for alpha in (0.5, 0.9, 1.0, 3.0, math.inf):
            row[f"alpha = {_alpha(alpha)}"] = _way(data.games("small", 1e-3, order, damping).loc[alpha])
        rows.append(row)
    return _table(rows)


def _way(games: pd.Series[float]) -> str:
    there = f"{games['there']:.0f}/{games['n']:.0f}"
    if math.isinf(games["rounds"]):
        return there
    return f"{there}: {games['rounds']:.0f}, {games['messages']:.0f}, {games['seconds']:.2g} s"


def _ends(data: Measurements) -> str:
    """Games that come to the last residual, of those played."""
    played = [(name, order) for name in data.clusters() for order in ("cyclic", "random")
              if len(data.games(name, LEVELS[-1], order))]  # fmt: skip
    rows = []
    for low, high in BANDS:
        row: dict[str, object] = {"alpha": _alpha(low) if low == high else f"{low:g} to {high:g}"}
        for name, order in played:
            of = data.games(name, LEVELS[-1], order).loc[low:high]
            row[f"{NAMES[name]}, {order}"] = f"{of['there'].sum()}/{of['n'].sum()}" if len(of) else ""
        rows.append(row)
    return _table(rows)


def _seconds(data: Measurements) -> str:
    return _by_alpha({NAMES[name]: data.equilibria(name) for name in data.clusters()}, "seconds")


def _equilibria(data: Measurements) -> str:
    rows = []
    for name in data.clusters():
        of = data.equilibria(name)
        for alpha in (0.1, 0.5, 1.0, 3.0, 8.0, math.inf):
            row = of.loc[alpha]
            rows.append({"cluster": NAMES[name] if alpha == 0.1 else "", "alpha": _alpha(alpha)} | {
                label: _mean(row, what, form) for what, label, form in (
                    ("utilization", "utilization", ".1%"), ("min_share", "smallest share", ".2%"),
                    ("jain", "Jain's index", ".3f"), ("price_of_fairness", "price of fairness", ".1%"),
                )})  # fmt: skip
    return _table(rows)


def _verdicts() -> str:
    frame = check(claims("PF", 35))
    rows = [
        {"PF": row["printed"], "here": row["claim"], "holds": row["ours"], "verdict": row["verdict"],
         "measured": row["note"]}
        for row in frame.to_dict("records")
    ]  # fmt: skip
    return _table(rows)


def _mean(row: pd.Series[float], what: str, form: str) -> str:
    half = row[f"+- {what}"]
    return format(row[what], form) + ("" if math.isnan(half) else f" ± {format(half, form)}")


def _by_alpha(frames: dict[str, pd.DataFrame], what: str) -> str:
    alphas = sorted({alpha for frame in frames.values() for alpha in frame.index})
    return _table(
        {"alpha": _alpha(alpha)}
        | {name: _at(frame, alpha, what) if alpha in frame.index else "" for name, frame in frames.items()}
        for alpha in alphas
    )


def _alpha(alpha: float) -> str:
    return "∞ (PS-DSF)" if math.isinf(alpha) else f"{alpha:g}"


def _table(rows: Iterable[dict[str, object]]) -> str:
    return str(pd.DataFrame(list(rows)).to_markdown(index=False, disable_numparse=True))
