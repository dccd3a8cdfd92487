"""What mechanisms are given: parameters of every kind, names and command lines, or an error that says what to do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from families import EXAMPLE
from numpy.testing import assert_allclose

from fairopt.errors import DataError
from fairopt.mechanisms import get, parse

ALPHA = ("alpha-fair", "alphapf-vds")
#: Dates were read as days, and imaginary parts were dropped.
NO_NUMBERS = (
    np.ma.array([1, 2], mask=[1, 0]), np.array([1j, 1]), np.array([1, 2], "M8[D]"), ["1", "2"], [10**400, 1]
)  # fmt: skip


def test_mechanisms_that_do_not_apply() -> None:
    for name in ("cmmf", "maxmin"):
        with pytest.raises(DataError, match=r"one resource, .*2; .*select\(resources=\['resource1'\]\)"):
            get(name).solve(EXAMPLE)
    with pytest.raises(DataError, match=r"task limit of user 'user1'.*cluster\.replace\(max_tasks=None\)"):
        get("per-server-drf").solve(EXAMPLE.replace(max_tasks=[1, np.inf]))
    assert get("per-server-drf").solve(EXAMPLE.replace(max_tasks=[100, np.inf])).certificate.passes()


@pytest.mark.parametrize("text", ["inf", "Infinity", "∞"])
def test_infinity_may_be_written_out(text: str) -> None:
    for name in ALPHA:
        assert get(name, alpha=text) == get(name, alpha=np.inf)
    with pytest.raises(DataError, match="alpha is '3', of type str"):
        get("alpha-fair", alpha="3")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("drf", {"resource_weights": ((1, 1),)}, r"resource_weights must be numbers > 0 of shape .*\(2, 2\)"),
        *(
            ("drf", {"resource_weights": ((1, odd), (1, 1))}, "weights must be numbers > 0.* finite")
            for odd in (0, np.inf)
        ),
        ("drf", {"resource_weights": pd.DataFrame([[1, 2], [3, 4]])}, "a DataFrame, whose labels would be ignored"),
        *(
            ("drf", {"resource_weights": weights}, "drf cannot use these parameters|resource_weights")
            for weights in ("a", [[1, 2], [3]], 1j)
        ),
        *((name, {"alpha": -1.0}, r"alpha is -1.*from 0 \(efficient\) to infinity") for name in ALPHA),
        *((name, {"alpha": np.nan}, "alpha is nan") for name in ALPHA),
        ("alphapf-vds", {"alpha": 10**400}, "alpha is a whole number of .*, beyond the range of numbers"),
        ("alpha-fair", {"share": "colour"}, "share 'colour' is not one of dominant, asset, task"),
        ("alpha-fair", {"share": (1, 2, 3)}, r"share must have shape \(2,\)"),
        (
            "alpha-fair",
            {"share": pd.Series({"user1": 1, "C": 1})},
            "share must have an entry per user, under its name; missing: user2; unknown: C",
        ),
        ("utilitarian", {"share": (1, 0)}, "'user2' must be > 0"),
        *(("utilitarian", {"share": share}, "the share per task must be numbers") for share in NO_NUMBERS),
        # A typing error must not be a silent default.
        *((name, {"scope": "everywhere"}, "scope") for name in ("ceei", "alpha-fair", "asset-fairness", "utilitarian")),
    ],
)
def test_bad_parameters(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        get(name, **parameters).solve(EXAMPLE)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        *(({"tol": tol}, r"tol is .*; it must be a number > 0") for tol in (0.0, -1.0, np.nan, np.inf, True, "2")),
        ({"tol": 10**5000}, "tol is a whole number of .*, beyond the range of numbers"),
        ({"engine": "warp"}, "no engine 'warp'; it has native, declarative"),
        ({"start": 3}, "start is of type int; it must be an allocation of solve, or None"),
    ],
)
def test_what_solve_refuses(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        get("drf").solve(EXAMPLE, **asked)


def test_servers_that_do_not_influence_each_other_cannot_respond() -> None:
    """alpha = 0 is a linear program per server: asking for best responses must not be answered by something else."""
    with pytest.raises(
        DataError, match=r"alphaPF-VDS\(alpha=0\) has no engine 'best-response'; it has equilibrium, decl"
    ):
        get("alphapf-vds", alpha=0).solve(EXAMPLE, engine="best-response")
    assert get("alphapf-vds", alpha=0.01).solve(EXAMPLE, engine="best-response").stats.engine == "best-response"
    assert get("alphapf-vds", alpha=0).solve(EXAMPLE, tol=np.float32(1e-3)).tol == pytest.approx(1e-3)


@pytest.mark.parametrize("two", [2, np.int64(2), np.int8(2), np.float32(2), np.float64(2), Fraction(2)])
@pytest.mark.parametrize(("name", "parameter"), [("alpha-fair", "alpha"), ("alphapf-vds", "alpha"), ("fds", "beta")])
def test_every_kind_of_number_is_a_parameter(name: str, parameter: str, two: float) -> None:
    mechanism = get(name, **{parameter: two})
    assert type(getattr(mechanism, parameter)) is float  # or a solver would count in single precision
    assert mechanism == get(name, **{parameter: 2.0})
    assert str(mechanism) == str(get(name, **{parameter: 2.0}))


@pytest.mark.parametrize("value", [True, np.bool_(True), "2", None, [2.0], 2j])
@pytest.mark.parametrize(("name", "parameter"), [("alpha-fair", "alpha"), ("alphapf-vds", "alpha"), ("fds", "beta")])
def test_what_is_no_number_is_refused(name: str, parameter: str, value: object) -> None:
    with pytest.raises(DataError, match=rf"{parameter} is .*; it must be a .*number"):
        get(name, **{parameter: value})


def test_shares_in_every_form() -> None:
    """Numbers as an array, a list, a tuple, a function of the cluster, or by name in any order."""
    wanted = get("alpha-fair", share=(1.0, 3.0)).solve(EXAMPLE).arrays.user_tasks
    by_name = pd.Series({"user2": 3.0, "user1": 1.0})
    forms = [1.0, 3.0], np.array([1.0, 3.0]), lambda cluster: np.array([1.0, 3.0]), by_name, lambda cluster: by_name
    for share in forms:
        assert_allclose(get("alpha-fair", share=share).solve(EXAMPLE).arrays.user_tasks, wanted)


# -- names and command lines ---------------------------------------------------------------------


def test_get_and_parse() -> None:
    from fairopt.base.registry import parameters
    from fairopt.mechanisms import names

    assert names() == sorted(names())
    assert get("ALPHAPF_vds", alpha=3) == get("alphapf-vds", alpha=3)
    assert parse("alphapf-vds(alpha=inf)") == (get("alphapf-vds", alpha=np.inf),)
    assert parse(" fds(beta=2, lam=-1) ") == (get("fds", beta=2, lam=-1),)
    assert parse("mqdrf(shares=(0.5, 0.4), sizes=(1, 2))")[0].sizes == (1, 2)  # type: ignore[attr-defined]
    assert parse("drf(resource_weights=[[1, 2], [3, 4]])")[0] == get("drf", resource_weights=((1, 2), (3, 4)))
    assert parameters("text", "names=[cpu, GPU], most=(1, inf)") == {"names": ["cpu", "GPU"], "most": (1, np.inf)}
    assert parse("ceei(scope=servers)") == (get("ceei", scope="servers"),)
    for word in ("curve", "best-response"):
        chosen = get("alphapf-vds", alpha=3, select=word)
        assert parse(str(chosen)) == (chosen,)
    assert len(parse("alphapf-vds")) == 2
    with pytest.raises(DataError, match=r"no mechanism 'drx'; known: .*drf"):
        parse("drx")
    with pytest.raises(DataError, match="is not a mechanism; write a name"):
        parse("drf + drfh")
    with pytest.raises(DataError, match=r"must be parameter=value"):
        parse("alpha-fair(3)")
    with pytest.raises(DataError, match="drfh does not take alpha; its parameters: none"):
        parse("drfh(alpha=1)")


@pytest.mark.parametrize(
    "inside",
    [
        "alpha=1)(alpha=2",
        "alpha=1).f(alpha=2",
        "alpha=1)[0](alpha=2",
        "alpha=1)+f(alpha=2",
        "alpha=1)#",
        "alpha=1, alpha=2",
        "**{'alpha': 2}",
        "*[1]",
        "alpha=1, 2",
        "alpha=-inf",
        "alpha=(x:=1)",
        "alpha={[]: 1}",
        "alpha=\0",
        f"alpha={'(' * 5000}1{')' * 5000}",
        f"alpha={'-' * 5000}1",
        f"alpha={'9' * 400}",
        f"alpha={'9' * 5000}",
        f"alpha={'[' * 90}1{']' * 90}",
    ],
    ids=range(18),
)
def test_what_stands_in_the_brackets_is_said_once(inside: str) -> None:
    """`alphapf-vds(alpha=1)(alpha=2)` was alpha = 2, without a word."""
    with pytest.raises(DataError):
        parse(f"alphapf-vds({inside})")
