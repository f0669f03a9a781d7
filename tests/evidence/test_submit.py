"""What others hand in enters if it holds and is better; else one sentence says why not, and nothing changes."""

import gzip
import json
import shutil

import pytest
from cli_support import inside

from mapgap.core import Certificate
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.verify import verify_all

BOOK = Ledger.load()
EXAMPLE = "mtrain_example_fig5"  # 36 ticks, by brute force
CHECKED = "synergy_fig11b_1pipelines@latency"


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger."""
    return tmp_path / "best.yaml"


@pytest.fixture
def plan(tmp_path):
    """The optimal plan of the example, as a file of that name."""
    return shutil.copy(BOOK.plan_path(EXAMPLE), tmp_path / f"{EXAMPLE}.json")


@pytest.fixture
def certificate(tmp_path):
    return shutil.copy(BOOK.certificate_path(CHECKED), tmp_path / "theirs.cert.json.gz")


def entry(ledger, name=EXAMPLE):
    return Ledger.load(ledger).entries[name]


def test_a_plan_file_enters_under_the_name_of_who_found_it(plan, ledger):
    found = inside("submit", plan, "--by", "Ada", "--ledger", ledger)
    assert found.returncode == 0, found.stderr
    assert found.stdout == f"{EXAMPLE}: plan none -> 36 (submitted)\n"
    step = entry(ledger).history[0]
    assert (step.what, step.value, step.by, step.source) == ("plan", 36, "submitted by Ada", f"{EXAMPLE}.json")
    assert Ledger.load(ledger).problems_of(EXAMPLE) == []


def test_a_dry_run_checks_and_writes_nothing(plan, ledger):
    found = inside("submit", plan, "--dry-run", "--ledger", ledger)
    assert (found.returncode, found.stdout.splitlines()[-1]) == (0, "holds; nothing was written")
    assert not ledger.exists()
    assert not ledger.with_suffix("").exists()


@pytest.mark.in_turn
def test_the_json_of_a_run_enters_with_its_plan_and_without_its_bound(tmp_path, ledger):
    solved = inside("solve", EXAMPLE, "-m", "enumerate", "--json")
    run = tmp_path / "run.json"
    run.write_text(solved.stdout)
    assert inside("submit", run, "--ledger", ledger).returncode == 0
    # Its bound of 36 is right, but nobody can check it here.
    assert (entry(ledger).plan.value, entry(ledger).bound) == (36, None)


def test_what_is_not_better_is_refused(plan, ledger):
    assert inside("submit", plan, "--ledger", ledger).returncode == 0
    again = inside("submit", plan, "--ledger", ledger)
    assert again.returncode == 2
    assert f"expected a plan of {EXAMPLE} below 36, found one of 36" in again.stderr


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda p: {**p, "order": [names[::-1] for names in p["order"]]}, 5, "the plan breaks a rule of"),
        (lambda p: {"x": 1}, 2, "ratio"),
        (lambda p: [1, 2], 2, "mapping"),
        (lambda p: {"instance": "nobody", "plan": p}, 2, "expected something about an instance of the library"),
        (lambda p: {"instance": EXAMPLE, "instance_hash": "0" * 16, "plan": p}, 2, "found one of 0000000000000000"),
    ],
)
def test_a_plan_that_does_not_hold_is_refused(plan, ledger, change, code, words):
    plan.write_text(json.dumps(change(json.loads(plan.read_text()))))
    found = inside("submit", plan, "--ledger", ledger)
    assert (found.returncode, found.stdout) == (code, "")
    assert words in found.stderr
    assert found.stderr.count("error:") == len(found.stderr.splitlines())
    assert not ledger.exists()


def test_no_file_and_no_json_are_bad_input(tmp_path, ledger):
    (tmp_path / "text.json").write_text("{")
    for name in ("text.json", "missing.json"):
        found = inside("submit", tmp_path / name, "--ledger", ledger)
        assert (found.returncode, "cannot be read" in found.stderr) == (2, True)


def test_a_certificate_is_checked_and_raises_the_grade(certificate, ledger):
    book = Ledger(ledger, {CHECKED: BOOK.entries[CHECKED].model_copy(deep=True)})
    book.entries[CHECKED].certificate = Certificate.CLAIMED
    book.write()
    shutil.copy(BOOK.plan_path(CHECKED), _folder(ledger) / BOOK.plan_path(CHECKED).name)
    found = inside("submit", certificate, "--by", "Ada", "--ledger", ledger, "--json")
    assert found.returncode == 0, found.stderr
    after = entry(ledger, CHECKED)
    assert after.certificate is Certificate.CHECKED
    assert (after.history[-1].what, after.history[-1].by) == ("checked", "submitted by Ada")
    assert [each.reason for each in verify_all([], ledger=ledger)] == [""]
    again = inside("submit", certificate, "--ledger", ledger)
    assert (again.returncode, "expected a proof of more than" in again.stderr) == (2, True)


def _folder(ledger):
    folder = ledger.with_suffix("")
    folder.mkdir(exist_ok=True)
    return folder


def test_an_altered_certificate_is_refused(certificate, ledger):
    data = check.read(certificate)
    data["bound"] += 1
    certificate.write_bytes(gzip.compress(json.dumps(data).encode()))
    found = inside("submit", certificate, "--ledger", ledger)
    assert (found.returncode, "the checker refuses it" in found.stderr) == (5, True)
    assert not ledger.exists()


def test_a_certificate_of_another_version_of_the_instance_is_refused(certificate, ledger):
    data = check.read(certificate)
    data["instance"]["tick_ns"] += 1
    certificate.write_bytes(gzip.compress(json.dumps(data).encode()))
    found = inside("submit", certificate, "--ledger", ledger)
    assert (found.returncode, "about instance" in found.stderr) == (5, True)


def test_the_name_of_a_submitter_cannot_move_the_cursor(plan, ledger):
    found = inside("submit", plan, "--by", "A\x1b[2J", "--ledger", ledger)
    assert (found.returncode, "--by: expected a name" in found.stderr) == (2, True)
