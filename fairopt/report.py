"""Tables, figures and LaTeX, by their public name."""

from .harness.report import *  # noqa: F403
from .harness.report import __all__ as __all__
