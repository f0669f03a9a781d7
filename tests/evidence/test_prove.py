"""Certificates are made, kept, entered; and no altered one is believed when it claims more than the truth."""

import json
from dataclasses import replace

import pytest
from cli_support import inside

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan, save_expanded
from mapgap.contract.seeds import samples
from mapgap.core import Budget, Certificate, InputError, PlanError
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.prove import Checking, Searching, climb, pack, prove, prove_all
from mapgap.execution.run import run_method
from mapgap.formulations.suboperation_mapping.programs import shaving, written

#: A bound that only an instance without a plan has.
PROBLEMS = {"fpga_gpu_partition": 10**10, "multi_model_splitting": 2**31, "neuron_masking": -1}
BOOK = Ledger.load()
SMALL = (
    "synergy_fig11a_3devices_overlapped",
    "synergy_fig6_any",
    "dhm_vgg16_fold4",
    "dhm_vgg16_fold4@edp",
)


def optimum(instance):
    """By brute force; ``None`` without a plan."""
    return run_method(instance, "enumerate", Budget(300.0), isolate=False).objective


def accepted(certificate, instance=None):
    try:
        check.check(certificate, instance)
    except check.Refused:
        return False
    return True


def ledger_of(path, *names, plan=True):
    """A ledger of its own with some entries of the library's, none of them checked."""
    book = Ledger(path)
    for name in names:
        entry = BOOK.entries[name].model_copy(deep=True)
        entry.certificate, entry.checked_bound = Certificate.AGREED, None
        book.plans[name] = load_plan(BOOK.plan_path(name), entry.problem).to_json()
        if not plan:
            entry.plan = entry.certificate = None
            book.plans.clear()
        book.entries[name] = entry
    book.write()
    return path


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(20, 200))
@pytest.mark.parametrize("family", ["tiny", "realistic"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_optima_are_proven_and_nothing_beyond(problem, family, sample, tmp_path):
    """Brute force is the judge; of an instance without a plan everything is proven."""
    proven = 0
    for seed in sample:
        instance = registry.library(problem).generate(family, seed)
        best = optimum(instance)
        if best is None:
            assert prove(instance, PROBLEMS[problem], Budget(200.0), tmp_path / "none.gz").reason == ""
            continue
        found = prove(instance, best, Budget(200.0), tmp_path / f"{seed}.cert.json.gz")
        assert (found.reason, found.bound) == ("", best)
        certificate = check.read(found.file)
        better = best + (1 if registry.problems()[problem].sense == "min" else -1)
        assert accepted(certificate, instance.to_json())
        assert not accepted({**certificate, "bound": better})
        beyond = prove(instance, better, Budget(200.0), tmp_path / "beyond.cert.json.gz")
        assert (beyond.file, "no proof" in beyond.reason) == (None, True)
        proven += 1
    assert proven


def test_the_command_writes_the_same_bytes_twice_and_keeps_what_checks(tmp_path):
    name, file = "synergy_fig11b_1pipelines", tmp_path / "a.cert.json.gz"
    done = inside("prove", name, "-o", file)
    assert (done.returncode, done.stdout.startswith(f"proven   {name}: no plan is below ")) == (0, True)
    first, moment = file.read_bytes(), file.stat().st_mtime_ns
    assert inside("prove", name, "-o", file).stdout.startswith("kept ")
    assert file.stat().st_mtime_ns == moment
    told = json.loads(inside("prove", name, "-o", tmp_path, "--json").stdout)
    assert (told["bound"], told["kept"], told["reason"]) == (BOOK.entries[name].bound.value, False, "")
    assert (tmp_path / f"{name}.cert.json.gz").read_bytes() == first


def test_a_glob_takes_all_objectives_and_goes_on_where_it_was_interrupted(tmp_path):
    ledger = ledger_of(tmp_path / "best.yaml", "dhm_squeezenet_fire2", "dhm_squeezenet_fire2@latency")
    events = []

    def interrupt(event):
        events.append(event)
        if len([each for each in events if isinstance(each, Searching)]) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove_all(["dhm_squeezenet_fire2*"], Budget(200.0), ledger=ledger, update=True, tell=interrupt)
    grades = [entry.certificate for entry in Ledger.load(ledger).entries.values()]
    assert grades == [Certificate.CHECKED, Certificate.AGREED]  # what was done is entered
    (looked,) = [each.found for each in events if isinstance(each, Checking)]
    assert (looked.instance, looked.bound) == ("dhm_squeezenet_fire2", BOOK.entries["dhm_squeezenet_fire2"].bound.value)
    (tmp_path / "best" / "dhm_squeezenet_fire2__latency.cert.json.gz").write_bytes(b"\x1f\x8btorn")
    found = prove_all(["dhm_squeezenet_fire2*"], Budget(200.0), ledger=ledger, update=True)
    assert [(each.instance, each.kept) for each in found] == [
        ("dhm_squeezenet_fire2", True),
        ("dhm_squeezenet_fire2@latency", False),
    ]
    again = Ledger.load(ledger)
    assert {entry.certificate for entry in again.entries.values()} == {Certificate.CHECKED}
    assert [again.problems_of(name) for name in again.entries] == [[], []]


def test_an_open_instance_has_a_checked_bound_until_a_plan_attains_it(tmp_path):
    name = "synergy_fig11b_1pipelines"
    path = ledger_of(tmp_path / "best.yaml", name, plan=False)
    best = BOOK.entries[name].bound.value
    prove_all([name], Budget(200.0), bound=best - 7, ledger=path, update=True)
    entry = Ledger.load(path).entries[name]
    assert (entry.certificate, entry.checked_bound, entry.bound.value) == (None, best - 7, best)
    prove_all([name], Budget(200.0), ledger=path, update=True)
    book = Ledger.load(path)
    assert (book.entries[name].certificate, book.entries[name].checked_bound) == (None, best)
    record = run_method(load_instance(name), "joint", Budget(300.0), isolate=False)
    assert record.objective == best
    book.update([record], {record.instance_hash: name})
    assert (book.entries[name].certificate, book.entries[name].checked_bound) == (Certificate.CHECKED, None)


def test_of_an_open_entry_a_share_of_the_bound_is_proven(tmp_path):
    name = SMALL[0]
    path = ledger_of(tmp_path / "ledger.json", name)
    book = Ledger.load(path)
    best = book.entries[name].bound.value
    book.entries[name].bound = book.entries[name].bound.model_copy(update={"value": best - 1})  # open again
    book.write()
    (found,) = prove_all([name], Budget(200.0), share=0.99, ledger=path, update=True)
    assert (found.reason, found.bound) == ("", int(0.99 * (best - 1)))
    entry = Ledger.load(path).entries[name]
    assert entry.checked_bound == found.bound
    assert entry.checked_gap == pytest.approx((best - found.bound) / found.bound)
    (whole,) = prove_all([SMALL[1]], Budget(200.0), share=0.5, output=tmp_path)  # an optimum is proven as it is
    assert whole.bound == BOOK.entries[SMALL[1]].plan.value


def test_a_weaker_bound_does_not_replace_a_stronger_certificate(tmp_path):
    name, file = "synergy_fig11b_1pipelines", tmp_path / "a.cert.json.gz"
    best = BOOK.entries[name].bound.value
    prove_all([name], Budget(200.0), output=file)
    (kept,) = prove_all([name], Budget(200.0), bound=best - 1, output=file)
    assert (kept.kept, check.read(file)["bound"]) == (True, best)


def test_of_an_open_entry_as_much_is_certified_as_the_time_allows(tmp_path, monkeypatch):
    """The plan is the optimum by hand, 36; a file that proves more than a climb finds is kept."""
    name = "mtrain_example_fig5"
    path = ledger_of(tmp_path / "best.yaml", name)
    file = Ledger.load(path).certificate_path(name)
    (nothing,) = prove_all([name], Budget(0.0), ledger=path, update=True)
    assert (nothing.file, nothing.reason) == (None, "no bound was proven within the time limit")
    prove_all([name], Budget(200.0), bound=30, ledger=path, update=True)
    assert Ledger.load(path).entries[name].checked_bound == 30
    (kept,) = prove_all([name], Budget(0.0), ledger=path, update=True)
    assert (kept.kept, kept.bound) == (True, 30)
    checked, holds = [], check.check

    def noted(data, *given, **by):
        checked.append(data["bound"])
        return holds(data, *given, **by)

    monkeypatch.setattr(check, "check", noted)
    (found,) = prove_all([name], Budget(200.0), ledger=path, update=True)
    assert checked == [30, 36]  # each may take minutes
    assert (found.kept, found.bound, check.read(file)["bound"]) == (False, 36, 36)
    assert Ledger.load(path).entries[name].certificate is Certificate.CHECKED
    library = registry.library("suboperation_mapping")
    data = check.read(file)
    instance = load_instance(name)
    shaved = shaving(written(instance.to_json(), 36, "2,1"), Budget(200.0).start()).finished()
    renamed = {key: steps for key, steps in data["proof"].items() if key.split()[0] != "2,1"} | {"2,1 below 36": shaved}
    further = replace(library, climbing=lambda instance, goal, budget, start: (36, renamed))
    monkeypatch.setattr(registry, "library", lambda problem: further)
    replaced = climb(instance, 36, Budget(200.0), file)  # of the same bound, but the next search has less to do
    assert (replaced.kept, replaced.bound, check.read(file)["proof"]) == (False, 36, renamed)
    others = pack(instance, 36, data["proof"])  # somebody else writes it during the search: it stays
    meanwhile = replace(library, climbing=lambda *_: (file.write_bytes(others) and 36, renamed))
    monkeypatch.setattr(registry, "library", lambda problem: meanwhile)
    climb(instance, 36, Budget(200.0), file)
    assert check.read(file)["proof"] == data["proof"] != renamed
    lie = replace(library, climbing=lambda instance, goal, budget, start: (goal, {"all": [["p", 0, 1]]}))
    monkeypatch.setattr(registry, "library", lambda problem: lie)
    (refused,) = prove_all([name], Budget(200.0), ledger=ledger_of(tmp_path / "other.yaml", name))
    assert (refused.file, refused.refused) == (None, True)


def test_compiled_loops_are_believed_of_a_bound_that_was_checked_before_alone(tmp_path, monkeypatch):
    """Here they believe anything; the optimum is 36 by hand, and nothing proves 35."""
    name = "mtrain_example_fig5"
    path = ledger_of(tmp_path / "best.yaml", name)
    file, instance = Ledger.load(path).certificate_path(name), load_instance(name)
    prove_all([name], Budget(200.0), bound=30, ledger=path, update=True)
    library = replace(registry.library("suboperation_mapping"), climbing=lambda *_: None)
    monkeypatch.setattr(registry, "library", lambda problem: library)
    asked = []
    monkeypatch.setattr("mapgap.evidence.prove.compiled_cases", lambda found: asked.append(found) or (lambda *_: []))
    for bound, believed in ((35, False), (30, True)):
        file.write_bytes(pack(instance, bound, {"all": [["p", 0, 1]]}))
        (found,) = prove_all([name], Budget(200.0), ledger=path, update=True)
        assert (found.kept, bool(asked)) == (believed, believed)
        assert Ledger.load(path).entries[name].checked_bound == 30


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing"], 2, "expected a file or the name of a library instance"),
        (["synergy_w1_any", "--bound", "10000000000"], 2, "found a plan of 27477 in the ledger"),
        (["synergy_w1_*", "--bound", "1"], 2, "expected one instance, found"),
        (["TINY"], 2, "the ledger knows no bound; expected --bound"),
        (["TINY", "--bound", "1", "--update-ledger"], 2, "expected an instance of the ledger"),
        (["synergy_w1_any", "--update-ledger", "-o", "x.gz"], 2, "leave out -o"),
        (["synergy_w1_any", "--objective", "energy"], 2, "found 'energy'"),
    ],
)
def test_bad_requests(arguments, code, words, tmp_path):
    tiny = save_expanded(registry.library("multi_model_splitting").generate("tiny", 0), tmp_path / "tiny.yaml")
    done = inside("prove", *(tiny if word == "TINY" else word for word in arguments))
    assert done.returncode == code
    assert words in done.stderr


