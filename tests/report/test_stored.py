from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairopt.report import interval


def test_students_interval_by_hand() -> None:
    """1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653, so half = 4.302653 / sqrt(3). Missing numbers do not count."""
    frame = pd.DataFrame({"of": ["b", "b", "b", "b", "a"], "x": [1.0, np.nan, 2.0, 3.0, 7.0]})
    found = interval(frame, ["of"], "x")
    assert found["of"].tolist() == ["b", "a"]
    assert found["mean"].tolist() == [2, 7]
    assert found["half"][0] == pytest.approx(4.302652729911275 / np.sqrt(3))
    assert np.isnan(found["half"][1])  # one draw says nothing of the spread
    assert found["n"].tolist() == [3, 1]
    assert interval(frame, ["of"], "x", level=0.9)["half"][0] == pytest.approx(2.919985580355516 / np.sqrt(3))
