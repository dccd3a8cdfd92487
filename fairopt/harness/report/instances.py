"""Library of instances: clusters with certified answers of all mechanisms, exact where rational arithmetic permits.

`data/instances.toml` has the recipe, and `data/instances.sha256` the checksums of data and of exact answers. Data and
exact answers do not depend on the processor: drawn amounts are rounded to 12 binary digits, and max-min is solved in
fractions. Other answers are floating-point numbers, which `tools/check.py` verifies to 1e-8. docs/instances.md has the
format.
"""

from __future__ import annotations

import hashlib
import io
import json
import runpy
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ... import mechanisms
from ...base import files as _files
from ...base import shipped
from ...base.errors import DataError, FairoptError
from ...certificates import rational
from ...mechanisms import Mechanism
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.criterion import FairnessEfficiency
from ...properties._tasks import exact_optimum, exact_tasks
from ...properties.witness import Witness
from ...result.allocation import Allocation
from ...result.allocation_file import tables
from ...workloads import open_source
from ..papers import instances as of_papers
from ..run import provenance
from .schemas import SCHEMAS

SET = "fairopt-instances-2"
#: Tolerance of answers in floating point.
TOLERANCE = 1e-9
Table = dict[str, Any]
RECIPE: Table = shipped.content(__package__, "data/instances.toml")


def _checksums() -> list[str]:
    return list(shipped.content(__package__, "data/instances.sha256").splitlines())


@cache
def checker() -> Table:
    """Names defined by tools/check.py, which shares no code with fairopt."""
    return runpy.run_path(str(shipped.folder("tools") / "check.py"), run_name="check")


# -- clusters ----------------------------------------------------------------------------------------------------------


@cache
def known() -> dict[str, Table]:
    """Kind, origin, mechanisms and queues of each instance by name; the entry `make` builds its cluster."""
    # The set never changes: examples of papers and witnesses that are added later are not part of it.
    found: dict[str, Table] = {}
    of_set = {line.split()[-1] for line in _checksums()}
    for name, one in of_papers().items():
        about = f"{one.paper}, {one.where}: {one.description}"
        found[f"paper-{name}"] = {"kind": "paper", "about": about, "make": one.build, "paper": one.paper}
    for path in sorted(shipped.folder("docs").glob("witnesses/*.json")):
        witness = Witness.load(path)
        about = f"{witness.mechanism} violates {witness.property}: {witness.text}"
        found[f"witness-{path.stem}"] = {
            "kind": "witness",
            "about": about,
            "make": partial(getattr, witness, "cluster"),
        }
    for kind in ("drf", "weighted", "queues"):
        text = (shipped.folder("vectors") / f"{kind}.json").read_text(encoding="utf-8")
        for vector in json.loads(text)["vectors"]:
            found[f"{kind}-{vector['name']}"] = _of_vector(vector, kind)
    for one in RECIPE["kind"]:
        for seed, size in enumerate(one["sizes"]):
            tree = {"queues": _groups(size[0], one["groups"]), "combine": "sum"} if "groups" in one else {}
            name = f"{one['name']}-{size[0]}x{size[1]}-{seed + 1}"
            found[name] = one | tree | {"kind": one["name"], "make": partial(_drawn, one, size, seed)}
    return {name: one for name, one in found.items() if name in of_set}


def _groups(users: int, count: int) -> Table:
    """Queues of weights 1, 2, ..., to which users are assigned in turn."""
    queues: Table = {f"group{k + 1}": {"weight": k + 1.0} for k in range(count)}
    return queues | {f"user{n + 1}": {"parent": f"group{n % count + 1}"} for n in range(users)}


def _double(text: str | None) -> float:
    """Double nearest to a fraction; infinity for None."""
    return np.inf if text is None else float(Fraction(text))


def _of_vector(vector: Table, kind: str) -> Table:
    """Instance of a vector in `vectors/`; for queues also the table of queues, and the tasks as fractions."""
    users, about = [node for node in vector["nodes"] if node["demand"]], {"kind": kind, "about": vector["source"]}
    amounts = [[*map(_double, vector["capacity"])]], [[*map(_double, node["demand"])] for node in users]
    weight, limits = ([_double(node[key]) for node in users] for key in ("weight", "wants"))
    names = [f"r{k}" for k in range(len(vector["capacity"]))], [node["name"] for node in users]
    about["make"] = partial(Cluster, *amounts, weight, None, limits, *names)
    if kind == "queues":
        about |= {"paper": "queues", "queues": {}, "combine": vector["combine"], "tasks": [n["tasks"] for n in users]}
        for node in vector["nodes"]:
            bounds = {key: {f"r{k}": _double(most) for k, most in node[key].items()} for key in ("quota", "limit")}
            numbers = {key: _double(node[key]) for key in ("weight", "priority")}
            about["queues"][node["name"]] = {"parent": node["parent"], **numbers, **bounds}
    return about


