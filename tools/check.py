"""Check an allocation file (docs/allocation-file.md), a file of instances, or their archive (docs/instances.md), by the
standard library alone: python check.py FILE
Prints the infeasibility of the tasks x[n,i] and their distance from the optimum of the file's criterion, with the place
of each. Exit code 0: both are within the file's `tol`; 1: they are not; 2: the file is invalid. No code is shared with
solvers. Max-min answers in fractions are judged in fractions: their error must be 0.
Users n, servers i, resources r; c[i][r] capacity, phi[n] weight, d[n][r] demand per task, q[n] task limit, T[n] tasks,
rate[n][i] work of a task, by default 1; L[i][r] = log lambda[i][r] log price of a unit of resource, -inf for 0.
After reading all else is in work: x[n][i], X[n] = sum_i x[n][i], D[n][i][r] demand and u[n] share per unit of work,
gamma[n][i] = min_{r: D[n][i][r]>0} c[i][r]/D[n][i][r] monopoly work of n on i (0 if not eligible)."""

import bisect
import hashlib
import json
import math
import sys
import zipfile
import zlib
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

INF, MAX, TINY = float("inf"), sys.float_info.max, 5e-324  # largest finite number, smallest positive number


def need(condition, message):
    if not condition:
        raise ValueError(message)


def number(value, name, shape=(), low=-INF, null=None):
    """Parse a finite number >= low, or nested lists of this shape; null yields `null` if that is given."""
    if shape:
        need(isinstance(value, list) and len(value) == shape[0], f"{name} must be a list of {shape[0]}")
        return [number(part, f"{name}[{k}]", shape[1:], low, null) for k, part in enumerate(value)]
    known = type(value) in (int, float, Fraction) and max(low, -MAX) <= value <= MAX
    need(known or (value is None and null is not None), f"{name} must be a finite number" + f" >= {low}" * (low > -INF))
    # Adding 0 converts -0.0 to 0.
    return null if value is None else value if type(value) is Fraction else float(value) + 0.0


def each(change, table):
    """A nested list of changed numbers, infinite ones as they are."""
    if isinstance(table, list):
        return [each(change, part) for part in table]
    return table if table == INF else change(table)


def table(value, name, needed, optional):
    """Validate a JSON object: all needed keys, and no unknown ones."""
    need(isinstance(value, dict), f"{name} must be a table with {needed}")
    wrong = {key for key in needed.split() if value.get(key) is None} | {*value} - {*(needed + optional).split()}
    need(not wrong, f"{name}: missing or unknown {wrong}")
    return value


def parse(text):
    """JSON without repeated keys."""
    return json.loads(text, object_pairs_hook=lambda p: need(len(dict(p)) == len(p), f"a key twice: {p}") or dict(p))


def read(path):
    """Read an allocation file; a ValueError names an invalid entry."""
    with open(path, encoding="utf-8") as file:
        return problem(parse(file.read()))


def over(a, b):
    """a / b, infinite where b is 0."""
    return a / b if b else INF if a > 0 else -INF if a < 0 else math.nan


def log(value):
    """Logarithm of a number or fraction of any size, -inf of 0."""
    if not value > 0:
        return -INF
    return math.log(value.numerator) - math.log(value.denominator) if type(value) is Fraction else math.log(value)


def log_sum(values):
    """log sum exp, without overflow."""
    top = max(values, default=-INF)
    return top + math.log(sum(math.exp(one - top) for one in values)) if top > -INF else top


def problem(f):
    """The numbers of an allocation file's content; a ValueError names an invalid entry."""
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
    good = all(t == 0 or 1e-50 <= t <= 1e50 for one in (c, d, rate) for row in one for t in row)
    need(good, "cluster.capacity, cluster.demand and cluster.rate must be 0, or from 1e-50 to 1e50")
    for n, row in enumerate(d):
        need(any(row), f"cluster.demand[{n}] is nothing at all")
    limit = number(g.get("max_tasks", [None] * N), "cluster.max_tasks", (N,), 0, INF)
    q = [*map(min, limit, number(rule.get("cap", [None] * N), "criterion.cap", (N,), 0, INF))]
    floor = number(rule.get("floor", [0] * N), "criterion.floor", (N,), 0)
    eligible = number(g.get("eligible", [[1] * K] * N), "cluster.eligible", (N, K), 0)
    need(all(one in (0, 1) for row in eligible for one in row), "cluster.eligible must be 0 or 1")
    by_task = all(one == 1 for row in rate for one in row) or (not any(floor) and rule.get("queues") is None)
    need(by_task, "criterion.floor and .queues are in tasks, and are not checked where cluster.rate is not 1")
    alpha, scope = INF if rule["alpha"] == "inf" else number(rule["alpha"], "criterion.alpha", (), 0), rule["scope"]
    need(scope in ["pool", "servers", "game", "per_server"][: 3 + (alpha == INF)], f"criterion.scope is {scope!r}")
    own = scope in ("game", "per_server")  # shares per task are 1/gamma[n][i]
    need(not own or (rule.get("share") is None and not any(floor)), "criterion.share, .floor must be left out here")
    u = [1.0] * N if own else number(rule.get("share"), "criterion.share", (N,), TINY, INF)
    _, phi = (number(one.get("weight", g.get("weight", [1] * N)), "weight", (N,), TINY) for one in (g, rule))
    fair, efficient = (number(rule.get(key, 0), f"criterion.{key}", (), 0) for key in ("fair", "efficient"))
    fds = fair > 0 < efficient and alpha not in (0, 1, INF) and alpha <= 1e6 and not own
    need(fds or fair == efficient == 0, "criterion.fair and .efficient must be > 0, for alpha not 0 or 1, <= 1e6")
    queues, combine = rule.get("queues"), rule.get("combine", "sum")
    plain = alpha == INF and scope == "servers" and not {*rule} & {"weight", "cap", "floor", "fair", "efficient"}
    need(queues is None or plain, "criterion.queues are for alpha inf, scope servers, without weight, cap or floor")
    exact = alpha == INF and any(type(one) is Fraction for row in x for one in row)
    tol = 0 if exact else tol
    c, d, x, rate, q, floor, u, phi = (
        each(Fraction if exact else float, one) for one in (c, d, x, rate, q, floor, u, phi)
    )
    L = [[None] * M] * K if f.get("log_prices") is None else f["log_prices"]
    L = L if str(L).startswith("[[[") and alpha == INF and not own else [L]  # max-min may have a table for each level
    L = number(L, "log_prices", (len(L), K, M), -INF, -INF)
    p = SimpleNamespace(**locals())
    vars(p).update(in_work(p))
    p.strict, p.prices = False, [prices(p, one) for one in L] if alpha == INF and not own else []
    return p


