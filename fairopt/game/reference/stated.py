"""Problems of the per-server game for people: one server's, given the others, and the whole at alpha = 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...engines.reference.named_problem import STEEP, NamedProblem, Places, named_problem
from ...engines.reference.program import Formulation, Program
from ...errors import DataError
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from .server_problem import SMALLEST, ServerProblem
from .server_program import ServerProgram


def server_problem(
    cluster: Cluster,
    criterion: Criterion,
    server: str | int,
    tasks: object,
    formulate: Callable[[Program], Formulation],
) -> NamedProblem:
    """Problem of a server over its own column of tasks (users, servers), given the other columns.

    Raises
    ------
    DataError
        There is no such server, nobody can run there, or the tasks are no table of numbers >= 0.
    """
    names = list(cluster.servers)
    known = server in names if isinstance(server, str) else 0 <= server < len(names)
    if not known:
        raise DataError(f"there is no server {server!r}; give one of {', '.join(names[:5])}, or its number from 0")
    i = names.index(server) if isinstance(server, str) else int(server)
    others = np.array(tasks, dtype=float)
    if others.shape != cluster.shape[:2] or not (np.isfinite(others).all() and (others >= 0).all()):
        raise DataError(f"tasks must be numbers >= 0 of shape (users, servers) = {cluster.shape[:2]}")
    others[:, i] = 0.0
    polytope = Polytope(cluster, criterion.limits(cluster))
    program = ServerProgram(polytope, criterion, i)
    if not len(program.pairs):
        raise DataError(f"no user can run anything on server {names[i]!r}; choose another server")
    elsewhere = others.sum(axis=1)[polytope.users[program.users]]
    if program.scale_free and STEEP <= program.alpha < np.inf:
        unit = np.maximum(ServerProblem(polytope, criterion, i, formulate).maxmin_share(elsewhere), SMALLEST)
    else:  # shares near 1: what users have elsewhere, and their part by weight here
        unit = elsewhere / program.gamma + program.weight / program.weight.sum()
    program.give(elsewhere, unit)
    places = Places(polytope, program.pairs, program.rows, others)
    return named_problem(cluster, formulate(program), program, places, program.constraints)