def _drawn(kind: Table, size: list[int], seed: int) -> Cluster:
    """Draw a cluster of small integers with the features of its kind (limits, zeros, rates, ...), or by its source."""
    if "source" in kind:
        return rounded(open_source(kind["source"].format(*size, seed=seed)).cluster)
    rng = np.random.default_rng([seed, *kind["name"].encode()])
    (n, k), m, most = size, kind.get("resources", 3), kind.get("most", 12)
    demand, capacity = rng.integers(1, most + 1, (n, m)) * 1.0, rng.integers(1, most + 1, (k, m)) * float(n)
    if part := kind.get("zeros"):
        demand *= rng.random((n, m)) >= part
        capacity *= rng.random((k, m)) >= part / 3
        demand[~demand.any(axis=1), 0] = 1.0
    low, high = kind.get("binary_weights", (0, 1))
    weight = 2.0 ** rng.integers(low, high, n)
    eligible = rng.random((n, k)) < kind.get("placement", 1.0)
    eligible[np.arange(n), rng.integers(k, size=n)] = True
    rate = rng.integers(1, 9, (n, k)) / 2 if kind.get("rates") else None
    found = Cluster(capacity, demand, weight, eligible, rate=rate)
    if part := kind.get("limits"):
        tasks = np.ceil(found.gamma.sum(axis=1) * rng.integers(1, 5, n) * part)
        found = found.replace(max_tasks=np.where(rng.random(n) < 0.7, tasks, np.inf))
    return found


def rounded(cluster: Cluster) -> Cluster:
    """Round all amounts of a cluster to 12 binary digits, which are the same on every processor."""
    found = {}
    for name in ("capacity", "demand", "max_tasks"):
        part, exponent = np.frexp(getattr(cluster, name))
        found[name] = np.ldexp(np.round(part * 4096), exponent - 12)
    return cluster.replace(**found)


# -- answers -----------------------------------------------------------------------------------------------------------


def answers(mechanism: Mechanism, cluster: Cluster, tasks: list[str] | None) -> Iterator[Table]:
    """Yield an exact answer where there is one, then an answer in floating point.

    The `tasks` (users,) that a vector states for a tree are exact; otherwise max-min is solved in fractions, and
    PS-DSF by nearby fractions that satisfy its definition. Such an answer of PS-DSF is not `fixed`, since other answers
    may exist.

    Raises
    ------
    DataError
        The mechanism is not defined on the cluster, or pools its servers, so that the answer is about another cluster.
    """
    if len(mechanism.prepare(cluster)[0].servers) != len(cluster.servers):
        raise DataError(f"{mechanism} is for one server")
    mechanism.check(cluster)
    rule = mechanism.criterion(cluster)
    limits = rule.limits(cluster)
    kind, alpha = checker()["RULES"][mechanism.name]
    parameters = {} if alpha is not None else {"alpha": "inf" if rule.alpha == np.inf else float(rule.alpha)}
    if mechanism.name == "alpha-fair" and rule.share_rule == "alone":
        kind = parameters["share"] = "alone"
    if isinstance(rule, FairnessEfficiency):
        parameters |= {"fair": rule.fair, "efficient": rule.efficient}
    said, share = {"mechanism": mechanism.name, "parameters": parameters}, None
    stated = partial(_stated, cluster, np.ones(len(cluster.users)) if mechanism.name == "tree" else rule.weight)
    if rule.scope not in ("game", "per_server"):
        amounts = (rational.numbers(one).tolist() for one in (cluster.capacity, cluster.demand))
        share = checker()["shares"](kind, *amounts, cluster.rate.tolist() if cluster.rated else None)
    if tasks is not None:
        exact = np.array([*map(Fraction, tasks)])[:, None]
        yield said | stated(share, exact, _full(cluster, exact)) | {"fixed": True}
    elif rule.alpha == np.inf and not rule.floor.any() and rational.tried(cluster, limits) and mechanism.name != "tree":
        if share is None and (found := exact_tasks(mechanism, cluster)) is not None:
            yield said | stated(share, found, None) | {"fixed": rule.scope != "game"}
        elif share is not None and (best := exact_optimum(cluster, rule, np.array([u or Fraction(1) for u in share]))):
            yield said | stated(share, best.tasks, best.prices) | {"fixed": True}
    answer = mechanism.solve(cluster, TOLERANCE)
    yield said | stated(share, np.maximum(answer.tasks, 0), _prices(answer))


