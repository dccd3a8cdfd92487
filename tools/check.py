"""Check an allocation file (docs/allocation-file.md) with NumPy only: python check.py FILE
Prints the infeasibility of the tasks x[n,i] and their distance from the optimum of the file's criterion, with the place
of each. Exit code 0: both are within the file's `tol`; 1: they are not; 2: the file is invalid. No code is shared with
solvers.
Users n, servers i, resources r; c[i,r] capacity, phi[n] weight, d[n,r] demand per task, q[n] task limit, T[n] tasks,
rate[n,i] work of a task, by default 1; L[i,r] = log lambda[i,r] log price of a unit of resource, -inf for 0.
After reading all else is in work: x[n,i], X[n] = sum_i x[n,i], D[n,i,r] demand and u[n] share per unit of work,
gamma[n,i] = min_{r: D[n,i,r]>0} c[i,r]/D[n,i,r] monopoly work of n on i (0 if not eligible)."""

import json
import sys
from types import SimpleNamespace

import numpy as np

INF, MAX, TINY = float("inf"), sys.float_info.max, 5e-324  # largest finite number, smallest positive number


def need(condition, message):
    if not condition:
        raise ValueError(message)


def number(value, name, shape=(), low=-INF, null=None):
    """Parse a finite number >= low, or nested lists of this shape to an array; null yields `null` if that is given."""
    if shape:
        need(isinstance(value, list) and len(value) == shape[0], f"{name} must be a list of {shape[0]}")
        return np.array([number(part, f"{name}[{k}]", shape[1:], low, null) for k, part in enumerate(value)])
    known = type(value) in (int, float) and max(low, -MAX) <= value <= MAX
    need(known or (value is None and null is not None), f"{name} must be a finite number" + f" >= {low}" * (low > -INF))
    return null if value is None else float(value) + 0.0  # converts -0.0 to 0


def table(value, name, needed, optional):
    """Validate a JSON object: all needed keys, and no unknown ones."""
    need(isinstance(value, dict), f"{name} must be a table with {needed}")
    wrong = {key for key in needed.split() if value.get(key) is None} | {*value} - {*(needed + optional).split()}
    need(not wrong, f"{name}: missing or unknown {wrong}")
    return value


