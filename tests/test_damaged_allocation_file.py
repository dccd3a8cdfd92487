"""Allocation files with something wrong in them: errors name the entry; what can be judged is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import check
import numpy as np
import pytest
from allocation_files import DAMAGE, TEXTS, document, put

import fairopt as fo
from fairopt.errors import DataError


@pytest.mark.parametrize(("where", "value", "message"), DAMAGE)
def test_damage_is_named(where: str, value: Any, message: str, tmp_path: Path) -> None:
    """By fairopt, and by `tools/check.py`."""
    content, path = document(tmp_path), tmp_path / "bad.json"
    put(content, where, value)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"bad\.json: (.|\n)*({message})"):
        fo.Allocation.load(path)
    name = where.removeprefix("cluster.").removeprefix("criterion.").partition(".")[0]
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"{name}|{message}"):
        check.read(path)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"bad\.json:"):
        fo.Allocation.load(path)
    with pytest.raises((ValueError, RecursionError)):  # which the program prints
        check.read(path)


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    """The last of two would count, and whoever reads the file may see the first."""
    document(tmp_path)
    text = (tmp_path / "good.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"tol": 1e-06', '"tol": 1e-06,\n"tol": 1'))
    with pytest.raises(DataError, match=r"bad\.json: the key 'tol' stands twice in one table, {.*}; keep one of them"):
        fo.Allocation.load(tmp_path / "bad.json")


@pytest.mark.parametrize("share", [[0.2, None], [5e-324, 0.2]])
def test_shares_that_nobody_has(share: list[float | None], tmp_path: Path) -> None:
    """An infinite share of who can run, and what is beyond the range of numbers, is judged, and fails."""
    content = document(tmp_path, fo.DRFH())
    content["criterion"]["share"] = share
    (tmp_path / "odd.json").write_text(json.dumps(content))
    assert fo.Allocation.load(tmp_path / "odd.json").flagged


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    content = document(tmp_path)
    content["mechanism"] = "\ud800"
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"a mechanism is called .*, which cannot be written"):
        fo.Allocation.load(tmp_path / "odd.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the allocation file .*none\.json: No such file"):
        fo.Allocation.load(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfa")
    with pytest.raises(DataError, match="not UTF-8 text"):
        fo.Allocation.load(tmp_path / "bytes.json")


def test_huge_numbers_are_judged(tmp_path: Path) -> None:
    """Numbers at the end of the range are no error of the file: what they make is judged, and fails."""
    content = document(tmp_path)
    content["tasks"][0][0] = 1e308
    (tmp_path / "huge.json").write_text(json.dumps(content))
    assert fo.Allocation.load(tmp_path / "huge.json").flagged