def _full(cluster: Cluster, tasks: Any) -> Any:
    """Tables of prices of one server: for each exhausted resource, a table in which only this resource has a price."""
    use = (rational.numbers(cluster.demand).T @ tasks)[:, 0]
    return [np.diag(use)[None, r] for r in np.flatnonzero(use == rational.numbers(cluster.capacity)[0])]


def _prices(answer: Allocation) -> Any:
    """Tables (levels, servers, resources) of prices of an answer, in floating point; None if the answer has no prices.

    The largest price of a table, in the game of each server, is 1. At finite alpha the prices of resources that are not
    exhausted are 0.
    """
    cluster, logs = answer.cluster, answer.log_prices
    if logs is None and answer.criterion.scope != "game":
        logs = answer.judge(cluster, answer.tasks, None)[1]
    if logs is None:
        return None
    logs = logs.reshape(-1, *cluster.capacity.shape)
    if answer.criterion.alpha < np.inf:
        logs = np.where(
            cluster.capacity - answer.tasks.T @ cluster.demand < TOLERANCE * cluster.capacity, logs, -np.inf
        )
    top = logs.max(axis=2 if answer.criterion.scope == "game" else (1, 2), keepdims=True)
    return np.exp(logs - np.where(top > -np.inf, top, 0))


def _stated(cluster: Cluster, weight: Array, share: Any, tasks: Any, prices: Any) -> Table:
    """Tasks, shares per task, levels and prices of an answer.

    Prices are scaled such that all capacities together cost 1, or those of each server if there is no `share`.
    """
    form = str if isinstance(tasks.flat[0], Fraction) else float

    def entries(table: Any) -> list[list[Any]]:
        return [[*map(int, place), form(table[tuple(place)])] for place in np.argwhere(table != 0)]

    found: Table = {"tasks": entries(tasks)}
    if share is not None:
        work = (tasks * (cluster.rate if cluster.rated else 1)).sum(axis=1)
        found["share"] = [None if u is None else form(u) for u in share]
        numbers = zip(work.tolist(), share, weight.tolist(), strict=True)
        found["levels"] = [None if u is None else form(Fraction(x) * u / Fraction(phi)) for x, u, phi in numbers]
    if prices is not None:
        axis = 1 if share is None else (0, 1)
        capacity = cluster.capacity if form is float else rational.numbers(cluster.capacity)
        worth = [(table, (table * capacity).sum(axis=axis, keepdims=True)) for table in prices]
        found["prices"] = [entries(table / np.where(total == 0, 1, total)) for table, total in worth if total.any()]
    return found


def data(name: str) -> tuple[Table, Cluster]:
    """Contents of the file of an instance, with checksum but without answers, and the cluster."""
    about = known()[name]
    said: Table = {key: about[key] for key in ("kind", "about", "queues", "combine") if key in about}
    said |= RECIPE["papers"].get(about.get("paper", ""), {})
    file: Table = {"fairopt_instances": 2, "name": name, **said, "cluster": tables(cluster := about["make"]())}
    return file | {"digest": checker()["digest"](file)}, cluster


def content(name: str) -> Table:
    """Contents of the file of an instance, with the answers that the verifier proves.

    `left_out` names the mechanisms that are defined on the cluster, but have no such answer.
    """
    (file, cluster), about = data(name), known()[name]
    chosen = [mechanisms.one(text) for text in {**RECIPE, **about}["answers"]]
    if "queues" in about:
        chosen = [mechanisms.get("tree", queues=about["queues"], combine=about["combine"])]
    file |= {"answers": [], "left_out": []}
    for mechanism in chosen:
        try:
            for answer in answers(mechanism, cluster, about.get("tasks")):
                p, *errors = checker()["verify"](file, answer)
                if any(rise > p.tol for rise in getattr(p, "proofs", ())):  # task limits prove these levels, not prices
                    pairs = zip(answer["prices"], p.proofs, strict=True)
                    answer["prices"] = [prices for prices, rise in pairs if rise <= p.tol]
                    p, *errors = checker()["verify"](file, answer)
                if all(error[0] <= p.tol for error in errors):
                    file["answers"].append(answer)
                    break
            else:
                file["left_out"].append(str(mechanism))
        except DataError:
            continue
        except FairoptError:
            file["left_out"].append(str(mechanism))
    return file


