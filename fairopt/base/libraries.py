"""Libraries that take long to import, imported when something of them is first used.

    from ..base.libraries import pd

is `import pandas as pd` for whoever reads it, type checkers included, and costs nothing until `pd.DataFrame` is asked
for. All of the package takes these libraries from here, or inside of a function. NumPy is what everything needs.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import clock
from .errors import DataError

__all__ = [
    "blas",
    "cp",
    "csgraph",
    "lapack",
    "of_an_extra",
    "optimize",
    "pa",
    "pd",
    "pq",
    "sp",
    "sparse_linalg",
    "special",
    "stats",
]

#: Libraries that the core does without, and which extra brings them.
_EXTRAS = {
    "distributed": "dask",
    "joblib": "sweep",
    "pyarrow": "sweep",
    "shtab": "shell",
    "tabulate": "markdown",
    "threadpoolctl": "sweep",
    "yaml": "kubernetes",
}


def of_an_extra(name: str) -> Any:
    """Import a library; a `DataError` where it is not there says which extra brings it."""
    root = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (root, name) or root not in _EXTRAS:
            raise
        extra = _EXTRAS[root]
        raise DataError(
            f"{root} is not installed, which this needs: pip install 'fairopt[{extra}]', in a clone '.[{extra}]'"
        ) from None


if TYPE_CHECKING:
    import cvxpy as cp
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
    import scipy.sparse as sp
    from scipy import optimize, special, stats
    from scipy.linalg import blas, lapack
    from scipy.sparse import csgraph
    from scipy.sparse import linalg as sparse_linalg
else:

    class _Library(ModuleType):
        """A module that is imported when it is asked for something."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self.imported, name)

        @cached_property
        def imported(self) -> ModuleType:
            with clock.standing():
                return of_an_extra(self.__name__)

    _MODULES = {
        "cp": "cvxpy",
        "pd": "pandas",
        "pa": "pyarrow",
        "pq": "pyarrow.parquet",
        "sp": "scipy.sparse",
        "optimize": "scipy.optimize",
        "special": "scipy.special",
        "stats": "scipy.stats",
        "blas": "scipy.linalg.blas",
        "lapack": "scipy.linalg.lapack",
        "csgraph": "scipy.sparse.csgraph",
        "sparse_linalg": "scipy.sparse.linalg",
    }
    globals().update({name: _Library(module) for name, module in _MODULES.items()})
