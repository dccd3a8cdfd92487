"""Exceptions that end a sweep early, and are not errors of a cell; finished cells are stored."""

from __future__ import annotations

from ..base.errors import FairoptError


class Interrupted(FairoptError):
    """Interruption of a sweep by Ctrl-C; finished cells are stored.

    >>> import fairopt as fo
    >>> issubclass(fo.harness.Interrupted, fo.errors.FairoptError)
    True
    """


class Stopped(FairoptError):
    """End of a sweep whose workers are lost or die repeatedly, or whose store cannot be written; stored rows remain.

    >>> import fairopt as fo
    >>> issubclass(fo.harness.Stopped, fo.errors.FairoptError)
    True
    """


class Elsewhere(FairoptError):
    """Mismatch between the code or data of a worker and those of the process that started the sweep.

    >>> import fairopt as fo
    >>> issubclass(fo.harness.Elsewhere, fo.errors.FairoptError)
    True
    """