def in_work(p):
    """Quantities that follow from the numbers of a file, by name: use of resources, and all others in work."""
    M, K, N, g, own, c, d, x, q = p.M, p.K, p.N, p.g, p.own, p.c, p.d, p.x, p.q
    eligible, rate = p.eligible, p.rate
    eligible = [[a * (b > 0) for a, b in zip(*both, strict=True)] for both in zip(eligible, rate, strict=True)]
    rate = [[one if one > 0 else 1.0 for one in row] for row in rate]
    needs = [[r for r in range(M) if row[r]] for row in d]
    gamma = [[min(c[i][r] / d[n][r] for r in needs[n]) if eligible[n][i] else 0 for i in range(K)] for n in range(N)]
    T, use = [max(sum(row), 0) for row in x], [[0] * M for _ in range(K)]
    for n, row in enumerate(x):
        for i, tasks in enumerate(row):
            for r in needs[n] if tasks else ():
                use[i][r] += tasks * d[n][r]
    places = [[i for i in range(K) if gamma[n][i] > 0 < q[n]] for n in range(N)]
    who, pairs = [n for n in range(N) if places[n]], [(n, i) for n in range(N) for i in places[n]]
    rows = sorted({(i, r) for n, i in pairs for r in needs[n]})
    # A limit of tasks that can bind a user whose rates differ is own time, which has a price.
    fast, slow = ([end([rate[n][i] for i in places[n]], default=0) for n in range(N)] for end in (max, min))
    timed = [fast[n] > slow[n] and sum(gamma[n]) > q[n] and not own for n in range(N)]
    x, gamma = (
        [[a * b for a, b in zip(*both, strict=True)] for both in zip(one, rate, strict=True)] for one in (x, gamma)
    )
    # From here tasks are work.
    D = [[d[n] if a == 1 else [one / a for one in d[n]] for a in rate[n]] for n in range(N)]
    X, most = [max(sum(row), 0) for row in x], [q[n] * fast[n] if places[n] else 0 for n in range(N)]
    reach = [min(sum(gamma[n]), most[n]) for n in range(N)]
    words = {(i, r): f"{g['resources'][r]!r} of {g['servers'][i]!r}" for i in range(K) for r in range(M)}
    words |= {n: f"user {name!r}" for n, name in enumerate(g["users"])}
    return {name: value for name, value in locals().items() if name != "p"}


def prices(p, L):
    """Prices by (server, resource) of a table of logarithms, in the scale in which the largest is 1."""
    logs = {k: L[k[0]][k[1]] for k in p.rows}
    top = max(logs.values(), default=-INF)
    kept = {
        k: Fraction(math.exp(one - top)) if p.exact else math.exp(one - top) for k, one in logs.items() if one > -INF
    }
    return {k: one for k, one in kept.items() if one > 1e-200}


def worst(found):
    """Largest number and its place; NaN counts as infinite."""
    every = [(INF if one != one else one, where) for one, where in [(0, "nobody"), *found]]
    # The first of those equal up to rounding.
    return max(every, key=lambda one: one[0] if type(one[0]) is Fraction else float(f"{one[0]:.12g}"))


