"""Lexicographic max-min in exact rational arithmetic: successive linear programs by a simplex method with fractions.

Nothing of fairopt and no floating point: small clusters of fractions, which doubles are.
"""

from __future__ import annotations

from fractions import Fraction

Row = list[Fraction]


def maximise(value: Row, rows: list[Row], bounds: Row) -> tuple[Fraction, Row]:
    """`max value y` over `y >= 0, rows y <= bounds`: feasible and bounded, or an assertion fails. Bland's rule."""
    count, size = len(value), len(rows)
    # Columns: y, slacks, one artificial variable that makes every row feasible, the bound.
    table = [
        [*row, *(Fraction(int(i == k)) for k in range(size)), Fraction(-1), bound]
        for i, (row, bound) in enumerate(zip(rows, bounds, strict=True))
    ]
    basis = [count + i for i in range(size)]
    artificial = count + size

    def pivot(i: int, j: int) -> None:
        scale = table[i][j]
        table[i] = [entry / scale for entry in table[i]]
        for k in range(size):
            if k != i and table[k][j] != 0:
                factor = table[k][j]
                table[k] = [a - factor * b for a, b in zip(table[k], table[i], strict=True)]
        basis[i] = j

    def run(cost: Row, allowed: int) -> None:
        while True:
            paid = [cost[b] for b in basis]
            entering = None
            for j in range(allowed):
                if j not in basis and cost[j] > sum(p * table[i][j] for i, p in enumerate(paid) if p):
                    entering = j
                    break
            if entering is None:
                return
            ratios = [(table[i][-1] / table[i][entering], basis[i], i) for i in range(size) if table[i][entering] > 0]
            assert ratios, "unbounded"
            pivot(min(ratios)[2], entering)

    worst = min(range(size), key=lambda i: table[i][-1])
    if table[worst][-1] < 0:
        pivot(worst, artificial)
        run([Fraction(0)] * artificial + [Fraction(-1)], artificial + 1)
        if artificial in basis:
            i = basis.index(artificial)
            assert table[i][-1] == 0, "infeasible"
            pivot(i, next(j for j in range(artificial) if table[i][j] != 0))
    run([*value, *[Fraction(0)] * (size + 1)], artificial)
    point = [Fraction(0)] * count
    for i, j in enumerate(basis):
        if j < count:
            point[j] = table[i][-1]
    return sum((v * y for v, y in zip(value, point, strict=True)), Fraction(0)), point


def leximin(
    capacity: list[Row],
    demand: list[Row],
    eligible: list[list[bool]],
    share: Row,
    limit: list[Fraction | None],
    floor: Row | None = None,
) -> Row:
    """The lexicographically largest `share_n x_n`; 0 for who can run nothing. `limit`: most tasks, or None."""
    users, servers, resources = len(demand), len(capacity), len(capacity[0])
    pairs = [
        (n, i)
        for n in range(users)
        for i in range(servers)
        if eligible[n][i] and limit[n] != 0 and all(capacity[i][r] > 0 for r in range(resources) if demand[n][r] > 0)
    ]
    zero = Fraction(0)

    def level(n: int, factor: int, last: int) -> Row:
        return [factor * share[n] if m == n else zero for m, _ in pairs] + [Fraction(last)]

    rows, bounds = [], []
    for i in range(servers):
        for r in range(resources):
            rows.append([Fraction(demand[n][r]) if k == i else zero for n, k in pairs] + [zero])
            bounds.append(Fraction(capacity[i][r]))
    for n in range(users):
        if limit[n] is not None:
            rows.append([Fraction(1) if m == n else zero for m, _ in pairs] + [zero])
            bounds.append(limit[n])
        if floor is not None and floor[n] > 0:
            rows.append([Fraction(-1) if m == n else zero for m, _ in pairs] + [zero])
            bounds.append(-floor[n])
    final: dict[int, Fraction] = {n: zero for n in range(users) if all(m != n for m, _ in pairs)}
    while len(final) < users:
        free = [n for n in range(users) if n not in final]
        kept = [(level(n, -1, 0), -final[n]) for n in final if final[n] > 0]
        # The last variable is the common level.
        common, _ = maximise(
            [zero] * len(pairs) + [Fraction(1)],
            rows + [row for row, _ in kept] + [level(n, -1, 1) for n in free],
            bounds + [bound for _, bound in kept] + [zero] * len(free),
        )
        stuck = []
        for n in free:
            others = [(level(m, -1, 0), -common) for m in free if m != n]
            alone, _ = maximise(
                level(n, 1, 0),
                rows + [row for row, _ in kept + others],
                bounds + [bound for _, bound in kept + others],
            )
            if alone == common:
                stuck.append(n)
        assert stuck, "nobody is stuck, so the common level was not the largest"
        for n in stuck:
            final[n] = common
    return [final[n] for n in range(users)]