def read(path):
    """Read the file as arrays; a ValueError names an invalid entry."""
    with open(path, encoding="utf-8") as file:
        f = json.load(file, object_pairs_hook=lambda p: need(len(dict(p)) == len(p), f"a key twice: {p}") or dict(p))
    table(f, "file", "fairopt_allocation cluster tasks ", "criterion mechanism log_prices tol")
    need(f["fairopt_allocation"] == 1 and "criterion" in f, "fairopt_allocation must be 1, criterion a table or null")
    g = table(f["cluster"], "cluster", "resources servers users capacity demand ", "weight max_tasks eligible rate")
    for key in ("resources", "servers", "users"):
        good = isinstance(g[key], list) and {*map(type, g[key])} == {str} and len({*g[key]}) == len(g[key])
        need(good, f"cluster.{key} must be a list of distinct names")
    M, K, N = len(g["resources"]), len(g["servers"]), len(g["users"])
    rule = {"alpha": 0, "scope": "servers", "share": [1] * N} if f["criterion"] is None else f["criterion"]
    table(rule, "criterion", "alpha scope ", "share weight cap floor fair efficient queues combine")
    c, d = number(g["capacity"], "cluster.capacity", (K, M), 0), number(g["demand"], "cluster.demand", (N, M), 0)
    x, tol = number(f["tasks"], "tasks", (N, K)), number(f.get("tol", 1e-6), "tol", (), TINY)
    rate = number(g.get("rate", [[1] * K] * N), "cluster.rate", (N, K), 0)
    good = all(((t == 0) | ((t >= 1e-50) & (t <= 1e50))).all() for t in (c, d, rate))
    need(good, "cluster.capacity, cluster.demand and cluster.rate must be 0, or from 1e-50 to 1e50")
    need(d.any(axis=1).all(), f"cluster.demand[{d.any(axis=1).argmin()}] is nothing at all")
    limit = number(g.get("max_tasks", [None] * N), "cluster.max_tasks", (N,), 0, INF)
    q = np.minimum(limit, number(rule.get("cap", [None] * N), "criterion.cap", (N,), 0, INF))
    floor = number(rule.get("floor", [0] * N), "criterion.floor", (N,), 0)
    eligible = number(g.get("eligible", [[1] * K] * N), "cluster.eligible", (N, K), 0)
    need(np.isin(eligible, (0, 1)).all(), "cluster.eligible must be 0 or 1")
    by_task = (rate == 1).all() or (not floor.any() and rule.get("queues") is None)
    need(by_task, "criterion.floor and .queues are in tasks, and are not checked where cluster.rate is not 1")
    eligible, rate = eligible * (rate > 0), np.where(rate > 0, rate, 1.0)
    alpha, scope = INF if rule["alpha"] == "inf" else number(rule["alpha"], "criterion.alpha", (), 0), rule["scope"]
    need(scope in ["pool", "servers", "game", "per_server"][: 3 + (alpha == INF)], f"criterion.scope is {scope!r}")
    own = scope in ("game", "per_server")  # shares per task are 1/gamma[n,i]
    need(not own or (rule.get("share") is None and not floor.any()), "criterion.share, .floor must be left out here")
    u = np.ones(N) if own else number(rule.get("share"), "criterion.share", (N,), TINY, INF)
    _, phi = (number(one.get("weight", g.get("weight", [1] * N)), "weight", (N,), TINY) for one in (g, rule))
    fair, efficient = (number(rule.get(key, 0), f"criterion.{key}", (), 0) for key in ("fair", "efficient"))
    fds = fair > 0 < efficient and alpha not in (0, 1, INF) and alpha <= 1e6 and not own
    need(fds or fair == efficient == 0, "criterion.fair and .efficient must be > 0, for alpha not 0 or 1, <= 1e6")
    queues, combine = rule.get("queues"), rule.get("combine", "sum")
    plain = alpha == INF and scope == "servers" and not {*rule} & {"weight", "cap", "floor", "fair", "efficient"}
    need(queues is None or plain, "criterion.queues are for alpha inf, scope servers, without weight, cap or floor")
    L = [[None] * M] * K if f.get("log_prices") is None else f["log_prices"]
    L = L if str(L).startswith("[[[") and alpha == INF and not own else [L]  # max-min may have a table for each level
    L = number(L, "log_prices", (len(L), K, M), -INF, -INF)
    gamma = np.array([(c[:, d[n] > 0] / d[n, d[n] > 0]).min(axis=1) for n in range(N)]) * eligible
    T, use, usable = np.maximum(x.sum(axis=1), 0), x.T @ d, (gamma > 0) & (q > 0)[:, None]
    # A limit of tasks that can bind a user whose rates differ is own time, which has a price.
    fast, slow = (f(np.where(usable, rate, end), axis=1) for f, end in ((np.max, 0.0), (np.min, INF)))
    timed = (fast > slow) & (gamma.sum(axis=1) > q) & (not own)
    x, gamma, D = x * rate, gamma * rate, d[:, None] / rate[..., None]  # from here tasks are work
    X = np.maximum(x.sum(axis=1), 0)
    reach = np.minimum(gamma.sum(axis=1), most := np.where(q > 0, q * fast, 0.0))
    who, used = np.flatnonzero(usable.any(axis=1)), usable.T @ (d > 0)  # pairs (i, r) with an eligible user
    pairs, rows = ([*zip(*np.nonzero(it), strict=True)] for it in (usable, used))
    words = {(i, r): f"{g['resources'][r]!r} of {g['servers'][i]!r}" for i, r in np.ndindex(K, M)}
    words |= {n: f"user {name!r}" for n, name in enumerate(g["users"])}
    return SimpleNamespace(**locals())


def worst(found):
    """Largest number and its place; NaN counts as infinite."""
    every = [(INF if np.isnan(e) else e, where) for e, where in [(0.0, "nobody"), *found]]
    return max(every, key=lambda one: float(f"{one[0]:.12g}"))  # the first of those equal up to rounding


