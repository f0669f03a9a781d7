"""The journal of a ledger: a union of facts in whatever order, that processes write at once and no kill harms."""

import itertools
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from records import changed

from mapgap.catalogue.files import load_instance
from mapgap.cli import main  # noqa: F401  (what the forks need is imported once)
from mapgap.contract.seeds import rotation
from mapgap.core import Budget, InputError, PlanError
from mapgap.evidence import journal
from mapgap.evidence.ledger import Ledger
from mapgap.execution.run import run_method
from mapgap.records.record import RunRecord

EXAMPLE = "mtrain_example_fig5"
COMMITTED = Ledger.load()


def bound_of(name, value, started="2026-01-01T00:00:00+00:00", **more):
    keys = {
        "kind": "bound",
        "instance": name,
        "instance_hash": "0" * 16,
        "problem": "suboperation_mapping",
        "sense": "min",
    }
    return RunRecord(**{**keys, "method": "m", "unit": "ticks", "bound": value, "started": started, **more})


@pytest.fixture(scope="module")
def runs():
    """Of one instance: a plan of one accelerator, the optimum (36, by enumeration), a weak and the best bound."""
    instance = load_instance(EXAMPLE)
    best = run_method(instance, "enumerate", Budget(300.0), isolate=False)
    single = run_method(instance, "single_accelerator", Budget(5.0), isolate=False)
    weak = changed(best, objective=None, plan=None, bound=20, status="UNKNOWN", certificate=None, method="weak")
    bound = changed(weak, bound=36, method="strong")
    return [single, changed(best, bound=None, status="FEASIBLE", certificate=None), weak, bound, best]


def test_the_committed_ledger_is_the_view_of_its_journal():
    assert COMMITTED.path.read_bytes() == COMMITTED.view()
    entries, _, _ = journal.entries_of(journal.read(COMMITTED.journal_path).values())
    assert Ledger(COMMITTED.path, entries).view() == COMMITTED.path.read_bytes()
    assert COMMITTED.behind() == []


def test_facts_in_any_order_make_the_same_ledger(runs, tmp_path):
    """Every order of entering them leaves the same lines where all are news; every order of lines the same entries."""
    whole = []
    for k, run in enumerate(runs):
        book = Ledger.load(tmp_path / str(k) / "best.yaml")
        book.update([run], {run.instance_hash: EXAMPLE})
        book.save()
        whole += journal.read(book.journal_path).values()
    views = set()
    for order in itertools.permutations(whole):
        entries, plans, _ = journal.entries_of(order)
        assert plans[EXAMPLE] == runs[-1].plan
        views.add(Ledger(tmp_path / "x.yaml", entries).view())
    assert len(views) == 1
    entry = entries[EXAMPLE]
    assert (entry.plan.value, entry.bound.value, entry.certificate) == (36, 36, "enumerated")


def test_two_branches_are_merged_by_taking_the_lines_of_both(runs, tmp_path):
    single, best, weak, bound, _ = runs
    parts = []
    for name, given in (("a", (single, bound)), ("b", (weak, best))):
        book = Ledger.load(tmp_path / name / "best.yaml")
        book.update(given, {best.instance_hash: EXAMPLE})
        book.save()
        parts.append(book.journal_path.read_bytes())
    views = set()
    for order in (parts, parts[::-1], parts * 2):
        path = tmp_path / "merged" / "best.yaml"
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".journal").write_bytes(b"".join(order))
        book = Ledger.load(path)
        book.save()
        assert book.problems_of(EXAMPLE) == []
        views.add(path.read_bytes())
        path.unlink()
    assert len(views) == 1
    assert (book.entries[EXAMPLE].plan.value, book.entries[EXAMPLE].bound.value) == (36, 36)


def test_contradictions_that_were_entered_meanwhile_are_refused_and_the_rest_enters(runs, tmp_path):
    path = tmp_path / "best.yaml"
    first, second = Ledger.load(path), Ledger.load(path)
    first.update([runs[1]], {runs[1].instance_hash: EXAMPLE})
    second.enter(EXAMPLE, changed(runs[3], bound=40))  # beyond the optimum
    second.enter("other", bound_of("other", 7))
    first.save()
    with pytest.raises(PlanError, match="claims bound 40, but enumerate has a plan of objective 36"):
        second.save()
    found = Ledger.load(path)
    assert (found.entries[EXAMPLE].bound, found.entries["other"].bound.value) == (None, 7)
    assert found.behind() == []


