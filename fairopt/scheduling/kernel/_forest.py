"""Trees of maxima of vectors, side by side in one table: where is the next leaf that has as much as is needed?

A tree of `size` leaves (a power of two) has its root in row `base + 1`; the children of row `k` are `2 k`, `2 k + 1`.
Trees of servers hold what is free, trees of groups minus what they demand: one fits the other where it is larger.

Maxima of two amounts may be those of two servers, neither of which has enough of both. So trees of servers have more
columns, `min_r(mix[c, r] free[r])`: what fits has no less of them than `min_r(mix[c, r] demand[r])`, and their maxima
are small where nobody has both. At 12,583 servers three such columns spare two of three rows that a search looks at.
"""

from __future__ import annotations

from ..._loops import compiled


@compiled(inline=True)
def enough(tree, row, sign, need, k):  # type: ignore[no-untyped-def]
    """Does a row of a tree have as much as `sign * need[k]` of everything?"""
    for r in range(need.shape[1]):
        if tree[row, r] < sign * need[k, r]:
            return False
    return True


@compiled(inner=True)
def raised(tree, base, node):  # type: ignore[no-untyped-def]
    """Put maxima right from the parent of `node` to the root."""
    node >>= 1
    while node >= 1:
        same = True
        for r in range(tree.shape[1]):
            left, right = tree[base + 2 * node, r], tree[base + 2 * node + 1, r]
            most = left if left > right else right
            if tree[base + node, r] != most:
                tree[base + node, r] = most
                same = False
        if same:
            return
        node >>= 1


@compiled(inline=True)
def set_leaf(tree, base, size, leaf, sign, table, k):  # type: ignore[no-untyped-def]
    """Write `sign * table[k]` into a leaf."""
    for r in range(tree.shape[1]):
        tree[base + size + leaf, r] = sign * table[k, r]
    raised(tree, base, size + leaf)


@compiled(inline=True)
def set_server(tree, base, size, leaf, mix, free, s):  # type: ignore[no-untyped-def]
    """Write what is free of a server into a leaf."""
    amounts, row = free.shape[1], base + size + leaf
    for r in range(amounts):
        tree[row, r] = free[s, r]
    for c in range(len(mix)):
        least = mix[c, 0] * free[s, 0]
        for r in range(1, amounts):
            least = min(least, mix[c, r] * free[s, r])
        tree[row, amounts + c] = least
    raised(tree, base, size + leaf)


@compiled(inline=True)
def clear_leaf(tree, base, size, leaf, nothing):  # type: ignore[no-untyped-def]
    """A leaf that never has enough."""
    for r in range(tree.shape[1]):
        tree[base + size + leaf, r] = nothing
    raised(tree, base, size + leaf)


@compiled(inner=True)
def next_leaf(tree, base, size, sign, need, k, begin):  # type: ignore[no-untyped-def]
    """The first leaf from `begin` on with enough, or -1."""
    if begin >= size:
        return -1
    node = size + begin if begin > 0 else 1
    while True:
        if enough(tree, base + node, sign, need, k):
            if node >= size:
                return node - size
            node = 2 * node
            continue
        while node & 1:  # a right child: everything below its parent is done
            node >>= 1
        if node == 0:
            return -1
        node += 1