def feasibility(p):
    """Relative violations `use/c - 1`, `T/q - 1`, `1 - T/floor`, `-x/gamma`; infinite for ineligible tasks."""
    found = [(p.use[k] / p.c[k] - 1, p.words[k]) for k in np.ndindex(p.c.shape) if p.use[k] != 0]
    found += [(T / max(p.q[n], sys.float_info.min) - 1, p.words[n]) for n, T in enumerate(p.T) if T > 0]
    found += [(1 - p.T[n] / low, p.words[n]) for n, low in enumerate(p.floor) if low > 0]
    stray = (p.x < 0) | ((p.x > 0) & (p.gamma == 0))
    return worst([*found, *((abs(p.x[n, i]) / p.gamma[n, i], p.words[n]) for n, i in np.argwhere(stray))])


def log_worth(p):
    """Log marginal utilities log m_ni: m = phi^alpha u^(1-alpha) X^-alpha, in the game with u = 1/gamma[n,i].
    FDS, F = fair log(S)/(1-alpha) + efficient log T: dF/dX = u (fair phi^alpha s^-alpha / S + efficient/T), s = u X."""
    a, log_u = p.alpha, np.log(1 / p.gamma if p.own else np.repeat(p.u[:, None], p.K, axis=1))
    log_phi, log_x, s = np.log(p.phi), np.log(p.X), np.log(p.u) + np.log(p.X)
    if not p.fair:
        return (1 - a) * log_u + (a * (log_phi - log_x)[:, None] if a > 0 else 0.0)
    fair = np.log(p.fair) + a * (log_phi - s) - np.logaddexp.reduce((a * log_phi + (1 - a) * s)[p.who])
    return log_u + np.logaddexp(fair, np.log(p.efficient) - np.logaddexp.reduce(s[p.who]))[:, None]


def error_at(p, m, tau, fitted):
    """Backward error e at a threshold tau, for prices as given, or `fitted` in the best scale."""
    game, A, idle = p.own, 1.0 if p.fair else max(p.alpha, 1.0), 1 - p.use / p.c
    unit = p.reach if p.alpha == 0 else p.X
    room, over = np.where(p.q < INF, np.maximum(1 - p.T / p.q, 0.0), INF), np.maximum(p.X / p.floor - 1, 0.0)
    L = np.where(p.used & (idle <= tau), p.L[0], -INF)  # prices are 0 where the slack exceeds tau
    top = L.max(axis=1, keepdims=True) if game else L.max()
    L = L - (top := np.where(top > -INF, top, 0.0))  # scaled by the largest, so that large logarithms do not cancel
    L[L < -1e4 * A] = -INF
    found = [(abs(idle[k]) if L[k] > -INF else max(-idle[k], 0.0), p.words[k]) for k in p.rows]
    # Log cost of a unit of work, log p_ni = log sum lambda D.
    cost = np.where(p.usable, np.logaddexp.reduce(L + np.log(p.D), axis=2), INF)
    least = cost.min(axis=1)  # log lowest cost, log p_n = min_i log p_ni
    # Stationarity holds at the lowest cost, in the game on each server; violations count as errors of demand or price.
    off = m - (cost if game else least[:, None])
    shift = np.ones(p.K) * (0.0 if fitted else top.ravel())
    there = (part := (p.x if game else p.X[:, None] + np.zeros(p.K)) / unit[:, None]) > tau
    for i in (range(p.K) if game else [slice(None)]) if fitted else ():  # one scale, in the game one per server
        mine = [k for k in p.pairs if (k[1] == i or not game) and np.isfinite(off[k])]
        high = [off[k] for k in mine if room[k[0]] > tau]
        top = max(high or [-INF])
        # In the game, pairs whose excess cost is larger than their share lose their tasks instead.
        low = [off[k] for k in mine if there[k] and (A * part[k] > top - off[k] if game else over[k[0]] > tau)]
        shift[i] = (max(high or [min(low)]) + min(low or [max(high)])) / 2 if high or low else 0.0
    left, room = room, np.where(p.timed, INF, room)
    top = np.maximum(worth := m - shift[0], np.where(p.usable, cost, -INF).max(axis=1, keepdims=True))
    time = time_price(p, np.exp(worth - top), np.exp(cost - top), left <= tau)
    if time.any():
        cost = np.where(time > 0, top + np.log(np.exp(cost - top) + time / p.rate), cost)
        off = m - (least := cost.min(axis=1))[:, None]
    off, lost, spent = off - shift, dict.fromkeys([*p.who, *p.rows], 0.0), np.zeros(p.N)
    for n, i in p.pairs:
        o, x, bought = off[n, i] / A, p.x[n, i], there[n, i]
        dear = max(-o, 0.0) if game else cost[n, i] - least[n] if cost[n, i] > least[n] else 0.0
        found.append((min(o, room[n]) if o > 0 else min(-o, over[n]) if bought and not game else 0.0, p.words[n]))
        if x > 0 and dear <= tau and (game or bought):
            found.append((dear, p.words[n]))
        elif x > 0:  # pairs of excess cost must lose their tasks, whose sums count as errors
            lost[n] += x / unit[n]
            spent[n] += x / p.rate[n, i] / p.q[n]
            for r in np.flatnonzero((p.d[n] > 0) & (L[i] > -INF)):
                lost[i, r] += x * p.D[n, i, r] / p.c[i, r]
    found += [(max(left[n], spent[n]), p.words[n]) for n in np.flatnonzero(time)]  # own time at a price is used up
    e, gap = worst([*found, *((e, p.words[k]) for k, e in lost.items())]), 0.0
    if e[0] < 1e-3 and not game and not p.floor.any():  # at active floors the cost may exceed marginal utility
        gap = welfare_gap(p, m[:, 0], L + shift[0]) / (100 * p.N * A)
    return worst([e, (gap, "welfare, which prices disprove")])


