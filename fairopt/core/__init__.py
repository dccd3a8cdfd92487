r"""Engines: one system of optimality conditions, for one problem or a stack, eliminated in the cheaper order.

Notation: N users n, K servers i, R resources r; a pair is a user and a server that it may use, a row a resource of a
server. docs/glossary.md has the symbols of the model. A stack of B problems adds an axis at the end. With
:math:`A = \max(\alpha, 1)`:

=======  ====================  =================================================================================
symbol   shape                 meaning in `system`, `newton` and `game` (prices as levels), unit
=======  ====================  =================================================================================
x, X     (N,)                  tasks of a user, in units of its largest gamma (curves: in tasks)
z        (N, K)                fraction of gamma, :math:`x_{ni} / \gamma_{ni}`
D        (R, N, K), `use`      fraction of a row that gamma tasks use, :math:`\gamma_{ni} d_{nr} / c_{ir}`
v        (R, K)                price of a whole row as a level, :math:`(\lambda_{ir} c_{ir})^{1/A}`
xi       (N,)                  price of a task limit, in units of log welfare over A
gain     (N, K)                :math:`e^{A\,gain}`: marginal welfare of gamma tasks at x = 1
s        (N, K)                slack of a pair: log cost minus log marginal welfare, over A
w, left  (R, K), (N,)          slack of a row, of a limit, as a fraction of it
tau      (N, K)                fraction of its limit that gamma tasks of a user are
mu       (B,)                  products that an interior point drives to 0
theta    (R, N, K), `share`    share of a row in the cost of a task
=======  ====================  =================================================================================

=======  ====================  =================================================================================
symbol   shape                 meaning in `market`, `algebra`, `welfare`, `level` and `leximin` (prices in money)
=======  ====================  =================================================================================
y        (pairs,)              tasks of a pair, in the user's unit (`level`: in units of level)
x, t     (N,), scalar          tasks of a user; common level of those who rise
lam      (K, R)                price of a whole row, :math:`\lambda_{ir} c_{ir}`, in units of welfare
p        (N,)                  marginal welfare of a unit, net of the price of limits; `level`: its cheapest cost
z, s     (pairs,), (N,)        reduced cost, cost minus p; `level`: excess of a user over t
w        (K, R)                idle fraction of a row
xi, v    (limits,)             price and slack of a limit or floor
=======  ====================  =================================================================================

Powers `power` and `ratio` (B,) are A and :math:`\alpha / A`; alpha, phi and u are those of the model. `choices`,
`first_order`, `last_digits` and single modules of `game` define further letters at their beginning; there l is a level
or its logarithm, X tasks of a user beside x on servers, and y (K, R) the use of rows.

Numbers that several methods share are those of `accuracy`, levels from rounding to what an allocation shows, and of
`central_path`, the rules of interior points. Any other number was measured, and is a constant of its method.
"""
