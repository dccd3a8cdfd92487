r"""Solution methods: interior points, simplex and filling for welfare, max-min and the per-server game.

Notation: N users n, K servers i (k in stacks), R resources r. A pair is a user and a server that it may use, a row is a
resource of a server. docs/glossary.md has the symbols of the model. Arrays of a stack of B problems have a last axis
for the problems, except where a docstring states (B, ...). With :math:`A = \max(\alpha, 1)`:

=======  ====================  =================================================================================
symbol   shape                 meaning in `system`, `newton` and `game`, whose prices are levels
=======  ====================  =================================================================================
x, X     (N,)                  tasks of a user, in units of its largest gamma
z        (N, K)                fraction of gamma, :math:`x_{ni} / \gamma_{ni}`
D        (R, N, K), `use`      fraction of a row that gamma tasks use, :math:`\gamma_{ni} d_{nr} / c_{ir}`
v        (R, K)                price of a whole row as a level, :math:`(\lambda_{ir} c_{ir})^{1/A}`
xi       (N,)                  price of a task limit, an increase of the log cost over A
gain     (N, K)                log marginal welfare of gamma tasks at x = 1, over A
s        (N, K)                slack of a pair: log cost minus log marginal welfare, over A
w, left  (R, K), (N,)          idle fraction of a row, unused fraction of a limit
tau      (N, K)                gamma as a fraction of the user's limit; in homotopies the temperature
mu       (B,)                  complementarity products, which tend to 0
theta    (R, N, K), `share`    share of a row in the cost of a task
=======  ====================  =================================================================================

=======  ====================  =================================================================================
symbol   shape                 meaning in `market`, `algebra`, `welfare`, `level` and `leximin`
=======  ====================  =================================================================================
y        (pairs,)              tasks of a pair, in the user's unit (`level`: in units of level)
x, t     (N,), scalar          tasks of a user; common level of the users whose level is maximised
lam      (K, R)                price of a whole row, :math:`\lambda_{ir} c_{ir}`, in units of welfare
p        (N,)                  marginal welfare of a unit, net of the price of limits; `level`: price of a level
z, s     (pairs,), (N,)        reduced cost, cost minus p; `level`: excess of a user over its level
w        (K, R)                idle fraction of a row
xi, v    (limits,)             price and slack of a limit or floor
=======  ====================  =================================================================================

`power` and `ratio` (B,) are A and :math:`\alpha / A`; alpha, phi and u are those of the model. `choices`,
`first_order`, `refinement` and some modules of `game` define further letters at their beginning; there l is a level
or its logarithm, X are tasks of a user and x its tasks on one server, and y (K, R) is the use of rows.

Constants that several methods share are in `accuracy` (relative accuracies) and `central_path` (rules of interior-point
methods). Other constants were measured, and belong to one method.
"""