def time_price(p, worth, cost, used_up):
    """Least prices of own time, (users, 1), at which nobody would buy more, where all of it is used up."""
    lacking = np.where(p.usable, p.rate * (worth - cost), 0.0).max(axis=1)
    return np.where(p.timed & used_up, np.maximum(lacking, 0.0), 0.0)[:, None]


def welfare_gap(p, m, L):
    """Duality gap relative to `sum mX`, at prices in the scale of m; empirically at most about 2 N A e."""
    top, room = m[p.who].max(initial=-MAX), np.where(p.timed, np.maximum(p.q - p.T, 0), 0.0)
    cost, worth = np.where(p.usable, (p.D * (lam := np.exp(L - top))).sum(axis=2), INF), np.exp(m - top)
    time = time_price(p, worth[:, None], cost, room <= 1e-6 * p.q)
    cost = cost + time / p.rate
    more = worth - (least := cost.min(axis=1))
    gain = np.maximum(more * (p.reach - p.X), more * np.minimum(p.floor - p.X, 0))[p.who].sum()
    dear = sum(p.x[k] * (cost[k] - least[k[0]]) for k in p.pairs if p.x[k] > 0)
    idle = (lam * np.maximum(p.c - p.use, 0)).sum() + time[:, 0] @ room
    return (gain + dear + idle) / (worth * p.X)[p.who].sum() if len(p.who) else 0.0


