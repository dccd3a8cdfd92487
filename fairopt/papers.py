"""The source papers as data, by their public name."""

from .harness.papers import *  # noqa: F403
from .harness.papers import __all__ as __all__
