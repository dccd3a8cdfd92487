"""Tuning of the compiled best response of one server: tuples, which numba takes for constants."""

from __future__ import annotations

from typing import NamedTuple


class ResponseOptions(NamedTuple):
    """Newton's method in log level prices q (`_response`). Residuals and excess are relative to capacities."""

    #: It starts at a level of prices at which the fullest resource is off by less than the part `near`, found in at
    #: most `levels` attempts, and given up for steps of log level above `widest`: then everybody has all tasks.
    near: float = 0.3
    levels: int = 60
    widest: float = 1e4
    #: Most steps; they end below this residual.
    steps: int = 60
    exact: float = 1e-13
    #: Before step `first_free` only resources of which more than this part idles may turn out to be free.
    first_free: int = 2
    idle: float = 0.1
    #: The multiple of the identity that is added to the Jacobian.
    regular: float = 1e-13
    #: Log prices change by at most this in a step; a step of length t is taken if the residual falls by the part
    #: `descent t`, else it is shorter by `shorter`, at most `halvings` times in all.
    stride: float = 1.0
    descent: float = 0.1
    shorter: float = 0.4
    halvings: int = 5
    #: A step that leaves more than this part of the residual is followed by a search along it, and every fourth such
    #: one, `each`, by every price in turn; that ends a response if more than `stalled` is left of less than `fine`.
    good: float = 0.7
    each: int = 4
    stalled: float = 0.9
    fine: float = 1e-10


class DualOptions(NamedTuple):
    """One price in turn, and the search along a step (`_dual`)."""

    #: Bisection of one log price: first width, most values, excess and relative width at the end.
    width: float = 0.25
    values: int = 300
    excess: float = 1e-14
    narrow: float = 1e-15
    #: The search along a direction: most values, and the part of the first slope at which it ends; it grows by
    #: `longer`, and stays the part `inside` away from the ends of its interval.
    tries: int = 40
    flat: float = 0.1
    longer: float = 4.0
    inside: float = 0.1


#: What is used.
RESPONSE = ResponseOptions()
DUAL = DualOptions()
