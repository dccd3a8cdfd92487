"""Lazy imports of large libraries, resolved at the first access to an attribute.

    from ..base.libraries import pd

is equivalent to `import pandas as pd`, for type checkers as well, but costs nothing before `pd.DataFrame` is accessed.
Modules of the package import these libraries from here, or inside functions; only NumPy is imported directly.
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
    "clarabel",
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

#: Extra of the package that installs each optional library, by library.
_EXTRAS = {
    "distributed": "dask",
    "joblib": "sweep",
    "pyarrow": "sweep",
    "shtab": "shell",
    "threadpoolctl": "sweep",
    "yaml": "kubernetes",
}


def of_an_extra(name: str) -> Any:
    """Import an optional library; raise `DataError` with the extra to install if it is missing."""
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
    import clarabel
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
        """Proxy of a module that imports it at the first access to an attribute."""

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
        "clarabel": "clarabel",
        "lapack": "scipy.linalg.lapack",
        "csgraph": "scipy.sparse.csgraph",
        "sparse_linalg": "scipy.sparse.linalg",
    }
    globals().update({name: _Library(module) for name, module in _MODULES.items()})