def test_no_proof_no_file(tmp_path, monkeypatch):
    name, file = "synergy_fig11b_1pipelines", tmp_path / "a.cert.json.gz"
    library = registry.library("multi_model_splitting")

    def produced_by(proving):
        monkeypatch.setattr(registry, "library", lambda problem: replace(library, proving=proving))
        return inside("prove", name, "-o", file)

    nothing = produced_by(lambda instance, bound, budget: None)
    lie = produced_by(lambda instance, bound, budget: [["p", 0, 1]])
    crash = produced_by(lambda instance, bound, budget: 1 // 0)
    absent = produced_by(None)
    assert [each.returncode for each in (nothing, lie, crash, absent)] == [4, 5, 4, 2]
    assert "no proof of bound" in nothing.stdout
    assert "the checker refuses the proof" in lie.stdout
    assert "ZeroDivisionError" in crash.stdout
    assert "a problem with certificates" in absent.stderr
    several = inside("prove", name, "synergy_w1_any", "-o", tmp_path / "folder")
    assert several.returncode == 4
    assert several.stdout.count("a problem with certificates") == 2
    assert not file.exists()


@pytest.mark.in_turn
def test_solve_certifies_the_bound_it_found(tmp_path):
    name, plan = "synergy_fig11b_1pipelines", tmp_path / "plan.json"
    done = inside("solve", name, "--certify", "-o", plan, "--time-limit", 20)
    assert done.returncode == 0
    assert "the plan is optimal" in done.stdout
    assert accepted(check.read(tmp_path / "plan.cert.json.gz"), load_instance(name).to_json())
    run, made = map(json.loads, inside("solve", name, "--certify", "-o", plan, "--json").stdout.splitlines())
    assert (made["bound"], made["kept"]) == (run["bound"], True)
    without = inside("solve", name, "--certify", "-m", "synergy", "-o", plan)
    assert without.returncode == 4
    assert "expected a bound to prove" in without.stderr


def test_a_checked_bound_beyond_the_plan_is_a_contradiction(tmp_path):
    name = "synergy_fig11b_1pipelines"
    book = Ledger.load(ledger_of(tmp_path / "best.yaml", name))
    (record,) = [each for each in book.entries[name].references(name) if each.bound is not None]
    with pytest.raises(PlanError, match="contradict"):
        book.enter_certificate(name, replace(record, bound=record.bound + 1))
    with pytest.raises(InputError):
        prove_all([name], Budget(1.0), bound=record.bound + 1, ledger=book.path)


@pytest.mark.in_turn
def test_a_sweep_is_certified_when_asked(tmp_path):
    """Optima and infeasible instances get files that the checker accepts; what is open, and heuristics alone, none."""
    spec = tmp_path / "sweep.yaml"
    names = ["synergy_w1_any", "synergy_fig12_3x78000_1x78002"]
    spec.write_text(f"name: few\ninstances: {names}\nmethods: [synergy, portfolio]\nbudget: {{time_s: 30}}\n")
    assert inside("bench", spec).returncode == 0
    runs, folder = tmp_path / "few.jsonl", tmp_path / "few.certificates"
    assert not folder.exists()
    before = runs.read_bytes()
    told = inside("bench", spec, "--certify")
    assert (told.returncode, runs.read_bytes()) == (0, before)  # no run was done again, none has other times
    for name in names:
        assert f"proven   {name}: no plan is" in told.stdout + told.stderr
        assert inside("verify", folder / f"{name}.cert.json.gz").returncode == 0
    only = tmp_path / "only.yaml"
    only.write_text(f"name: only\ninstances: {names}\nmethods: [synergy]\n")
    assert inside("bench", only, "--certify").returncode == 0
    assert not (tmp_path / "only.certificates").exists()
