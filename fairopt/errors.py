"""Public name of the module `fairopt.base.errors`: the exceptions of the package."""

from .base.errors import *  # noqa: F403
