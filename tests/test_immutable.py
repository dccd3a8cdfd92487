"""Nobody can write to a cluster, an allocation or a criterion, nor to copies and pickles; nothing is stale."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from strategies import clusters

import fairopt as fo
from fairopt.model._immutable import _OWNED, Immutable, _Kept, frozen
from fairopt.model.concave_welfare import ConcaveWelfare
from fairopt.model.criterion import criterion
from fairopt.model.merging import merge

COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda original: original,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda original: pickle.loads(pickle.dumps(original)),
    "old pickle": lambda original: pickle.loads(pickle.dumps(original, protocol=2)),
    "copy of a copy": lambda original: copy.deepcopy(pickle.loads(pickle.dumps(original))),
}
ARGUMENTS = ("capacity", "demand", "weight", "eligible", "max_tasks", "resources", "users", "servers")
DERIVED = ("gamma0", "gamma", "runnable", "share_per_task", "normalised_demand")
LIMITED = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]], [1, 2], [[1, 1], [1, 0]], [np.inf, 2])


def refused(array: NDArray[Any]) -> None:
    """The array, its views and whatever it is a view of cannot be written to, however one asks."""
    owners: list[Any] = [array, array[...], array.T, array.view(), np.asarray(array)]
    while isinstance(owners[-1].base, np.ndarray):
        owners.append(owners[-1].base)
    owner = owners[-1].base
    assert isinstance(owner, (bytes, _Kept)), "of a memoryview there would be the array that it is of"
    assert not [
        name for name in dir(owner) if isinstance(getattr(owner, name), np.ndarray) and not name.startswith("_")
    ]
    for one in owners:
        with pytest.raises(ValueError, match="read-only"):
            one[...] = 0
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            one.setflags(write=True)
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            one.flags.writeable = True


def test_large_derived_arrays_are_not_copied_and_cannot_be_written_to() -> None:
    rng = np.random.default_rng(0)
    large = fo.Cluster(rng.random((200, 3)) + 1, rng.random((100, 3)) + 0.1)
    wanted = 1 / (large.demand[:, None] / large.capacity).max(axis=2)
    found = large.gamma0
    assert isinstance(found.base.base, _Kept)
    refused(found)
    assert memoryview(found).readonly
    np.testing.assert_allclose(found, wanted)
    del large
    np.testing.assert_allclose(found, wanted)  # its memory is kept as long as it is


def answers() -> list[Any]:
    """An allocation, and what it has that is data: certificate, criterion, stats."""
    found = fo.DRFH().solve(LIMITED)
    return [found, found.certificate, found.criterion, found.stats]


@pytest.mark.parametrize("number", range(4))
def test_no_state_is_set_twice_and_no_field_behind_the_back(number: int) -> None:
    one = answers()[number]
    before = {field.name: getattr(one, field.name) for field in fields(one)}
    for name, value in before.items():
        with pytest.raises(AttributeError, match="immutable"):
            one.__setstate__({name: value})
        with pytest.raises(AttributeError, match="immutable"):
            object.__setattr__(one, name, value)
        if isinstance(value, dict):
            getattr(one, name)["anything"] = 1
            assert "anything" not in getattr(one, name)
    assert vars(pickle.loads(pickle.dumps(one))).keys() == vars(one).keys()


def test_memory_is_kept_though_a_header_lets_go_of_it() -> None:
    """`ndarray.__setstate__` drops what an array is a view of, which other views go on to read."""
    rng = np.random.default_rng(0)
    cluster = fo.Cluster(rng.random((200, 3)) + 1, rng.random((100, 3)) + 0.1)
    for name in ("capacity", "gamma0"):
        wanted = np.array(getattr(cluster, name))
        header = getattr(cluster, name).base
        header.__setstate__((1, (1,), header.dtype, False, bytes(8)))
        junk = [rng.random(wanted.shape) for _ in range(20)]
        np.testing.assert_array_equal(getattr(cluster, name), wanted)
        assert junk


def test_the_memory_of_large_arrays_is_let_go_with_them() -> None:
    rng, before = np.random.default_rng(0), len(_OWNED)
    for _ in range(5):
        cluster = fo.Cluster(rng.random((200, 3)) + 1, rng.random((100, 3)) + 0.1)
        assert cluster.gamma0.shape == (100, 200)
        assert len(_OWNED) > before
        del cluster
    gc.collect()
    assert len(_OWNED) <= before


def test_the_memory_of_large_arrays_has_no_way_to_it() -> None:
    rng = np.random.default_rng(0)
    owner = fo.Cluster(rng.random((200, 3)) + 1, rng.random((100, 3)) + 0.1).gamma0.base.base
    owner.__array_interface__["data"] = (owner.__array_interface__["data"][0], False)
    assert not np.asarray(owner).flags.writeable
    with pytest.raises(AttributeError):
        owner.__array_interface__ = {}
    for name in dir(owner):
        assert not isinstance(getattr(owner, name), np.ndarray), name


def test_merging_cannot_be_written_to() -> None:
    merging = merge(fo.Cluster([[1, 2], [2, 4], [3, 1]], [[1, 1], [2, 2]]))
    for name in ("server_of", "user_of", "server_part", "user_part", "task_size"):
        refused(getattr(merging, name))


@pytest.mark.parametrize("how", COPIES)
def test_clusters(how: str) -> None:
    @settings(max_examples=25)
    @given(clusters())
    def law(cluster: fo.Cluster) -> None:
        wanted = {name: np.array(getattr(cluster, name)) for name in DERIVED}
        found = COPIES[how](cluster)
        assert type(found) is fo.Cluster
        assert found == cluster
        for name in ARGUMENTS[:5]:
            refused(getattr(found, name))
        for name in DERIVED:
            refused(getattr(found, name))
            np.testing.assert_array_equal(getattr(found, name), wanted[name])
        for name in (*ARGUMENTS, *DERIVED, "anything"):
            with pytest.raises(AttributeError, match=rf"immutable; use replace\({name}=\.\.\.\)"):
                setattr(found, name, 1)
        for name in (*ARGUMENTS, "gamma", "anything"):
            with pytest.raises(AttributeError, match=f"immutable; {name} cannot be deleted"):
                delattr(found, name)

    law()


@pytest.mark.parametrize("how", list(COPIES)[1:])
def test_copies_compute_everything_anew(how: str) -> None:
    """A copy that took over what was computed before would lie, had anything been changed on the way."""
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    assert (cluster.gamma > 0).all()
    assert set(vars(COPIES[how](cluster))) == set(ARGUMENTS)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace came with Python 3.13")
def test_replace_of_the_standard_library() -> None:
    assert copy.replace(LIMITED, weight=[3, 4]) == LIMITED.replace(weight=[3, 4])  # type: ignore[attr-defined,unused-ignore]


def test_what_takes_no_room_takes_none_in_a_pickle() -> None:
    large = fo.Cluster(np.ones((2000, 1)), np.ones((500, 1)))
    assert len(pickle.dumps(large)) < 100_000
    assert pickle.loads(pickle.dumps(large)).eligible.strides == (0, 0)


def test_what_is_given_is_copied() -> None:
    """Arrays and series that somebody goes on with stay theirs, and what they do to them stays with them."""
    given = {
        "capacity": np.array([[9.0, 18.0]]),
        "demand": np.array([[1.0, 4.0], [3.0, 1.0]]),
        "weight": np.array([1.0, 2.0]),
        "eligible": np.array([[True], [False]]),
        "max_tasks": np.array([np.inf, 2.0]),
    }
    cluster = fo.Cluster(**given)  # type: ignore[arg-type]
    before = copy.deepcopy(cluster)
    for array in given.values():
        assert array.flags.writeable
        array[...] = 1
    assert cluster == before
    weight, cap = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    rule = criterion(cluster, np.array([1.0, 1.0]), 1, "servers", weight, cap)
    weight[0] = cap[0] = 99
    assert (rule.weight[0], rule.cap[0]) == (1, 3)
    share = np.array([1.0, 1.0])
    late = criterion(cluster, lambda: share, 1, "servers")
    assert late.share.tolist() == [1, 1]
    share[0] = 99
    assert late.share.tolist() == [1, 1]
    found, tasks = fo.DRFH().solve(LIMITED), np.zeros((2, 2))
    other = replace(found, tasks=tasks)
    tasks[0, 0] = 1
    assert not other.tasks.any()


def test_frozen_are_the_same_numbers_in_the_same_order() -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.zeros((0, 2)), np.eye(4)[::2, 1:]):
        found = frozen(array)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert frozen(found) is found
        if array.size:
            assert found.flags.f_contiguous == array.flags.f_contiguous
            assert found.strides == array.copy(order="K").strides
            assert not np.shares_memory(found, array)
        assert array.flags.writeable
        refused(found)


def allocations(folder: Path) -> Iterator[fo.Allocation]:
    """One of each way to come by an allocation."""
    solved = fo.AlphaPFVDS(3).solve(LIMITED)
    yield solved
    yield fo.DRFH().solve(LIMITED)
    yield fo.FDS(2, -2).solve(LIMITED)
    yield fo.PSDSF().solve(fo.Cluster([[9, 18], [18, 36], [4, 4]], [[1, 4], [3, 1]]))  # merged, and split again
    yield fo.best_response(LIMITED, 2.0)
    solved.save(folder / "saved.json")
    yield fo.Allocation.load(folder / "saved.json")


@pytest.mark.parametrize("how", COPIES)
def test_allocations(how: str, tmp_path: Path) -> None:
    for allocation in allocations(tmp_path):
        wanted, tasks = allocation.certify(), np.array(allocation.tasks)
        found = COPIES[how](allocation)
        np.testing.assert_array_equal(found.tasks, tasks)
        assert found.certify() == wanted
        assert found.cluster == allocation.cluster
        rule = found.criterion
        for array in (found.tasks, rule.share, rule.weight, rule.cap, found.cluster.demand, found.log_prices):
            if array is not None:
                refused(array)
        if found.certificate.conditions is not None:
            refused(found.certificate.conditions)
        for owner, name in ((found, "tasks"), (found, "certificate"), (rule, "share"), (found.certificate, "gap")):
            with pytest.raises(AttributeError, match="cannot assign"):
                setattr(owner, name, None)
            with pytest.raises(AttributeError, match="cannot delete"):
                delattr(owner, name)


def reshaped(array: NDArray[Any]) -> None:
    """Set all that NumPy lets one set in the header of a read-only array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5: to set them at all
        array.strides = (0,) * array.ndim
        if array.size and array.flags.c_contiguous:
            array.shape = (array.size,)
            array.dtype = np.dtype(f"V{array.itemsize}")


