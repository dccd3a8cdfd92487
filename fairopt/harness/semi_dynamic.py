"""The earlier home of `fairopt.study.semi_dynamic`."""

import warnings

from ..study.semi_dynamic import SemiDynamic as SemiDynamic
from ..study.semi_dynamic import pf_section6 as pf_section6

warnings.warn("fairopt.harness.semi_dynamic is fairopt.study.semi_dynamic now", DeprecationWarning, stacklevel=2)