def feasibility(p):
    """Relative violations `use/c - 1`, `T/q - 1`, `1 - T/floor`, `-x/gamma`; infinite for ineligible tasks."""
    places = [(i, r) for i in range(p.K) for r in range(p.M)]
    found = [(over(p.use[i][r], p.c[i][r]) - 1, p.words[i, r]) for i, r in places if p.use[i][r]]
    found += [(over(T, p.q[n]) - 1, p.words[n]) for n, T in enumerate(p.T) if T > 0]
    found += [(1 - p.T[n] / low, p.words[n]) for n, low in enumerate(p.floor) if low > 0]
    for n, row in enumerate(p.x):
        for i, tasks in enumerate(row):
            if tasks < 0 or (tasks and not p.gamma[n][i]):
                found.append((over(abs(tasks), p.gamma[n][i]), p.words[n]))
    return worst(found)


def log_worth(p):
    """Log marginal utilities log m_ni: m = phi^alpha u^(1-alpha) X^-alpha, in the game with u = 1/gamma[n][i].
    FDS, F = fair log(S)/(1-alpha) + efficient log T: dF/dX = u (fair phi^alpha s^-alpha / S + efficient/T), s = u X."""
    a, m = p.alpha, {}
    s = {n: log(p.u[n]) + log(p.X[n]) for n in p.who}
    if p.fair:
        fair = math.log(p.fair) - log_sum([a * log(p.phi[n]) + (1 - a) * s[n] for n in p.who])
        efficient = math.log(p.efficient) - log_sum([*s.values()])
    for n, i in p.pairs:
        if p.fair:
            m[n, i] = log(p.u[n]) + log_sum([fair + a * (log(p.phi[n]) - s[n]), efficient])
        else:
            log_u = -log(p.gamma[n][i]) if p.own else log(p.u[n])
            m[n, i] = (1 - a) * log_u + (a * (log(p.phi[n]) - log(p.X[n])) if a > 0 else 0.0)
    return m


def error_at(p, m, tau, fitted):
    """Backward error e at a threshold tau, for prices as given, or `fitted` in the best scale."""
    game, A, unit = p.own, 1.0 if p.fair else max(p.alpha, 1.0), p.reach if p.alpha == 0 else p.X
    idle = {(i, r): 1 - p.use[i][r] / p.c[i][r] for i, r in p.rows}
    room = [max(1 - T / q, 0.0) if 0 < q < INF else INF for T, q in zip(p.T, p.q, strict=True)]
    above = [max(over(X, low) - 1, 0.0) if low or X else INF for X, low in zip(p.X, p.floor, strict=True)]
    L = {k: p.L[0][k[0]][k[1]] for k in p.rows if idle[k] <= tau}  # prices are 0 where the slack exceeds tau
    top = [max((one for k, one in L.items() if k[0] == i), default=-INF) for i in range(p.K)]
    # Scaled by the largest, so that large logarithms do not cancel.
    top = [one if one > -INF else 0.0 for one in (top if game else [max(top)] * p.K)]
    L = {k: one - top[k[0]] for k, one in L.items() if one - top[k[0]] >= -1e4 * A}
    found = [(abs(idle[k]) if k in L else max(-idle[k], 0.0), p.words[k]) for k in p.rows]
    priced = [[(r, L[i, r]) for r in range(p.M) if (i, r) in L] for i in range(p.K)]
    # Log cost of a unit of work, log p_ni = log sum lambda D, and the lowest, log p_n = min_i log p_ni.
    cost = {(n, i): log_sum([one + p.log_d[n][r] for r, one in priced[i]]) - p.log_rate[n][i] for n, i in p.pairs}
    least = {n: min(cost[n, i] for i in p.places[n]) for n in p.who}
    # Stationarity holds at the lowest cost, in the game on each server; violations count as errors of demand or price.
    off = {k: m[k] - (cost[k] if game else least[k[0]]) for k in p.pairs}
    shift = [0.0] * p.K if fitted else top
    part = {(n, i): (p.x[n][i] if game else p.X[n]) / unit[n] for n, i in p.pairs}
    for i in (range(p.K) if game else [None]) if fitted else ():  # one scale, in the game one per server
        mine = [k for k in p.pairs if i in (None, k[1]) and math.isfinite(off[k])]
        high = [off[k] for k in mine if room[k[0]] > tau]
        most = max(high, default=-INF)
        # In the game, pairs whose excess cost is larger than their share lose their tasks instead.
        kept = [k for k in mine if part[k] > tau and (A * part[k] > most - off[k] if game else above[k[0]] > tau)]
        low = [off[k] for k in kept]
        if high or low:
            best = (max(high or [min(low)]) + min(low or [max(high)])) / 2
            shift = [best if i in (None, j) else one for j, one in enumerate(shift)]
    time = dict.fromkeys(p.who, 0.0)
    for n in (n for n in p.who if p.timed[n] and room[n] <= tau):
        worth, most = m[n, p.places[n][0]] - shift[0], max(cost[n, i] for i in p.places[n])
        most = max(worth, most)
        paid = {i: math.exp(cost[n, i] - most) for i in p.places[n]}
        time[n] = time_price(p, n, math.exp(worth - most), paid)
        for i in p.places[n] if time[n] else ():
            cost[n, i] = most + log(paid[i] + time[n] / p.rate[n][i])
        least[n] = min(cost[n, i] for i in p.places[n])
        off |= {(n, i): m[n, i] - least[n] for i in p.places[n]}
    lost, spent = dict.fromkeys([*p.who, *p.rows], 0.0), dict.fromkeys(p.who, 0.0)
    for n, i in p.pairs:
        o, x, bought, free = (off[n, i] - shift[i]) / A, p.x[n][i], part[n, i] > tau, INF if p.timed[n] else room[n]
        dear = max(-o, 0.0) if game else cost[n, i] - least[n] if cost[n, i] > least[n] else 0.0
        found.append((min(o, free) if o > 0 else min(-o, above[n]) if bought and not game else 0.0, p.words[n]))
        if x > 0 and dear <= tau and (game or bought):
            found.append((dear, p.words[n]))
        elif x > 0:  # pairs of excess cost must lose their tasks, whose sums count as errors
            lost[n] += x / unit[n]
            spent[n] += x / p.rate[n][i] / p.q[n]
            for r, _ in priced[i]:
                lost[i, r] += x * p.D[n][i][r] / p.c[i][r]
    # Own time at a price is used up.
    found += [(max(room[n], spent[n]), p.words[n]) for n, one in time.items() if one > 0]
    e, gap = worst([*found, *((one, p.words[k]) for k, one in lost.items())]), 0.0
    if e[0] < 1e-3 and not game and not any(p.floor):  # at active floors the cost may exceed marginal utility
        gap = welfare_gap(p, m, {k: one + shift[0] for k, one in L.items()}) / (100 * p.N * A)
    return worst([e, (gap, "welfare, which prices disprove")])