@pytest.mark.parametrize("how", COPIES)
def test_headers_of_arrays_are_the_readers_own(how: str) -> None:
    """Strides, shape and type of an array can be set although its numbers cannot: a cluster would be another one."""
    cluster = COPIES[how](LIMITED)
    for name in (*ARGUMENTS[:5], *DERIVED):
        reshaped(getattr(cluster, name))
    assert cluster == LIMITED
    for name in DERIVED:
        np.testing.assert_array_equal(getattr(cluster, name), getattr(LIMITED.replace(), name))
    found = COPIES[how](fo.DRFH().solve(LIMITED))
    tasks, prices, rule = np.array(found.tasks), np.array(found.log_prices), COPIES[how](found.criterion)
    plain = {name: np.array(getattr(rule, name)) for name in ("share", "weight", "cap", "floor")}
    conditions = np.array(found.certificate.conditions)
    for array in (
        found.tasks,
        found.log_prices,
        found.certificate.conditions,
        *(getattr(rule, name) for name in plain),
    ):
        reshaped(array)
    np.testing.assert_array_equal(found.tasks, tasks)
    np.testing.assert_array_equal(found.log_prices, prices)
    np.testing.assert_array_equal(found.certificate.conditions, conditions)
    for name, wanted in plain.items():
        np.testing.assert_array_equal(getattr(rule, name), wanted)