@pytest.mark.parametrize("torn", [b'{"instance":"x"', b"\xff", b"{}"])
def test_a_torn_last_line_counts_for_nothing_and_is_cut_off(tmp_path, torn):
    book = Ledger.load(tmp_path / "best.yaml")
    book.enter("a", bound_of("a", 1))
    book.save()
    before = book.journal_path.read_bytes()
    book.journal_path.write_bytes(before + torn)
    assert len(journal.read(book.journal_path)) == 1
    again = Ledger.load(book.path)
    again.enter("a", bound_of("a", 2))
    again.save()
    lines = book.journal_path.read_bytes().splitlines()
    assert (lines[0] + b"\n", len(lines), json.loads(lines[1])["bound"]) == (before, 2, 2)


@pytest.mark.parametrize("line", ["x", "[1]", '{"instance": "x"}', "<<<<<<< HEAD"])
def test_a_line_that_is_none_is_named_and_nothing_is_written(tmp_path, line):
    book = Ledger.load(tmp_path / "best.yaml")
    book.enter("a", bound_of("a", 1))
    book.save()
    book.journal_path.write_text(book.journal_path.read_text() + line + "\n")
    before = book.path.read_bytes(), book.journal_path.read_bytes()
    book.enter("a", bound_of("a", 2))
    with pytest.raises(InputError, match=r"best\.journal:2: expected a fact of the ledger"):
        book.save()
    assert (book.path.read_bytes(), book.journal_path.read_bytes()) == before


def test_an_instance_that_changes_starts_anew_whatever_the_clock_says(tmp_path):
    path = tmp_path / "best.yaml"
    for digest, value, started in (("a" * 16, 50, "2026-05"), ("b" * 16, 7, "2020-01"), ("b" * 16, 9, "2019-01")):
        book = Ledger.load(path)
        book.enter("x", bound_of("x", value, started, instance_hash=digest))
        book.save()
        entry = Ledger.load(path).entries["x"]
        assert (entry.instance_hash, entry.bound.value) == (digest, value)


def worker(path: Path, name: str, updates: int, told: Path) -> None:
    """Raise a bound step by step; each step is noted once it is entered. Goes on where it was killed."""
    done = len(told.read_bytes().split()) if told.exists() else 0
    for value in range(done + 1, updates + 1):
        book = Ledger.load(path)
        book.enter(name, bound_of(name, value, f"{value:04}"))
        book.enter("shared", bound_of("shared", value, f"{value:04}", method=name))
        book.save()
        with told.open("ab") as stream:
            stream.write(b"%d " % value)


def start(*arguments):
    pid = os.fork()
    if pid == 0:
        try:
            worker(*arguments)
        finally:
            os._exit(0)
    return pid


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("processes", "updates", "kills"), [(8, 5, 12), pytest.param(64, 20, 200, marks=pytest.mark.nightly)]
)
def test_processes_that_are_killed_at_any_moment_lose_and_double_nothing(tmp_path, processes, updates, kills):
    path, random_ = tmp_path / "best.yaml", random.Random(rotation())
    alive = {}
    for k in range(processes):
        alive[start(path, f"w{k}", updates, tmp_path / f"{k}.told")] = k
    hit = 0
    while alive:
        time.sleep(random_.uniform(0.0, 0.05))
        if hit < kills:
            os.kill(random_.choice(list(alive)), signal.SIGKILL)
            hit += 1
        while alive and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            k = alive.pop(ended[0])
            if ended[1]:
                alive[start(path, f"w{k}", updates, tmp_path / f"{k}.told")] = k
    found = Ledger.load(path)
    assert found.behind() == []
    assert {name: entry.bound.value for name, entry in found.entries.items()} == {
        "shared": updates,
        **{f"w{k}": updates for k in range(processes)},
    }
    facts = [json.loads(line) for line in found.journal_path.read_bytes().splitlines()]
    told = sorted((fact["instance"], fact["bound"]) for fact in facts if fact["instance"] != "shared")
    assert told == sorted((f"w{k}", value) for k in range(processes) for value in range(1, updates + 1))
