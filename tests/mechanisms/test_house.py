"""The first test of the house: a mechanism in 40 lines, defined here, takes part in everything without another line."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from laws.answers import Tally, check_answer
from strategies import clusters

from fairopt import mechanisms
from fairopt.engines.reference.program import Formulation, Leximin, Program, alpha_fair
from fairopt.errors import DataError
from fairopt.mechanisms import Mechanism
from fairopt.mechanisms._base import REGISTRY
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion, criterion

EXAMPLE = Cluster([[9, 18]], [[1, 4], [3, 1]])


@pytest.fixture(scope="module")
def mixed() -> Iterator[type[Mechanism]]:
    @dataclass(frozen=True)
    class MixedShare(Mechanism):
        """Max-min of a mixture of the dominant and the asset share.

            lex max min_n  sigma_n / phi_n,    sigma_n = x_n (mix max_r d[n,r]/C_r + (1 - mix) sum_r d[n,r]/C_r)

        Source: made up for this test.
        """

        name = "mixed-share"
        title = "mixed share"
        source = "this test"
        properties = "PO"

        mix: float = 0.5

        def __post_init__(self) -> None:
            if not 0 <= self.mix <= 1:
                raise DataError(f"mix is {self.mix}; it must be from 0 (asset) to 1 (dominant)")

        def criterion(self, cluster: Cluster) -> Criterion:
            both = self.mix * cluster.dominant_share_per_task
            if self.mix < 1:
                both = both + (1 - self.mix) * cluster.share_per_task.sum(axis=1)
            return criterion(cluster, both, np.inf, "servers")

        def formulate(self, program: Program) -> Formulation:
            return Formulation(Leximin(program.share / program.weight), program.constraints)

    yield MixedShare
    del REGISTRY["mixed-share"]


@pytest.fixture(scope="module")
def squared() -> Iterator[type[Mechanism]]:
    @dataclass(frozen=True)
    class SquaredWeights(Mechanism):
        """Proportional fairness of task counts over servers, weights squared: maximise sum phi_n^2 log x_n.

        Source: made up for this test.
        """

        name = "squared-weights"
        source = "this test"

        def criterion(self, cluster: Cluster) -> Criterion:
            return criterion(cluster, np.ones(len(cluster.users)), 1.0, "servers", weight=cluster.weight**2)

        def formulate(self, program: Program) -> Formulation:
            return alpha_fair(program, 1.0)

    yield SquaredWeights
    del REGISTRY["squared-weights"]


def test_registered_by_being_there(mixed: type[Mechanism], squared: type[Mechanism]) -> None:
    assert {"mixed-share", "squared-weights"} <= set(mechanisms.names())
    assert mechanisms.get("Mixed_Share", mix=0.25) == mixed(mix=0.25)
    assert mechanisms.parse("mixed-share(mix=0.25)") == (mixed(mix=0.25),)
    assert mechanisms.parse("squared-weights") == (squared(),)
    assert str(mixed(mix=0.25)) == "mixed share(mix=0.25)"
    assert str(squared()) == "SquaredWeights"
    with pytest.raises(DataError, match=r"mixed-share does not take colour; its parameters: mix"):
        mechanisms.get("mixed-share", colour=1)
    with pytest.raises(DataError, match="it must be from 0"):
        mechanisms.parse("mixed-share(mix=2)")


def test_solves_with_a_certificate(mixed: type[Mechanism], squared: type[Mechanism]) -> None:
    for mix in (0.0, 0.5, 1.0):
        found = mixed(mix=mix).solve(EXAMPLE)
        assert found.certify().passes(1e-9)
        # One resource binds (CPU), so the mixed levels are equal: u_1 x = u_2 y, x + 3 y = 9.
        dominant, asset = np.array([4 / 18, 3 / 9]), np.array([1 / 9 + 4 / 18, 3 / 9 + 1 / 18])
        u = mix * dominant + (1 - mix) * asset
        x = 9 / (1 + 3 * u[0] / u[1])
        np.testing.assert_allclose(found.user_tasks, [x, u[0] / u[1] * x])
    found = squared().solve(Cluster([[6]], [[1], [1]], weight=[1, 2**0.5]))
    np.testing.assert_allclose(found.user_tasks, [2, 4], rtol=1e-5)
    assert found.certificate.passes()


def test_the_generic_laws(mixed: type[Mechanism], squared: type[Mechanism]) -> None:
    tally = Tally()

    @settings(max_examples=40)
    @given(clusters(styles=("nice", "plain")))
    def law(cluster: Cluster) -> None:
        check_answer(mixed(), cluster, tally)
        check_answer(squared(), cluster, tally)

    law()
    assert tally.answered >= 80


# fo.compare: whoever registers a mechanism finds it in the comparison.
@pytest.mark.skipif(
    importlib.util.find_spec("fairopt.sweeps") is None or importlib.util.find_spec("fairopt.study.compare") is None,
    reason="fairopt.sweeps not there yet",
)
def test_compared_without_another_line(mixed: type[Mechanism], squared: type[Mechanism]) -> None:
    from fairopt.study.compare import compare

    frame = compare(EXAMPLE)
    assert {str(mixed()), str(squared())} <= set(frame.index)
    only = compare(EXAMPLE, [mixed(mix=0.25)])
    assert list(only.index) == ["mixed share(mix=0.25)"]
