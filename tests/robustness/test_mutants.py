"""Files, plans and run lines changed at random: a model of the data, or one readable refusal; never a traceback."""

import json
import random
import re
import time
from collections import Counter

import pytest
import yaml
from account import keep
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mutants import as_text, changed, torn
from records import record

from mapgap.catalogue import files as loading
from mapgap.catalogue import registry
from mapgap.contract.seeds import SCALE
from mapgap.core import Budget, Evaluation, InputError
from mapgap.evidence.contradictions import contradictions
from mapgap.execution.run import run_method
from mapgap.execution.watch import verify
from mapgap.records.files import read_runs
from mapgap.reporting.overview import write_report

METHODS_S = 900 * SCALE
"""Seconds for the runs of all methods on accepted changes."""
FEW = 40
LONGEST_S, LONGEST_TEXT, LARGEST_MB = 5.0, 1500, 1000
FAMILY = "tiny"


def attack(examples):
    """A test over random seeds, the same in every run."""

    def decorate(test):
        quiet = settings(
            max_examples=max(1, round(examples)),
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        return seed(2026)(quiet(given(st.integers(0, 2**63))(test)))

    return decorate


def bases():
    """``(data, text)`` of expanded instances of every problem's smallest family, and of compact ones of the library."""
    found = []
    for problem in registry.problems():
        made = [registry.library(problem).generate(FAMILY, k).to_json() for k in range(4)]
        found += [(data, loading.dump(data)) for data in made]
        compact = [header.path for header in loading.headers(problem) if header.form == "compact"]
        texts = [path.read_text(encoding="utf-8") for path in compact[:: max(1, len(compact) // 6)]]
        found += [(yaml.safe_load(text), text) for text in texts]
    return found


def mutant(rng, data, text):
    """The bytes of a changed instance file."""
    if rng.random() < 0.7:
        return as_text(changed(rng, data)).encode("utf-8", "surrogatepass")
    return torn(rng, text)


def judged(path, read):
    """What the reader says of a file: an instance, or ``None`` for a refusal that a person can read."""
    began, found, words = time.process_time(), None, [""]
    try:
        found = read(path)
    except InputError as error:
        words = error.problems
    assert words
    assert max(map(len, words)) <= LONGEST_TEXT
    assert time.process_time() - began < LONGEST_S
    return found


def files_under_attack(tmp_path, examples):
    known, counts, accepted = bases(), Counter(), {}

    @attack(examples)
    def test(number):
        rng = random.Random(number)
        path = tmp_path / "mutant.yaml"
        try:
            path.write_bytes(mutant(rng, *rng.choice(known)))
        except ValueError:  # an integer that JSON cannot write
            counts["not written"] += 1
            return
        instance = judged(path, rng.choice((loading.load_instance, loading.check_file)))
        counts["refused" if instance is None else "accepted"] += 1
        if instance is not None:
            accepted[instance.content_hash] = instance

    test()
    return counts, accepted


@pytest.mark.in_turn
def test_some_changed_files_are_read_or_refused(tmp_path):
    counts, _ = files_under_attack(tmp_path, 300)
    assert counts["refused"] > 100
    assert counts["accepted"] > 10


@pytest.mark.nightly
def test_ten_thousand_changed_files_are_read_or_refused(tmp_path):
    began = time.monotonic()
    counts, accepted = files_under_attack(tmp_path, 10_000 * SCALE)
    figures = {"changed files": sum(counts.values()), **counts, "different accepted ones": len(accepted)}
    keep("files", began, **figures, tracebacks=0)


@pytest.mark.nightly
def test_what_is_accepted_is_answered_by_every_method(tmp_path):
    began, path, rng = time.monotonic(), tmp_path / "mutant.json", random.Random(2026)
    small = [registry.library(p).generate(FAMILY, k).to_json() for p in registry.problems() for k in range(20)]
    stops, instances = Counter(), set()
    while time.monotonic() - began < METHODS_S:
        try:
            path.write_text(as_text(changed(rng, rng.choice(small), rng.choice((1, 2, 4)))), encoding="utf-8")
        except ValueError:
            continue
        instance = judged(path, loading.load_instance)
        if instance is None or instance.content_hash in instances:
            continue
        instances.add(instance.content_hash)
        methods = registry.methods(instance.problem).values()
        runs = [run_method(instance, method, Budget(0.5, 2000)) for method in methods]
        stops.update(str(each.stop) for each in runs)
        wrong = [(each.method, each.error) for each in runs if each.error]
        assert (wrong, contradictions(runs)) == ([], []), instance.to_json()
    figures = {"instances": len(instances), "runs": stops.total(), **{f"stopped: {k}": v for k, v in stops.items()}}
    keep("methods", began, **figures, errors=0, contradictions=0)


def plans_under_attack(tmp_path, examples):
    libraries = {name: registry.library(name) for name in registry.problems()}
    instances = [(name, library.generate(FAMILY, k)) for name, library in libraries.items() for k in range(4)]
    counts = Counter()

    @attack(examples)
    def test(number):
        rng = random.Random(number)
        name, instance = rng.choice(instances)
        problem, path = registry.problems()[name], tmp_path / "plan.json"
        data = libraries[name].random_plan(instance, rng).to_json()
        try:
            text = as_text(changed(rng, rng.choice((data, {"plan": data, "problem": name}))))
        except ValueError:
            return
        path.write_bytes(text.encode("utf-8", "surrogatepass") if rng.random() < 0.7 else torn(rng, text))
        plan = judged(path, lambda where: loading.load_plan(where, name))
        counts["refused" if plan is None else "evaluated"] += 1
        if plan is not None:
            found = verify(problem, instance, plan)
            assert isinstance(found, Evaluation)
            assert not any(each.rule == "evaluate" for each in found.violations), found
            if problem.gantt is not None and found.feasible:
                problem.gantt(instance, plan)

    test()
    return counts


def test_some_changed_plans_are_evaluated_or_refused(tmp_path):
    assert min(plans_under_attack(tmp_path, 200).values()) > 10


@pytest.mark.nightly
def test_two_thousand_changed_plans_are_evaluated_or_refused(tmp_path):
    began = time.monotonic()
    counts = plans_under_attack(tmp_path, 2_000 * SCALE)
    keep("plans", began, plans=counts.total(), **counts, tracebacks=0)


def hostile_record(rng, k):
    names = (
        "i",
        "[/b]",
        "$\\frac",
        "a/b/../../c",
        "\x00\x1b[2J",
        "=cmd()",
        "<script>alert(1)</script>",
        "x" * 5000,
        "é",
    )
    more = {"problem": rng.choice(("p", "../p", "suboperation_mapping")), "kind": rng.choice(("exact", "published"))}
    trace = [{"time_s": t / 10, "objective": 20 - t, "bound": t} for t in range(rng.randrange(4))]
    run = record(rng.choice(names), rng.choice(names), rng.randrange(10, 20), rng.randrange(11), seed=k, **more)
    return {**run.to_json(), "trace": trace, "cpu": rng.choice(names), "error": rng.choice((None, *names))}


def lines_under_attack(folder, number_of_lines, seed_of_lines):
    """A run file of changed lines; how many were read and how many were named as broken."""
    rng = random.Random(seed_of_lines)
    folder.mkdir()
    path, written = folder / "runs.jsonl", 0
    with path.open("wb") as stream:
        for k in range(number_of_lines):
            data = hostile_record(rng, k)
            if rng.random() < 0.6:
                data = changed(rng, data)
            try:
                line = json.dumps(data).encode()
            except ValueError:
                continue
            line = torn(rng, line.decode()).replace(b"\n", b"") if rng.random() < 0.3 else line
            if line.strip():
                stream.write(line + b"\n")
                written += 1
    broken = []
    read = len(read_runs(path, broken))
    assert read + len(broken) == written
    assert all(re.match(rf"{re.escape(str(path))}:\d+: expected a run record, found ", text) for text in broken)
    assert max(map(len, broken), default=0) <= LONGEST_TEXT
    report = write_report(path, folder / "report")
    html = report.page.read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "<script>alert" not in (folder / "report" / "report.md").read_text(encoding="utf-8")
    assert {each.name for each in folder.iterdir()} == {"runs.jsonl", "report"}
    assert all(each.is_file() for each in (folder / "report").iterdir())
    for table in (folder / "report").glob("*.csv"):
        assert not re.search(r"(?m)(^|,)=", table.read_text(encoding="utf-8"))
    return read, len(broken)


@pytest.mark.in_turn
def test_a_report_is_made_of_hostile_lines(tmp_path):
    read, broken = lines_under_attack(tmp_path / "runs", FEW, 1)
    assert read > 5
    assert broken > 5


@pytest.mark.nightly
def test_two_thousand_changed_lines_are_read_or_named(tmp_path):
    began, counts = time.monotonic(), Counter()
    for k in range(max(1, round(20 * SCALE))):
        read, broken = lines_under_attack(tmp_path / f"runs{k}", 100, k)
        counts.update(read=read, broken=broken, reports=1)
    keep("lines", began, lines=counts["read"] + counts["broken"], **counts, tracebacks=0)
