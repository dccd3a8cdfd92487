"""Exceptions of the package, by their public name."""

from .base.errors import *  # noqa: F403
