"""The shared reader: exact numbers, and the line that is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import _csv
from fairopt.workloads._csv import Column, Format

PLAIN = Format(
    fields=("id", "name", "size", "unused"),
    columns=(Column("id", "int"), Column("name", "text"), Column("size", optional=True, most=10)),
)
HEADED = Format(columns=(Column("size"), Column("id", "int")))
GOOD = ["9223372036854775807,a,0.4995,x", "2,b,,", "3,NA,7.057e-05,x"]


def read(path, form, skip_malformed=False):
    """The table, and how many rows there were and were skipped."""
    report = Counter()
    return _csv.read(path, form, skip_malformed, report), *report.values()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_reads_numbers_exactly_and_empty_fields_as_missing(tmp_path, write, suffix):
    table, rows, skipped = read(write(tmp_path / f"t{suffix}", GOOD), PLAIN)
    assert table["id"].tolist() == [2**63 - 1, 2, 3]
    assert table["name"].tolist() == ["a", "b", "NA"]  # a name, not a missing value
    assert table["size"].tolist()[::2] == [0.4995, 7.057e-05]
    assert np.isnan(table["size"][1])
    assert (rows, skipped) == (3, 0)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("4,d,1", "has 3 fields instead of 4"),
        ("four,d,1,x", "id 'four'; it must be a whole number >= 0"),
        ("4.5,d,1,x", "id '4.5'; it must be a whole number >= 0"),
        ("9223372036854775808,d,1,x", "it must be a whole number"),
        (",d,1,x", "no id"),
        ("4,d,1O,x", "size '1O'; it must be a number from 0 to 10"),
        ("4,d,nan,x", "size 'nan'; it must be a number from 0 to 10"),
        (f"{'9' * 5000},d,1,x", "9999'; it must be a whole number"),
        ("4,d,1_0,x", "size '1_0'; it must be a number from 0 to 10"),
        ("4,d,11,x", "size '11'; it must be a number from 0 to 10"),
        ("-4,d,1,x", "id '-4'; it must be a whole number >= 0"),
    ],
)
def test_a_malformed_line_is_named_or_skipped(tmp_path, write, line, what):
    path = write(tmp_path / "t.csv", [*GOOD[:2], line, GOOD[2]])
    with pytest.raises(DataError) as caught:
        read(path, PLAIN)
    assert f"{path}, line 3: " in str(caught.value)
    assert what in str(caught.value)
    assert caught.value.where == ("line", 3)
    table, rows, skipped = read(path, PLAIN, skip_malformed=True)
    assert (rows, skipped) == (4, 1)
    assert table["id"].tolist() == [2**63 - 1, 2, 3]


def test_whole_numbers_with_a_point_are_whole(tmp_path, write):
    for lines in (["2.0,a,1,x"], ["2.0,a,1,x", "x,a,1,x"]):
        assert read(write(tmp_path / "t.csv", lines), PLAIN, skip_malformed=True)[0]["id"].tolist() == [2]


def test_several_bad_lines_of_both_kinds_are_skipped(tmp_path, write):
    path = write(tmp_path / "t.csv", ["x,a,1,", GOOD[0], "5,a", GOOD[1], "6,a,-1,"])
    table, rows, skipped = read(path, PLAIN, skip_malformed=True)
    assert (rows, skipped) == (5, 3)
    assert table["name"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("form", "content", "message"),
    [
        (HEADED, b"id,other,size\n1,x,2.5\n2,x,?\n", r"t\.csv, line 3: .*size '\?'"),
        (HEADED, b"id,weight\n1,2\n", "line 1: .*should name 'size'"),
        (HEADED, b"size,id,size\n1,2,3\n", r"t\.csv, line 1: the line is the header; it names 'size' twice"),
        (HEADED, b"", "line 1"),
        (HEADED, b"id,size\n", "holds no rows"),
        (PLAIN, b"1,a,1,x\n2,b", "line 2: the line has 2 fields instead of 4"),  # cut
        # One line of four fields; two good rows for pandas.
        (PLAIN, b"1,a,5\r2,b\n", r"line 1: .*size '5..?r2'; it must be a number"),
    ],
)
def test_files_that_are_refused(tmp_path, form, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "t.csv", form)


@pytest.mark.parametrize(
    ("form", "content"),
    [
        (HEADED, b"id,size\r\n1,2\r\n3,4\r\n"),
        (HEADED, b"size,id,other,other\n2,1,3,4\n4,3,3,4\n"),
        (PLAIN, b"1,a,2,x\n3,b,4,x"),  # only the last line feed is missing
    ],
)
def test_files_that_are_read(tmp_path, form, content):
    (tmp_path / "t.csv").write_bytes(content)
    assert read(tmp_path / "t.csv", form)[0][["id", "size"]].to_numpy().tolist() == [[1, 2], [3, 4]]


def test_nothing_but_malformed_rows(tmp_path, write):
    for line in ("1,a", "x,a,1,"):
        with pytest.raises(DataError, match="holds no rows that are not malformed"):
            read(write(tmp_path / "t.csv", [line]), PLAIN, skip_malformed=True)


@pytest.mark.parametrize("damage", ["cut", "text"])
def test_a_damaged_archive(tmp_path, write, damage):
    path: Path = write(tmp_path / "t.csv.gz", GOOD)
    path.write_bytes(path.read_bytes()[:-12] if damage == "cut" else b"1,a,1,x\n")
    with pytest.raises(DataError, match="cannot be unpacked"):
        read(path, PLAIN)