@pytest.mark.parametrize("how", COPIES)
def test_vars_and_bases_are_no_way_in(how: str) -> None:
    """Neither through the attributes that `vars` lists, nor through what an array is a view of."""
    found = COPIES[how](fo.DRFH().solve(LIMITED))
    for one in (found.cluster, found, found.criterion, found.certificate):
        plain = {name: np.array(value) for name, value in vars(one).items() if isinstance(value, np.ndarray)}
        for name, value in list(vars(one).items()):
            with pytest.raises(TypeError, match="does not support item assignment"):
                vars(one)[name] = None  # type: ignore[index,unused-ignore]
            with pytest.raises(AttributeError):
                object.__setattr__(one, "__dict__", {})
            one.__getstate__()[name] = None
            if not isinstance(value, np.ndarray):
                continue
            for array in (value, getattr(one, name, value)):
                refused(array)
                while isinstance(array, np.ndarray):
                    reshaped(array)
                    array = array.base
        for name, wanted in plain.items():
            np.testing.assert_array_equal(vars(one)[name], wanted)
    assert found.cluster == LIMITED


def test_what_is_derived_cannot_be_replaced() -> None:
    cluster = LIMITED.replace()
    for name in (*DERIVED, "constrained"):
        known = getattr(cluster, name)
        with pytest.raises(AttributeError, match=f"{name} is derived"):
            object.__setattr__(cluster, name, 1)
        assert getattr(cluster, name) is known or name != "constrained"