# -- the set -----------------------------------------------------------------------------------------------------------


def row(file: Table) -> Table:
    """Row of the index: sizes, numbers of answers, and checksums of data and of the answers that are `fixed`."""
    fixed = [[one["mechanism"], one["tasks"]] for one in file["answers"] if one.get("fixed")]
    counts = {key: len(file["cluster"][key]) for key in ("users", "servers", "resources")}
    exact = sum(any(isinstance(entry[2], str) for entry in one["tasks"]) for one in file["answers"])
    said = {key: file[key] for key in ("name", "kind", "digest", "left_out")}
    return said | counts | {
        "answers": len(file["answers"]), "exact": exact,
        "exact_digest": hashlib.sha256(json.dumps(fixed).encode()).hexdigest(),
    }  # fmt: skip


def _verified(place: Path) -> None:
    """Raise `FairoptError` unless the file has the instance that its name states, with correct answers."""
    try:
        file = json.loads(place.read_text(encoding="utf-8"))
        wrong = [text for *_, text, fails in checker()["instance"](file) if fails]
        wrong += ["it is another one"] * (file["name"] != place.stem)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        wrong = [str(error)]
    if wrong:
        raise FairoptError(f"{place} is not of {SET} ({wrong[0]}): delete it, and it is built again")


def export(folder: Path, chosen: list[str] | None = None) -> Iterator[Table]:
    """Build instances (`chosen`, by default all) one by one, yield rows of the index, and then write `folder.zip`.

    Existing files are verified and kept, so that an interrupted build can be resumed.

    Raises
    ------
    DataError
        There is no such instance.
    FairoptError
        Data or exact answers differ from the checksums of the set, or a file that exists has a wrong answer.
    """
    wanted = [*known()] if chosen is None else chosen
    if unknown := [name for name in wanted if name not in known()]:
        raise DataError(f"there is no instance {unknown[0]!r}; `fairopt bench list` names all")
    _files.folder(folder)
    rows, texts = [], {}
    for name in wanted:
        if (place := folder / f"{name}.json").is_file():
            _verified(place)
        else:
            text = json.dumps(content(name), separators=(",", ":"), allow_nan=False)
            _files.write(place, text + "\n", "instance")
        texts[f"instances/{name}.json"] = place.read_text(encoding="utf-8")
        rows.append(row(json.loads(texts[f"instances/{name}.json"])))
        yield rows[-1]
    sums = [f"{one['digest']} {one['exact_digest']} {one['name']}" for one in rows]
    texts |= {
        "README.md": (shipped.folder("docs") / "instances.md").read_text(encoding="utf-8"),
        "check.py": (shipped.folder("tools") / "check.py").read_text(encoding="utf-8"),
        "schema.json": json.dumps(SCHEMAS["instance"](), indent=1) + "\n",
        "instances.sha256": "\n".join([*sums, ""]),
    }
    made = {key: one for key, one in provenance().items() if key in ("fairopt", "commit", "versions", "python")}
    files = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
    index = {"set": SET, "licence": "Apache-2.0", "made_by": made, "instances": rows, "files": files}
    texts["index.json"] = json.dumps(index, indent=1) + "\n"
    with zipfile.ZipFile(archive := io.BytesIO(), "w") as bundle:
        for path in sorted(texts):  # the default date of ZipInfo is fixed, so that equal files make equal archives
            bundle.writestr(zipfile.ZipInfo(path), texts[path], zipfile.ZIP_DEFLATED, 9)
    _files.write(folder.with_name(f"{folder.name}.zip"), archive.getvalue(), "archive")
    if other := {*sums} - {*_checksums()}:
        raise FairoptError(f"not of {SET}, as data or exact answers have other checksums: {min(other).split()[2]}")