def level_error(p):
    """Lexicographic rise over servers: largest relative increase of a user while all at or below its level keep theirs.
    At prices lambda the work of n costs P_n at the lowest cost, and P_n + extra_n as placed. The increase is at most
    (sum lambda (c - use) + sum_all extra + sum_{above h} P (1 - floor/X)) / P_n for users up to a level h >= n's, where
    raising n to h itself gives h / n's - 1; the bound is minimal over h and price tables."""
    level, rise = p.X * p.u / p.phi, np.full(p.N, INF)
    if not ((level[p.who] > 1e-290) & (level[p.who] < 1e290)).all():
        return INF, "levels beyond numbers"
    for L in np.where(p.used, p.L, -INF):
        lam = np.exp(L - max(L.max(), -MAX))  # normalised to a maximum of 1
        cost = np.where(p.usable, (p.D * (lam := np.where(lam > 1e-200, lam, 0.0))).sum(axis=2), INF)
        time = np.array([own_time(p, n, cost[n]) if p.timed[n] else 0.0 for n in range(p.N)])
        least = (cost := cost + time[:, None] / p.rate).min(axis=1)
        waste = (lam * np.maximum(p.c - p.use, 0)).sum() + sum(p.x[k] * (cost[k] - least[k[0]]) for k in p.pairs)
        waste += sum(time[n] * max(p.q[n] - p.T[n], 0) for n in np.flatnonzero(time))
        # Whoever loses all needs no price of time.
        spare, high = np.maximum(p.X - p.floor, 0) * least - time * np.where(p.timed, p.q, 0), level[p.who]
        free = np.array([waste + spare[p.who[high > h]].sum() for h in high])
        for n in p.who:
            if (P := p.X[n] * least[n]) > 1e-200:
                rise[n] = min(rise[n], np.maximum(high / level[n] - 1, free / P)[high >= level[n]].min())
    room = p.most / p.X - 1
    return worst((min(rise[n], room[n]), p.words[n]) for n in p.who)


def own_time(p, n, cost):
    """Price of own time of n at which it wastes least of what it pays; any price proves a bound.
    The best is where prices of work are slopes between two of the points (rate, cost of a task), (0, 0) among them."""
    here = np.flatnonzero(p.usable[n])
    a, C = np.append(p.rate[n, here], 0.0), np.append(p.rate[n, here] * cost[here], 0.0)
    slope = (C[:, None] - C)[apart := a[:, None] > a] / (a[:, None] - a)[apart]
    time = (slope[:, None] * a - C).max(axis=1)
    paid = (C[:-1] + time[:, None]) / a[:-1]
    waste = (paid - paid.min(axis=1, keepdims=True)) @ p.x[n, here] + time * max(p.q[n] - p.T[n], 0)
    return time[waste <= waste.min() + 1e-15 * (p.x[n, here] @ cost[here])].max()


def tree(p):
    """Nodes of the tree by name, the root None, with their entries, depth and users; names of users that can run."""
    known, nodes = {"parent", "weight", "priority", "quota", "limit"}, {None: {}}
    for name, given in p.queues.items():
        need(isinstance(given, dict) and not {*given} - known, f"criterion.queues.{name}: unknown {given}")
        nodes[name] = dict(given)
    who = {p.g["users"][n]: n for n in p.who}
    for user in who:
        nodes.setdefault(user, {})
    for user in {*p.g["users"]} - {*who}:
        nodes.pop(user, None)
    for name, node in nodes.items():
        node["weight"] = number(
            node.get("weight", float(p.phi[who[name]]) if name in who else 1), f"weight of {name}", (), TINY
        )
        node["priority"], node["users"] = number(node.get("priority", 0), f"priority of {name}"), []
        for kind in ("quota", "limit"):
            bounds = node.setdefault(kind, {}).items()
            rows = [(p.g["resources"].index(r), number(most, f"{kind} of {name}", (), 0)) for r, most in bounds]
            node[kind] = rows
    for user, n in who.items():
        line, at = [], user
        while at is not None:
            need(at in nodes and at not in line, f"criterion.queues: {at} above {user} is no queue, or below itself")
            need(at == user or at not in who, f"criterion.queues: the parent {at} is a user")
            line.append(at)
            at = nodes[at].get("parent")
        for k, name in enumerate(line):
            nodes[name]["users"].append(n)
            nodes[name]["depth"] = len(line) - k
    kept = {name: node for name, node in nodes.items() if name is None or node["users"]}
    return kept | {None: kept[None] | {"users": [*who.values()], "depth": 0}}, {n: user for user, n in who.items()}