def test_headers_of_what_is_given_are_the_givers_own() -> None:
    """Frozen arrays are not copied, but who gave them goes on with another view of the numbers."""
    weight, share = LIMITED.weight, LIMITED.demand[:, 0]
    tasks = fo.DRFH().solve(LIMITED).tasks
    rule = replace(fo.DRFH().criterion(LIMITED), weight=weight, share=share)
    late = criterion(LIMITED, lambda: share, 1, "servers")
    found, wanted = replace(fo.DRFH().solve(LIMITED), tasks=tasks), np.array(tasks)
    assert late.share.tolist() == share.tolist()
    for array in (weight, share, tasks):
        reshaped(array)
    assert rule.weight.tolist() == [1, 2]
    assert rule.share.tolist() == late.share.tolist() == [1, 3]
    assert found.tasks.tolist() == wanted.tolist()


def test_nothing_is_made_twice() -> None:
    """A second call of the constructor would change the data under what was derived from it."""
    cluster, found = copy.deepcopy(LIMITED), fo.DRFH().solve(LIMITED)
    gamma = np.array(cluster.gamma)
    with pytest.raises(AttributeError, match="a Cluster is immutable; use replace"):
        cluster.__init__([[1, 1]], [[1, 1]])  # type: ignore[misc]
    assert cluster == LIMITED
    np.testing.assert_array_equal(cluster.gamma, gamma)
    late = criterion(LIMITED, lambda: np.ones(2), 1, "servers")
    rules = [fo.FDS(2, -2).criterion(LIMITED), ConcaveWelfare(**late.plain), late]
    for one in (found, found.criterion, found.certificate, *rules):
        before = {field.name: getattr(one, field.name) for field in fields(one)}
        with pytest.raises(AttributeError, match=f"{type(one).__name__} is immutable"):
            one.__init__(**before | dict.fromkeys(before, 7.0))  # type: ignore[misc]
        for name, wanted in before.items():
            np.testing.assert_array_equal(getattr(one, name), wanted)


def of(kind: type) -> Iterator[type]:
    """A class and everything that is derived from it."""
    yield kind
    for more in kind.__subclasses__():
        yield from of(more)


def test_every_field_that_is_an_array_is_handed_out_as_a_view() -> None:
    """And the first field can be set only once: with it no constructor changes anything when it is called again."""
    for kind in list(of(Immutable))[1:]:
        names = {
            field.name for field in fields(kind) if "Array" in str(field.type) and "Callable" not in str(field.type)
        }
        for name in names - {"judge"} | {fields(kind)[0].name}:
            assert hasattr(inspect.getattr_static(kind, name), "__set__"), f"{kind.__name__}.{name}"
