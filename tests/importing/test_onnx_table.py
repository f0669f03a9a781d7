"""The committed table of real ONNX models: enough of them, nearly all accepted, and none of which something is lost."""

import csv
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "onnx_models"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the table is not part of a wheel")


@pytest.fixture(scope="module")
def rows():
    with (FOLDER / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_it_holds_enough_different_models_and_nearly_all_are_accepted(rows):
    accepted = [row for row in rows if row["mapgap"] == "accepted"]
    real = {row["sha256"] for row in rows if not row["made"]}
    assert len(real) >= 40
    assert len(accepted) >= 0.95 * len(rows)
    # What is refused is refused by ONNX Runtime too.
    assert all(row["onnxruntime"].startswith("refuses") for row in rows if row not in accepted)


def test_none_is_accepted_of_which_something_is_lost(rows):
    for row in rows:
        if row["mapgap"] == "accepted":
            told = row["conserved"]
            shares = [float(text) for text in re.findall(r"([\d.]+) %", told)]
            assert len(shares) == 2, told
            assert all(99 <= share <= 101 for share in shares), told
            assert all(a == b for a, b in re.findall(r"(\d+) of (\d+)", told)), told
            # A model without generated weights holds no more than its file, and the file little else than weights.
            if not row["made"] and "light_" not in row["file"] and int(row["bytes"]) > 1_000_000:
                assert 0.75 * int(row["bytes"]) < int(row["weight bytes"]) <= int(row["bytes"]), row["file"]


def test_the_page_says_what_the_table_says(rows):
    page = (FOLDER.parent / "onnx_models.md").read_text(encoding="utf-8")
    accepted = sum(row["mapgap"] == "accepted" for row in rows)
    assert f"{accepted} of {len(rows)} are accepted, {len({row['sha256'] for row in rows})} of them different" in page
    shown = (FOLDER / "table.txt").read_text(encoding="utf-8").splitlines()
    assert len(shown) == len(rows) + 2