def rates(p, nodes, names, rising):
    """Tasks per unit of time, (users,), while the users `rising` can rise."""
    rate, pool = np.zeros(p.N), p.c.sum(axis=0)
    below = {name: [] for name in nodes}
    for name, node in nodes.items():
        if name is not None:
            below[node.get("parent")].append(name)

    def active(name):
        can = [one for one in below[name] if rising[nodes[one]["users"]].any()]
        top = max((nodes[one]["priority"] for one in can), default=0)
        return [one for one in can if nodes[one]["priority"] == top]

    def size(name):  # of a rise by 1: parts of the pool, and what the children rise for each unit of weight
        if not below[name]:
            n = nodes[name]["users"][0]
            return p.d[n] / p.u[n] / np.where(pool > 0, pool, 1), 1.0
        parts = [nodes[one]["weight"] * size(one)[0] for one in active(name)]
        norm = sum(parts).max() if p.combine == "vector" else sum(nodes[one]["weight"] for one in active(name))
        return sum(parts) / norm, 1 / norm

    def pour(name, amount):
        if not below[name]:
            rate[nodes[name]["users"][0]] = amount / p.u[nodes[name]["users"][0]]
        each = size(name)[1] if below[name] and active(name) else 0.0
        for one in active(name):
            pour(one, amount * each * nodes[one]["weight"])

    pour(None, 1.0)
    return rate


def tree_error(p):
    """Relative rise that a user could have had when it stopped, at no loss to the tasks that all had by then.
    The tasks determine the path: all rise as the tree says until they have their tasks, quotas first, the deepest
    before those above. At prices lambda, n could rise by at most (sum lambda c - sum_m p_m x_m by then) / p_n, p the
    least cost of a task; by the room of limits above it; and to its own limit."""
    (nodes, names), x, now, seen = tree(p), np.zeros(p.N), 0.0, {}
    lam = [np.where(p.used, np.exp(L - max(L.max(), -MAX)), 0) for L in p.L]
    pay = [np.where(p.usable, p.d @ one.T, INF) for one in lam]
    cost = [one.min(axis=1) for one in pay]
    # Terms that are not negative, so that nothing cancels.
    waste = [(one * np.maximum(p.c - p.use, 0)).sum() for one in lam]
    waste = [w + sum(p.x[k] * (one[k] - one[k[0]].min()) for k in p.pairs) for w, one in zip(waste, pay, strict=True)]
    limits = [(node["users"], r, most) for node in nodes.values() for r, most in node["limit"]]
    alive, path = np.isin(np.arange(p.N), p.who), [(0.0, x)]
    depths = sorted({node["depth"] for node in nodes.values() if node["quota"]}, reverse=True)
    for depth in [*depths, None]:
        rows = [(node["users"], *row) for node in nodes.values() if node["depth"] == depth for row in node["quota"]]
        wants = (
            alive
            if depth is None
            else np.isin(np.arange(p.N), [n for users, r, _ in rows for n in users if p.d[n, r] > 0])
        )
        while True:
            may = alive & wants
            for users, r, most in rows:
                if p.d[users, r] @ x[users] >= most * (1 - 1e-12):
                    may[[n for n in users if p.d[n, r] > 0]] = False
            if not may.any():
                break
            rate = rates(p, nodes, names, may)
            done = (rate > 0) & (x >= p.X * (1 - 1e-12))
            if done.any():
                seen |= {n: (len(path) - 1, rate[n]) for n in np.flatnonzero(done)}
                alive &= ~done
                continue
            steps = [(p.X[n] - x[n]) / rate[n] for n in np.flatnonzero(rate > 0)]
            for users, r, most in rows:
                if (speed := p.d[users, r] @ rate[users]) > 0:
                    steps.append((most - p.d[users, r] @ x[users]) / speed)
            now += (step := max(min(steps), 0.0))
            x = np.minimum(x + step * rate, p.X)
            path.append((now, x))
    found = [
        (p.d[users, r] @ p.X[users] / max(most, 1e-300) - 1, f"limit of {p.g['resources'][r]}")
        for users, r, most in limits
    ]
    reach = np.minimum(p.gamma.sum(axis=1), p.q)
    for n, (k, rate) in seen.items():
        unit, rise = (p.X[n] if p.X[n] > 1e-9 * reach[n] else reach[n]), INF
        for later in (0.0, 1e-7):
            then = [one for time, one in path[k:] if time <= path[k][0] + later * unit / rate][-1]
            most = p.q[n] - p.X[n]
            for w, each in zip(waste, cost, strict=True):
                if each[n] > 1e-200:
                    most = min(most, (w + each[p.who] @ (p.X - then)[p.who]) / each[n])
            for users, r, bound in limits:
                if n in users and p.d[n, r] > 0:
                    most = min(most, max(bound - p.d[users, r] @ then[users], 0) / p.d[n, r])
            rise = min(rise, max(most / unit, later))
        found.append((rise, p.words[n]))
    return worst(found)