def time_price(p, n, worth, cost):
    """Least price of own time at which a user would not buy more, at costs of work by server."""
    return max(0.0, *(p.rate[n][i] * (worth - one) for i, one in cost.items()))


def welfare_gap(p, m, L):
    """Duality gap relative to `sum mX`, at prices in the scale of m; empirically at most about 2 N A e."""
    log_m = {n: m[n, p.places[n][0]] for n in p.who}
    top, gap, welfare = max(log_m.values(), default=0.0), 0.0, 0.0
    lam = {k: math.exp(min(one - top, 709)) for k, one in L.items()}
    for n in p.who:
        worth, cost = math.exp(log_m[n] - top), costs(p, lam, n)
        spare = max(p.q[n] - p.T[n], 0.0) if p.timed[n] else 0.0
        if p.timed[n] and spare <= 1e-6 * p.q[n]:
            time = time_price(p, n, worth, cost)
            cost, gap = {i: one + time / p.rate[n][i] for i, one in cost.items()}, gap + time * spare
        least = min(cost.values())
        gap += max((worth - least) * (p.reach[n] - p.X[n]), (worth - least) * min(p.floor[n] - p.X[n], 0))
        gap += sum(p.x[n][i] * (one - least) for i, one in cost.items() if p.x[n][i] > 0)
        welfare += worth * p.X[n]
    idle = sum(one * max(p.c[i][r] - p.use[i][r], 0) for (i, r), one in lam.items())
    return over(gap + idle, welfare) if p.who else 0.0


def costs(p, lam, n):
    """Cost of a unit of work of n by server where it may run, without that of own time."""
    return {i: sum(lam[i, r] * p.D[n][i][r] for r in p.needs[n] if (i, r) in lam) for i in p.places[n]}


def lost(p, lam):
    """What is idle or paid too much at some prices, and the least costs and the prices of own time by user."""
    # Terms that are not negative, so that nothing cancels.
    waste = sum(one * max(p.c[i][r] - p.use[i][r], 0) for (i, r), one in lam.items())
    least, time = {}, dict.fromkeys(p.who, 0)
    for n in p.who:
        cost = costs(p, lam, n)
        if p.timed[n]:
            time[n] = own_time(p, n, cost)
            cost = {i: one + time[n] / p.rate[n][i] for i, one in cost.items()}
            waste += time[n] * max(p.q[n] - p.T[n], 0)
        least[n] = min(cost.values())
        waste += sum(p.x[n][i] * (one - least[n]) for i, one in cost.items() if p.x[n][i] and one > least[n])
    return waste, least, time


def rise_to(level, free, most, part):
    """Least over levels h >= the user's of max(h / level - 1, part(free[h])), at most `most`."""
    high = sorted(free)
    for h in high[bisect.bisect_left(high, level) :]:
        if h / level - 1 >= most:
            break
        most = min(most, max(h / level - 1, part(free[h])))
    return most


def level_error(p):
    """Lexicographic rise over servers: largest relative increase of a user while all at or below its level keep theirs.
    At prices lambda the work of n costs P_n at the lowest cost, and P_n + extra_n as placed. The increase is at most
    (sum lambda (c - use) + sum_all extra + sum_{above h} P (1 - floor/X)) / P_n for users up to a level h >= n's, where
    raising n to h itself gives h / n's - 1; the bound is minimal over h and price tables."""
    level = {n: p.X[n] * p.u[n] / p.phi[n] for n in p.who}
    rise, tiny = dict.fromkeys(p.who, INF), 0 if p.exact else 1e-200
    if not all(one > 0 if p.exact else 1e-290 < one < 1e290 for one in level.values()):
        return INF, "levels beyond numbers"
    p.proofs = []  # the least rise that a table of prices proves
    for lam in p.prices:
        below, least, time = lost(p, lam)
        free, best = {}, INF
        for n in sorted(p.who, key=level.get, reverse=True):
            free.setdefault(level[n], below)
            # Whoever loses all needs no price of time.
            below += max(p.X[n] - p.floor[n], 0) * least[n] - (time[n] * p.q[n] if time[n] else 0)
        for n in p.who:
            if (P := p.X[n] * least[n]) > tiny:
                here = rise_to(level[n], free, INF, lambda spare, P=P: spare / P)
                rise[n], best = min(rise[n], here), min(best, here)
        p.proofs.append(best)
    found = [(min(rise[n], p.most[n] / p.X[n] - 1), p.words[n]) for n in p.who]
    return worst([*found, *((best, "prices, some of which prove nothing") for best in p.proofs if p.strict)])


