"""Why a sweep ends early. What was finished is stored, and none of these is stored as the error of a cell."""

from __future__ import annotations

from ..base.errors import FairoptError


class Interrupted(FairoptError):
    """Somebody pressed Ctrl-C; what was finished is stored."""


class Stopped(FairoptError):
    """Raised if workers are gone or keep dying, or nothing can be written; results handed in are stored."""


class Elsewhere(FairoptError):
    """Here is other code or data than where the sweep was started."""
