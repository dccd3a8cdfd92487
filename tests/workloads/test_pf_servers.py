"""The servers of the paper's section 6."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import pf_servers


def test_types_locations_and_links():
    servers = pf_servers(18)
    assert servers.resources == ("cpu", "memory", "disk", "received", "transmitted")
    assert Counter(map(tuple, servers.capacity)) == {
        (*kind, disk, *link): times
        for kind in ((4, 12), (8, 8), (16, 4))
        for disk, times in ((32, 2), (100, 1))  # of locations 1 and 3, and of 2
        for link in ((1000, 100), (2000, 1000))
    }
    assert len(set(servers.names)) == 18


def test_another_choice():
    servers = pf_servers(2, types=[3, 3], locations=[2, 1], links=[2, 1], split_disk=True)
    assert servers.resources == ("cpu", "memory", "disk_read", "disk_write", "received", "transmitted")
    np.testing.assert_array_equal(servers.capacity, [[16, 4, 100, 100, 2000, 1000], [16, 4, 32, 32, 1000, 100]])
    assert servers.names == ("s1-t3-l2-n2", "s2-t3-l1-n1")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"count": 0}, "servers is 0; it must be a whole number, at least 1"),
        ({"count": 2, "types": [1]}, "types must be 2 integers from 1 to 3"),
        ({"count": 2, "locations": [0, 1]}, "locations must be 2 integers from 1 to 3"),
        ({"count": 2, "links": [1, 3]}, "links must be 2 integers from 1 to 2"),
    ],
)
def test_wrong_choices(arguments, what):
    with pytest.raises(DataError, match=what):
        pf_servers(**arguments)
