"""The picture of an inferred alpha: how far answers at every alpha are from observed tasks, and by how much at best."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .._libraries import pd
from ._plot import Picture, alpha_axis, at_alpha, colours, plain


def misfit(curve: pd.Series, residuals: pd.DataFrame, interval: tuple[float, float], title: str) -> Figure:
    """Left the misfit along alpha, with the interval shaded; right fitted tasks against observed ones, by user.

    `curve` is by alpha, `residuals` has the columns `observed` and `fitted`, `interval` its ends, 0 and infinity for
    none.
    """
    figure = Picture(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    fill = colours(1)[0]
    left.axvspan(*at_alpha(interval), color=fill, alpha=0.15, linewidth=0)
    left.plot(at_alpha(curve.index), curve.to_numpy(), color=fill, marker=".", markersize=3)
    left.set_ylim(bottom=0)
    left.set_ylabel("misfit (rms of log tasks)")
    left.set_title(plain(title), fontsize="medium")
    alpha_axis(left, wide=True)
    observed, fitted = residuals["observed"].to_numpy(), residuals["fitted"].to_numpy()
    ends = np.array([min(observed.min(), fitted.min()), max(observed.max(), fitted.max())])
    right.plot(ends, ends, color="#444444", linewidth=0.8, linestyle=(0, (1, 2)))
    right.plot(observed, fitted, ".", color=fill)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("observed tasks")
    right.set_ylabel("fitted tasks")
    return figure
