"""Errors by remedy: what the caller can do about it decides the class.

| error | remedy |
|---|---|
| `DataError` | mend the input: the message names the user, server or resource and says how |
| `SolverError` | relax the tolerance, or change the solver or the engine |
| `NotConverged` | allow more rounds, another order or another start |
| `CertificateError` | what the message names: another solver or engine; else none, please report it |
"""

from __future__ import annotations


class FairoptError(Exception):
    """The base of every error that fairopt raises on purpose."""


class DataError(FairoptError, ValueError):
    """The input is wrong.

    `where` locates the fault inside a cluster, for instance `("users", 2, "demand", "cpu")`, so that
    a reader of files can add the line.
    """

    def __init__(self, message: str, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.where = where


class SolverError(FairoptError):
    """A solver gave up, or its answer does not reach the tolerance and it said so."""


class NotConverged(FairoptError):
    """An iteration stopped before its certificate reached the tolerance."""


class CertificateError(FairoptError):
    """A solver reported success, but the certificate of its answer misses the tolerance by far."""
