"""Public name of the module `fairopt.harness.report`: tables, figures and LaTeX."""

import sys

from .harness import report
from .harness.report import *  # noqa: F403
from .harness.report import __all__ as __all__

sys.modules[__name__] = report