def bottleneck(p, servers):
    """Relative increase for alpha = inf, on proportional servers or on one server of the game, as a minimum over h:
    min over levels h >= n's: max(h / n's - 1, min_{r: D[n,r]>0} (idle_r + usage above h that can be freed) / (D X))"""
    i, d = servers[0], p.D[:, servers[0]]  # if several, their rates are equal
    here, users = p.x[:, servers].sum(axis=1), np.flatnonzero(p.usable[:, servers].any(axis=1))
    X = here if p.scope == "per_server" else p.X
    level = X / p.gamma[:, i] / p.phi if p.own else X * p.u / p.phi
    idle, found = np.maximum((p.c - p.use)[servers].sum(axis=0), 0), []
    if not ((level[users] > 1e-290) & (level[users] < 1e290)).all():
        return INF, "levels beyond numbers"
    free = {h: idle + ((here - p.floor).clip(0) * (level > h))[users] @ d[users] for h in level[users]}
    for n in users:
        # In scope per_server each server is considered alone, without the limits of total tasks.
        room = INF if X[n] == 0 or p.scope == "per_server" else max((p.q[n] - p.T[n]) * p.rate[n, i] / X[n], 0.0)
        rise, needed = room, d[n] > 0
        for h in (h for h in free if h >= level[n] > 0):
            rise = min(rise, max(h / level[n] - 1, (free[h][needed] / (d[n, needed] * X[n])).min()))
        found.append((rise, p.words[n]))
    return worst(found)


def error(p):
    """Error e: x is optimal for data changed by 3 e, alpha < 1: 5 e (any tau proves it); alpha inf: largest rise."""
    if p.queues is not None:
        return tree_error(p)
    if p.alpha == INF:
        shape, parts = p.c / p.c.max(axis=1, keepdims=True), [[i] for i in range(p.K)] if p.own else [[*range(p.K)]]
        # Proportional servers with the same eligible users, who have one rate each.
        as_one = (abs(shape - shape[0]) < 1e-11).all() and p.usable[p.who].all() and (p.fast == p.slow)[p.who].all()
        return worst(bottleneck(p, servers) for servers in parts) if p.own or as_one else level_error(p)
    m, best = log_worth(p), (INF, "a user without tasks, or beyond the range of numbers")
    for tau in (1e-6, 1e-9, 1e-12, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0) if np.isfinite(m[p.usable]).all() else ():
        if best[0] <= tau:
            break
        found = error_at(p, m, tau, False)
        best = min(best, found, found if found[0] <= tau else error_at(p, m, tau, True), key=lambda one: one[0])
    return best


if __name__ == "__main__":
    try:
        with np.errstate(all="ignore"):
            feasible = feasibility(p := read(sys.argv[1]))
            # Without a criterion only feasibility is claimed.
            e = feasible if feasible[0] == INF or p.f["criterion"] is None else error(p)
    except (IndexError, OSError, ValueError, RecursionError) as wrong:
        sys.exit(print(f"{sys.argv[1:]}: {wrong}") or 2)
    print("feasibility {:.3e}  largest for {}\nerror       {:.3e}  largest for {}".format(*feasible, *e))
    fails, by = int(max(feasible[0], e[0]) > p.tol), p.f["criterion"] and f"alpha {p.alpha:g}, {p.scope}"
    sys.exit(print(["pass", "FAIL"][fails], f"at {p.tol:g}, by {by or 'no criterion'}") or fails)
