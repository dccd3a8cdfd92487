"""Servers of the evaluation of the alphaPF-VDS paper (section 6): three types, three locations, two links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.errors import DataError
from ..model._arrays import Array, Index
from ..scheduling.workload import one_of
from ._draw import positive

#: Kinds of servers by which placement constraints are drawn, in the order of the parts of a server's name.
Kinds = Literal["server", "type", "location"]
_BY = ("server", "type", "location")

TYPES = ((4.0, 12.0), (8.0, 8.0), (16.0, 4.0))  # CPU [GHz], memory [GB]
STORAGE = (32.0, 100.0, 32.0)  # bandwidth of storage at locations 1, 2, 3 [MB/s]
LINKS = ((1000.0, 100.0), (2000.0, 1000.0))  # down (received), up (transmitted) [Mb/s]


@dataclass(frozen=True)
class Servers:
    """Capacities of servers, (servers, resources), with the names of both axes.

    >>> import fairopt as fo
    >>> isinstance(fo.workloads.pf_servers(3), fo.workloads.Servers)
    True
    """

    capacity: Array
    resources: tuple[str, ...]
    names: tuple[str, ...]

    def kinds(self, by: Kinds) -> list[str]:
        """Kind of every server: its type, its location, or itself.

        Raises
        ------
        DataError
            `by` is none of "type", "location" and "server".

        >>> import fairopt as fo
        >>> fo.workloads.pf_servers(4).kinds("type")
        ['t1', 't2', 't3', 't1']
        """
        where = _BY.index(one_of(by, "by", Kinds))
        return [name.split("-")[where] for name in self.names]


def pf_servers(
    count: int = 20,
    types: Sequence[int] | None = None,
    locations: Sequence[int] | None = None,
    links: Sequence[int] | None = None,
    split_disk: bool = False,
) -> Servers:
    """Build servers of three types at three locations with one of two links.

    | type | CPU | memory | | location | storage | | link | down | up |
    |---|---|---|---|---|---|---|---|---|---|
    | 1 | 4 GHz | 12 GB | | 1 | 32 MB/s | | 1 | 1 Gb/s | 100 Mb/s |
    | 2 | 8 GHz | 8 GB | | 2 | 100 MB/s | | 2 | 2 Gb/s | 1 Gb/s |
    | 3 | 16 GHz | 4 GB | | 3 | 32 MB/s | | | | |

    Resources: `cpu` [GHz], `memory` [GB], `disk` [MB/s], `received` and `transmitted` [Mb/s]. With `split_disk` reading
    and writing are two resources, `disk_read` and `disk_write`, each with the location's bandwidth.

    Parameters
    ----------
    count : int
        Number of servers.
    types, locations, links : sequence of int, optional
        `count` integers from 1 each. Default: all 18 combinations in rotation, as the paper does not state the mix: the
        type changes with every server, the location with every third, and the link with every ninth. Hence 20 servers
        are 7, 7, 6 of the types, 8, 6, 6 at the locations, and 11 and 9 of the links.
    split_disk : bool
        Model reading and writing as two resources.

    Returns
    -------
    Servers

    Raises
    ------
    DataError
        `count` is not an integer >= 1, or a sequence does not have `count` valid integers.

    Notes
    -----
    Each server has its own storage and link of the stated bandwidth; servers of a location share nothing.

    Source: the alpha-PF-VDS (PS-DSF) paper, section 6.

    >>> import fairopt as fo
    >>> servers = fo.workloads.pf_servers(2)
    >>> servers.resources
    ('cpu', 'memory', 'disk', 'received', 'transmitted')
    >>> servers.capacity.tolist()
    [[4.0, 12.0, 32.0, 1000.0, 100.0], [8.0, 8.0, 32.0, 1000.0, 100.0]]
    """
    positive(count, "servers")
    kind = _indices(types, "types", count, len(TYPES), every=1)
    place = _indices(locations, "locations", count, len(STORAGE), every=3)
    link = _indices(links, "links", count, len(LINKS), every=9)
    disk = np.array(STORAGE)[place]
    disks = {"disk_read": disk, "disk_write": disk} if split_disk else {"disk": disk}
    down, up = np.array(LINKS)[link].T
    cpu, memory = np.array(TYPES)[kind].T
    columns = {"cpu": cpu, "memory": memory, **disks, "received": down, "transmitted": up}
    names = tuple(f"s{k + 1}-t{kind[k] + 1}-l{place[k] + 1}-n{link[k] + 1}" for k in range(count))
    return Servers(np.column_stack(list(columns.values())), tuple(columns), names)


def _indices(given: Sequence[int] | None, what: str, count: int, kinds: int, every: int) -> Index:
    if given is None:
        return np.arange(count) // every % kinds
    if len(given) != count or not set(given) <= set(range(1, kinds + 1)):
        raise DataError(f"{what} must be {count} integers from 1 to {kinds}, one per server; got {list(given)}")
    return np.array(given, dtype=np.intp) - 1
