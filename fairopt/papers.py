"""Public name of the module `fairopt.harness.papers`: the source papers as data."""

import sys

from .harness import papers
from .harness.papers import *  # noqa: F403
from .harness.papers import __all__ as __all__

sys.modules[__name__] = papers
