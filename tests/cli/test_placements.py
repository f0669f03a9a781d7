"""The table of placement rules: what it prints of files, and what it refuses."""

from pathlib import Path

import pytest

from mapgap.cli.placements import CLUSTERS, MODELS, RULES, Row, main, measured, summary
from mapgap.importing.cluster import load
from mapgap.importing.source import located

TINY = "hugging_face/tinyllama_1_1b.json"
PAIR = "clusters/mac_and_gpu.yaml"


def test_clusters_and_models_of_the_library():
    files = {path.name for path in located(Path(PAIR)).parent.glob("*.yaml")}
    assert files == {Path(name).name for name in CLUSTERS}
    assert len(CLUSTERS) == 8
    assert len(MODELS) == 4
    for name in CLUSTERS:
        assert sum(board.count for board in load(located(Path(name))).boards.values()) > 1


def test_optima_are_certified_and_no_rule_is_better():
    row = measured(TINY, PAIR, {"bits": 4}, RULES, None)
    assert row.status == "certified"
    assert all(loss is None or loss >= 0 for loss in map(row.loss, RULES))
    # It fits on either board, so one of them alone is best: exo takes the one of most memory, which is the quick one.
    assert row.loss("exo") == 0


def test_where_there_is_no_plan_no_rule_has_one():
    row = measured("hugging_face/llama_3_1_70b.json", PAIR, {}, RULES, "bottleneck")
    assert row.status == "certified, no plan"
    assert set(row.found.values()) == {None}


def test_the_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([TINY, "--cluster", PAIR, "--set", "bits=4", "-m", "exo"]) == 0
    printed = capsys.readouterr().out
    assert "bits=4" in printed
    (line,) = (line for line in printed.splitlines() if "tinyllama" in line)
    assert line.split()[:2] == ["mac_and_gpu", "tinyllama_1_1b"]
    assert line.split()[-3:] == ["certified", "+0.0", "%"]
    assert "optimal on 1 of 1" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "exa"], "expected a method of hybrid_pipeline, found 'exa'"),
        (["--set", "phase=train"], "expected one of decode, prefill"),
        (["--set", "bitz=4"], "did you mean 'bits'"),
        (["--cluster", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_one_error(arguments, words, capsys):
    assert main([TINY, "--cluster", PAIR, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_summaries_count_what_is_solvable():
    def row(best, value):
        return Row(None, "c", "m", "certified", best, {"rule": value})

    rows = [row(10, 10), row(10, 15), row(10, None), row(None, None)]
    assert summary(rows, "rule") == "optimal on 1 of 3, median +25.0 %, worst +50.0 %, no plan on 1 that have one"
    assert summary([row(10, None)], "rule") == "no plan on any of 1"
