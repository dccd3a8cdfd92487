"""Exceptions, classified by remedy.

| error | remedy |
|---|---|
| `DataError` | correct the input: the message names the user, server or resource, and the correction |
| `SolverError` | relax the tolerance, or change the solver or the engine |
| `NotConverged` | allow more rounds, another order or another start |
| `CertificateError` | use the solver or engine that the message names; if it names none, please report it |

If an engine fails because of a bug and another engine solves the problem, an `EngineWarning` replaces the error.
"""

from __future__ import annotations


class FairoptError(Exception):
    """Base class of all exceptions that fairopt raises deliberately."""


class DataError(FairoptError, ValueError):
    """Invalid input.

    `where` is the path of the fault within a cluster, for instance `("users", 2, "demand", "cpu")`, from which readers
    of files determine the line.
    """

    def __init__(self, message: str, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.where = where


class SolverError(FairoptError):
    """Failure of a solver, or a solution that misses the tolerance and is reported as inaccurate by the solver."""


class NotConverged(FairoptError):
    """Termination of an iteration before its certificate attained the tolerance."""


class CertificateError(FairoptError):
    """Contradiction between a solver that reports success and a certificate that misses the tolerance by far."""


class EngineWarning(RuntimeWarning):
    """Unexpected exception of an engine, which the message names: a bug, please report it.

    Another engine solves the problem instead, perhaps more slowly, and the allocation has a note. `python -W error`
    turns the warning into an error.
    """