def own_time(p, n, cost):
    """Price of own time of n at which it wastes least of what it pays; any price proves a bound.
    The best is where prices of work are slopes between two of the points (rate, cost of a task), (0, 0) among them."""
    points = [(p.rate[n][i], p.rate[n][i] * one, p.x[n][i]) for i, one in cost.items()]
    every, found = [*points, (0.0, 0.0, 0.0)], []
    for slope in {(C - other) / (a - b) for a, C, _ in every for b, other, _ in every if a > b}:
        time = max(slope * a - C for a, C, _ in every)
        paid = [(C + time) / a for a, C, _ in points]
        waste = sum((one - min(paid)) * x for one, (_, _, x) in zip(paid, points, strict=True)) + time * max(
            p.q[n] - p.T[n], 0
        )
        found.append((waste, time))
    most = min(found)[0] + 1e-15 * sum(C / a * x for a, C, x in points)
    return max(time for waste, time in found if waste <= most)


def tree(p):
    """Nodes of the tree by name, the root None, with their entries, depth and users; names of users that can run."""
    known, nodes = {"parent", "weight", "priority", "quota", "limit"}, {None: {}}
    for name, given in p.queues.items():
        need(isinstance(given, dict) and not {*given} - known, f"criterion.queues.{name}: unknown {given}")
        nodes[name] = dict(given)
    names = {n: p.g["users"][n] for n in p.who}
    who = {name: n for n, name in names.items()}
    for user in who:
        nodes.setdefault(user, {})
    for user in {*p.g["users"]} - {*who}:
        nodes.pop(user, None)
    exactly = Fraction if p.exact else float
    for name, node in nodes.items():
        weight = node.get("weight", p.phi[who[name]] if name in who else 1)
        node["weight"] = exactly(number(weight, f"weight of {name}", (), TINY))
        node["priority"], node["users"] = number(node.get("priority", 0), f"priority of {name}"), []
        for kind in ("quota", "limit"):
            bounds = node.get(kind, {}).items()
            node[kind] = [
                (p.g["resources"].index(r), exactly(number(most, f"{kind} of {name}", (), 0))) for r, most in bounds
            ]
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
    return kept | {None: kept[None] | {"users": [*who.values()], "depth": 0}}, names


def rates(p, nodes, rising):
    """Tasks per unit of time by user, while the users `rising` can rise."""
    rate, pool = dict.fromkeys(p.who, 0), [sum(column) for column in zip(*p.c, strict=True)]
    below = {name: [] for name in nodes}
    for name, node in nodes.items():
        if name is not None:
            below[node.get("parent")].append(name)

    def active(name):
        can = [one for one in below[name] if rising.intersection(nodes[one]["users"])]
        top = max((nodes[one]["priority"] for one in can), default=0)
        return [one for one in can if nodes[one]["priority"] == top]

    def size(name):  # of a rise by 1: parts of the pool, and what the children rise for each unit of weight
        if not below[name]:
            n = nodes[name]["users"][0]
            return [d / p.u[n] / (c or 1) for d, c in zip(p.d[n], pool, strict=True)], 1
        parts = [[nodes[one]["weight"] * part for part in size(one)[0]] for one in active(name)]
        parts = [sum(column) for column in zip(*parts, strict=True)]
        norm = max(parts) if p.combine == "vector" else sum(nodes[one]["weight"] for one in active(name))
        return [part / norm for part in parts], 1 / norm

    def pour(name, amount):
        if not below[name]:
            rate[nodes[name]["users"][0]] = amount / p.u[nodes[name]["users"][0]]
        several = active(name) if below[name] else []
        once = size(name)[1] if several else 0
        for one in several:
            pour(one, amount * once * nodes[one]["weight"])

    pour(None, 1)
    return rate


def used(p, users, r, tasks):
    """What tasks of some users use of a resource, over all servers."""
    return sum(p.d[n][r] * tasks[n] for n in users if p.d[n][r])


