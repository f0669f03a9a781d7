"""Reports that no study makes: worst cases solved anew, totals of the cross-check, the account of the attacks."""

import json
import re
from pathlib import Path

import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.execution.run import run_method

REPORTS = Path(__file__).parents[2] / "reports"
WORST = [
    [cell.strip().strip("`") for cell in line.strip("| \n").split("|")]
    for line in (REPORTS / "worst_cases" / "README.md").read_text().splitlines()
    if line.startswith("| `")
]


def numbers(text):
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", text)]


def test_every_worst_case_has_a_row():
    files = {file.name for file in (REPORTS / "worst_cases").glob("*.yaml")}
    assert {row[-1].partition("](")[2].rstrip(")") for row in WORST} == files


@pytest.mark.parametrize("row", WORST, ids=[row[0] for row in WORST])
def test_a_worst_case_is_as_bad_as_its_row_says(row):
    problem, method, value, optimum, factor, *_, link = row
    instance = load_instance(REPORTS / "worst_cases" / link.partition("](")[2].rstrip(")"))
    assert instance.problem == problem
    found = run_method(instance, method, Budget(60.0), isolate=False)
    best = run_method(instance, "enumerate", Budget(60.0), isolate=False)  # the oracle: brute force
    assert [found.objective] == numbers(value)
    assert [best.objective] == numbers(optimum)
    assert best.status == "OPTIMAL"
    ratio = found.objective / best.objective
    assert f"{max(ratio, 1 / ratio):.2f}" == factor


def test_the_cross_check_adds_up():
    text = (REPORTS / "cross_check" / "summary.md").read_text()
    first, second, *_ = (block for block in text.split("\n\n") if block.startswith("|"))
    cases = [[cell.strip() for cell in line.strip("|").split("|")] for line in first.splitlines()[2:]]
    runs = [[cell.strip() for cell in line.strip("|").split("|")] for line in second.splitlines()[2:]]
    total_cases, total_runs = numbers(re.search(r"(\d+) cases, (\d+) runs", text)[0])
    assert sum(int(row[1]) for row in cases) == total_cases
    assert sum(int(row[2]) for row in runs) == total_runs
    for problem, count, plans, _, seeds, revisions in cases:
        low, high = map(int, seeds.split("-"))
        assert high - low + 1 == int(count) == sum(map(int, re.findall(r"\((\d+)\)", revisions)))
        certified = [row for row in runs if row[:2] == [problem, "certificate"]]
        assert [row[2] for row in certified] == [plans]
        assert all(int(row[2]) <= int(count) and int(row[3]) <= int(row[2]) for row in runs if row[0] == problem)


def test_the_account_of_the_attacks_is_its_data():
    text = (REPORTS / "robustness" / "summary.md").read_text()
    parts = {part.partition("\n")[0]: part for part in text.split("## ")[1:]}
    files = sorted((REPORTS / "robustness").glob("*.json"))
    assert len(parts) == len(files)
    for file in files:
        data = json.loads(file.read_text())
        rows = "\n".join(f"| {key} | {value} |" for key, value in data["figures"].items())
        (part,) = (part for part in parts.values() if rows in part)
        assert f"Revision {data['revision']}, {data['day']}." in part


def test_planted_lies_add_up():
    text = (REPORTS / "planted_lies" / "summary.md").read_text()
    rows = [numbers(line.partition("|")[2]) for line in text.splitlines() if re.match(r"\| \w.*\d", line)]
    planted, found, by_data = (sum(column) for column in zip(*rows, strict=True))
    assert f"{planted} lies, {found} found, {by_data} of them by the data." in text
    assert found >= 0.95 * planted
    assert all(seen >= 0.9 * told for told, seen, _ in rows)
