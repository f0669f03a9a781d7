"""The index of runs: what is known of an instance, and single runs by name or content hash, method and options."""

from records import record

from mapgap.records.runs import Runs

RUNS = Runs(
    [
        record("i", "greedy", 12, instance_hash="h", terms={"energy": 3}, notes={"steps": 7}),
        record("i", "greedy", 11, instance_hash="h", options={"width": 2}),
        record("i", "exact", 10, 9, instance_hash="h"),
        record("other_name", "bound", bound=8, instance_hash="h"),
        record("i", "broken", 1, instance_hash="h", error="boom"),
    ]
)


def test_runs_are_found_by_name_or_hash_and_by_their_options():
    for name in ("i", "h"):
        assert RUNS.objective(name, "greedy") == 12
        assert RUNS.objective(name, "greedy", width=2) == 11
    assert RUNS.get("i", "greedy", width=3) is None
    assert RUNS.get("i", "broken") is None
    assert RUNS.objective("j", "greedy") is None


def test_terms_notes_and_gaps_are_those_of_the_run():
    assert RUNS.term("i", "greedy", "energy") == 3
    assert RUNS.note("i", "greedy", "steps") == 7
    assert RUNS.term("other_name", "bound", "energy") is None
    assert RUNS.gap("i", "greedy", width=2) == (11 - 9) / 9


def test_one_instance_has_one_set_of_facts_under_both_names():
    assert RUNS.fact("i") is RUNS.fact("other_name") is RUNS.fact("h")
    assert (RUNS.fact("i").best, RUNS.fact("i").bound) == (10, 9)
    assert RUNS.fact("j") is None


def test_parts_and_sums_of_runs_are_runs():
    assert len(RUNS.where(method="greedy")) == 2
    assert len(RUNS.where(lambda run: run.objective == 12)) == 1
    reference = record("i", "old*", 9, kind="reference", instance_hash="h")
    assert (RUNS + [reference]).measured[0] == RUNS[0]
    assert len((RUNS + [reference]).measured) == len(RUNS[1:]) + 1