def tree_error(p):
    """Relative rise that a user could have had when it stopped, at no loss to the tasks that all had by then.
    The tasks determine the path: all rise as the tree says until they have their tasks, quotas first, the deepest
    before those above. At prices lambda, n could rise by at most (sum lambda c - sum_m p_m x_m by then) / p_n, p the
    least cost of a task; by the room of limits above it; and to its own limit."""
    (nodes, _), x, now, seen = tree(p), dict.fromkeys(p.who, 0), 0, {}
    near = 1 if p.exact else 1 - 1e-12
    proofs = [lost(p, lam) for lam in p.prices]
    # Capacities are worth 1 where prices are strict: what is wasted of what nobody exhausts proves nothing.
    p.proofs = [waste for waste, _, _ in proofs]
    wasted = [(waste, "prices, some of which prove nothing") for waste in p.proofs if p.strict]
    limits = [(node["users"], r, most) for node in nodes.values() for r, most in node["limit"]]
    alive, path = {*p.who}, [(now, x)]
    depths = sorted({node["depth"] for node in nodes.values() if node["quota"]}, reverse=True)
    for depth in [*depths, None]:
        rows = [(node["users"], *row) for node in nodes.values() if node["depth"] == depth for row in node["quota"]]
        wants = {n for users, r, _ in rows for n in users if p.d[n][r]} if depth is not None else {*p.who}
        while True:
            may = alive & wants
            for users, r, most in rows:
                if used(p, users, r, x) >= most * near:
                    may -= {n for n in users if p.d[n][r]}
            if not may:
                break
            rate = rates(p, nodes, may)
            if done := {n for n in may if rate[n] > 0 and x[n] >= p.X[n] * near}:
                seen |= {n: (len(path) - 1, rate[n]) for n in done}
                alive -= done
                continue
            steps = [(p.X[n] - x[n]) / one for n, one in rate.items() if one > 0]
            for users, r, most in rows:
                if (speed := used(p, users, r, rate)) > 0:
                    steps.append((most - used(p, users, r, x)) / speed)
            now += (step := max(min(steps), 0))
            x = {n: min(have + step * rate[n], p.X[n]) for n, have in x.items()}
            path.append((now, x))
    found = [
        (over(used(p, users, r, p.X), most) - 1, f"limit of {p.g['resources'][r]}")
        for users, r, most in limits
        if used(p, users, r, p.X)
    ]
    for n, (k, rate) in seen.items():
        reach = min(sum(p.gamma[n]), p.q[n])
        unit, rise = (p.X[n] if p.X[n] > 1e-9 * reach else reach), INF
        for later in (0, 1e-7)[: 1 if p.exact else 2]:
            then = [one for time, one in path[k:] if time <= path[k][0] + later * unit / rate][-1]
            most = p.q[n] - p.X[n]
            for w, cost, _ in proofs:
                if cost[n] > (0 if p.exact else 1e-200):
                    most = min(most, (w + sum(cost[m] * (p.X[m] - then[m]) for m in p.who)) / cost[n])
            for users, r, bound in limits:
                if n in users and p.d[n][r]:
                    most = min(most, max(bound - used(p, users, r, then), 0) / p.d[n][r])
            rise = min(rise, max(most / unit, later))
        found.append((rise, p.words[n]))
    return worst([*found, *wasted])


def bottleneck(p, servers):
    """Relative increase for alpha = inf, on proportional servers or on one server of the game, as a minimum over h:
    min over levels h >= n's: max(h / n's - 1, min_{r: D[n][r]>0} (idle_r + usage above h that can be freed) / (D X))"""
    i, users = servers[0], [n for n in p.who if any(j in servers for j in p.places[n])]
    here = {n: sum(p.x[n][j] for j in servers) for n in range(p.N)}
    X = here if p.scope == "per_server" else p.X
    level = {n: (X[n] / p.gamma[n][i] if p.own else X[n] * p.u[n]) / p.phi[n] for n in users}
    if not all(one > 0 if p.exact else 1e-290 < one < 1e290 for one in level.values()):
        return INF, "levels beyond numbers"
    # What is idle or can be freed of each resource by lowering all above h; if several servers, their rates are equal.
    idle, free = [max(sum(p.c[j][r] - p.use[j][r] for j in servers), 0) for r in range(p.M)], {}
    for n in sorted(users, key=level.get, reverse=True):
        free.setdefault(level[n], idle)
        spare = max(here[n] - p.floor[n], 0)
        idle = [one + spare * d if d else one for one, d in zip(idle, p.D[n][i], strict=True)]
    found = []
    for n in users:
        # In scope per_server each server is considered alone, without the limits of total tasks.
        unbound = X[n] == 0 or p.scope == "per_server"
        rise = INF if unbound else max((p.q[n] - p.T[n]) * p.rate[n][i] / X[n], 0)
        needs = [(r, p.D[n][i][r] * X[n]) for r in p.needs[n]]
        rise = rise_to(level[n], free, rise, lambda spare, needs=needs: min(spare[r] / D for r, D in needs))
        found.append((rise, p.words[n]))
    return worst(found)


def error(p):
    """Error e: x is optimal for data changed by 3 e, alpha < 1: 5 e (any tau proves it); alpha inf: largest rise."""
    if p.queues is not None:
        return tree_error(p)
    if p.alpha == INF:
        shape, near = [[c / max(row) if c else 0 for c in row] for row in p.c], 0 if p.exact else 1e-11
        # Proportional servers with the same eligible users, who have one rate each.
        same = all(abs(a - b) <= near for row in shape for a, b in zip(row, shape[0], strict=True))
        as_one = same and all(len(p.places[n]) == p.K and p.fast[n] == p.slow[n] for n in p.who)
        servers = [[i] for i in range(p.K)] if p.own else [[*range(p.K)]]
        proved = as_one and not (p.strict and p.prices)
        return worst(bottleneck(p, some) for some in servers) if p.own or proved else level_error(p)
    m, best = log_worth(p), (INF, "a user without tasks, or beyond the range of numbers")
    p.log_d, p.log_rate = ([[log(one) for one in row] for row in some] for some in (p.d, p.rate))
    for tau in (1e-6, 1e-9, 1e-12, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0) if all(map(math.isfinite, m.values())) else ():
        if best[0] <= tau:
            break
        for fitted in (False, True):
            if best[0] > tau:
                best = min(best, error_at(p, m, tau, fitted), key=lambda one: one[0])
    return best


def judge(p):
    """Infeasibility and error, both infinite where numbers end."""
    try:
        feasible = feasibility(p)
        # Without a criterion only feasibility is claimed.
        return feasible, feasible if feasible[0] == INF or p.f["criterion"] is None else error(p)
    except ArithmeticError:
        return (INF, "numbers beyond range"), (INF, "numbers beyond range")


# Instances (docs/instances.md): a cluster and answers, whose criterion follows from the mechanism's name.

#: Share per task, or scope, and alpha, unless it is a parameter.
RULES = {
    **dict.fromkeys(("drf", "drfh", "cmmf", "maxmin", "mqdrf", "tree"), ("dominant", "inf")),
    **dict.fromkeys(("alpha-fair", "guaranteed-alpha-fair", "fds"), ("dominant", None)),
    **dict.fromkeys(("ceei", "bottleneck-fairness"), ("dominant", 1)),
    "utilitarian": ("dominant", 0),
    "tsf": ("alone", "inf"),
    "asset-fairness": ("sum", "inf"),
    "task-maxmin": ("tasks", "inf"),
    "gfj": ("tasks", None),
    "alphapf-vds": ("game", None),
    "ps-dsf": ("game", "inf"),
    "per-server-drf": ("per_server", "inf"),
}
POOLED = ("drf", "maxmin", "mqdrf", "fds", "gfj", "bottleneck-fairness")  # for one server
TOLERANCE = 1e-8  # of answers in floating point


def value(text):
    """A number, of a text the fraction."""
    return Fraction(text) if type(text) is str else text


def shares(kind, c, d, rate):
    """Exact share per task, or unit of work, by user; null for users who need what there is nothing of."""
    c, d, found = [tuple(each(Fraction, row)) for row in c], each(Fraction, d), []
    pool = [sum(column) for column in zip(*c, strict=True)]
    for n, row in enumerate(d):
        needs = [r for r, most in enumerate(row) if most]
        parts = [Fraction(1)] if kind == "tasks" else [row[r] / pool[r] if pool[r] else 0 for r in needs]
        if kind == "alone":  # equal servers at once
            several = Counter(zip(c, rate[n] if rate else [1] * len(c), strict=True)).items()
            work = sum(count * Fraction(a) * min(part[r] / row[r] for r in needs) for (part, a), count in several)
            parts = [1 / work if work else 0]
        found.append((sum if kind == "sum" else max)(parts) if all(parts) else None)
    return found


def digest(f):
    """SHA-256 of an instance's data."""
    data = {key: f[key] for key in ("cluster", "queues", "combine") if key in f}
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def numbers(entries, width, height, name):
    """Numbers by place of the entries [row, column, number]."""
    found = {(i, j): value(one) for i, j, one in entries}
    good = all(type(i) is type(j) is int and 0 <= i < height and 0 <= j < width for i, j in found)
    need(good and len(found) == len(entries), f"{name}: a place outside or twice")
    return found


def claimed(f, answer):
    """An answer of an instance as that of an allocation file, with the shares that follow from the mechanism's name."""
    table(answer, "answer", "mechanism tasks ", "parameters share levels prices fixed")
    name, g, given = answer["mechanism"], f["cluster"], answer.get("parameters", {})
    N, K, (kind, alpha) = len(g["users"]), len(g["servers"]), RULES[name]
    wanted = {*["alpha"] * (alpha is None), *["fair", "efficient"] * (name in ("fds", "gfj"))}
    need({*given} - {*["share"] * (name == "alpha-fair")} == wanted, f"{name} has parameters {wanted}")
    one = (K == 1 or name not in POOLED) and (len(g["resources"]) == 1 or name not in ("cmmf", "maxmin"))
    need(one and (name == "tree") == ("queues" in f), f"{name} is not for such clusters")
    rule = {"alpha": alpha, "scope": "servers"} | {key: given[key] for key in given if key != "share"}
    share = None
    if kind in ("game", "per_server"):
        rule["scope"] = kind
    else:
        share = rule["share"] = shares(given.get("share", kind), g["capacity"], g["demand"], g.get("rate"))
    if name == "tree":
        rule |= {key: f[key] for key in ("queues", "combine") if key in f}
    if name == "mqdrf":
        rule |= {"weight": [1] * N, "cap": [one and 1 / (N * one) for one in share]}
    empty = {"fairopt_allocation": 1, "cluster": g, "criterion": None, "tasks": [[0] * K] * N, "tol": TOLERANCE}
    if name == "guaranteed-alpha-fair":
        p = problem(empty)
        rule["floor"] = [min(phi / sum(p.phi) * sum(row), q) for phi, row, q in zip(p.phi, p.gamma, p.q, strict=True)]
    there = numbers(answer["tasks"], K, N, "tasks")
    tasks = [[there.get((n, i), 0) for i in range(K)] for n in range(N)]
    return problem(empty | {"criterion": rule, "tasks": tasks}), share


def apart(stated, found):
    """Relative difference of a stated number, none if both are null."""
    if stated is None or found is None:
        return 0 if stated is found else INF
    return abs(over(value(stated), found) - 1) if found else INF if value(stated) else 0


def verify(f, answer):
    """Problem, infeasibility and error of an answer of an instance: of the tasks, and of all that is stated of them."""
    p, share = claimed(f, answer)
    p.strict, p.prices = True, [numbers(one, p.M, p.K, "prices") for one in answer.get("prices", [])]
    # No price proves max-min of single servers, and there are no shares over servers in the game.
    need(not (p.own and p.alpha == INF and p.prices), "prices, which prove nothing here")
    for key in ("share", "levels"):
        good = key not in answer if share is None else len(answer[key]) == p.N
        need(good, f"{key} must be stated of every user, and of none in the game")
    found = []
    for lam in p.prices:
        need({*lam} <= {*p.rows} and all(one > 0 for one in lam.values()), "a price <= 0, or of what nobody needs")
        # Capacities are worth 1 at the prices of a level or of a server of the game.
        worth = {}
        for (i, r), one in lam.items():
            worth[i * p.own] = worth.get(i * p.own, 0) + one * p.c[i][r]
            found.append((0 if p.alpha == INF else 1 - p.use[i][r] / p.c[i][r], f"price of {p.words[i, r]}"))
        found += [(abs(one - 1), "prices, at which all is worth another amount than 1") for one in worth.values()]
    if p.alpha != INF and p.prices:
        p.L = [[[log(p.prices[0].get((i, r), 0)) for r in range(p.M)] for i in range(p.K)]]
    for n in range(p.N) if share is not None else ():
        level = None if share[n] is None else p.X[n] * p.u[n] / (1 if p.queues is not None else p.phi[n])
        found.append((apart(answer["share"][n], share[n]), f"share of {p.words[n]}"))
        found.append((apart(answer["levels"][n], level), f"level of {p.words[n]}"))
    feasible, e = judge(p)
    return p, feasible, worst([e, *found])


def instance(f):
    """Judge all answers of an instance: of each whether it is exact, its error, and what it is of."""
    table(f, "file", "fairopt_instances name kind about cluster digest answers ", "source doi queues combine left_out")
    need(f["fairopt_instances"] == 2 and f["digest"] == digest(f), "another version, or data of another digest")
    for answer in f["answers"]:
        p, *both = verify(f, answer)
        e = worst(both)
        yield p.exact, e[0], f"{f['name']}, {answer['mechanism']}: {float(e[0]):.3e}, {e[1]}", e[0] > p.tol


def archive(path):
    """The content of a file, or of the instances of an archive, whose files are those of its index."""
    if not zipfile.is_zipfile(path):
        with open(path, encoding="utf-8") as file:
            return [parse(file.read())]
    with zipfile.ZipFile(path) as bundle:
        files = parse(bundle.read("index.json"))["files"]
        need(sorted(bundle.namelist()) == sorted([*files, "index.json"]), "files that index.json does not name")
        for name, stated in files.items():
            need(hashlib.sha256(bundle.read(name)).hexdigest() == stated, f"{name} is not the file of index.json")
        return [parse(bundle.read(name)) for name in files if name.startswith("instances/")]


if __name__ == "__main__":
    try:
        files = archive(sys.argv[1])
        if len(files) != 1 or "fairopt_instances" in files[0]:
            found = [one for f in files for one in instance(f)]
            exact, most, wrong = (
                sum(one[0] for one in found),
                float(max(one[1] for one in found)),
                [o for o in found if o[3]],
            )
            print(*(one[2] for one in wrong), f"{len(files)} instances, {len(found)} answers, {exact} exact", sep="\n")
            sys.exit(print(f"{'FAIL' if wrong else 'pass'}, largest error {most:.1e}") or int(bool(wrong)))
        feasible, e = judge(p := problem(files[0]))
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, RecursionError,
            zipfile.BadZipFile, zlib.error) as wrong:  # fmt: skip
        sys.exit(print(f"{sys.argv[1:]}: {wrong}") or 2)
    print("feasibility {:.3e}  largest for {}\nerror       {:.3e}  largest for {}".format(*feasible, *e))
    fails, by = int(max(feasible[0], e[0]) > p.tol), p.f["criterion"] and f"alpha {p.alpha:g}, {p.scope}"
    sys.exit(print(["pass", "FAIL"][fails], f"at {p.tol:g}, by {by or 'no criterion'}") or fails)
