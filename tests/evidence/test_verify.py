"""Every certificate of the library holds; whatever does not fit ledger, plan or instance is refused."""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import inside

from mapgap.contract.seeds import samples, some
from mapgap.core import Certificate
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.verify import files_of, verify, verify_all

BOOK = Ledger.load()
FILES = files_of([], BOOK)
ONE, OTHER = "synergy_fig11b_1pipelines", "synergy_fig11b_2pipelines"


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(15, 400))
def test_certificates_of_the_library_hold(sample):
    """Some of them; ``mapgap verify`` looks at all."""
    for file in {FILES[k % len(FILES)] for k in sample}:
        found = verify(file, BOOK, expand=True)
        assert found.reason == ""
        checked = BOOK.entries[found.instance].certificate is Certificate.CHECKED
        assert found.grade == ("optimum" if checked else "bound")


@pytest.mark.in_turn
@pytest.mark.parametrize("name", some(1, ["mtrain_c1_vgg16_3gbs", "mtrain_c2_tinyyolov3_1gbs"]))
def test_compiled_loops_and_the_standard_library_alone_say_the_same(name, tmp_path):
    """Of a certificate of chains and of one of programs; and of both with a bound that they do not prove."""
    file = BOOK.certificate_path(name)
    for pure in (False, True):
        found = verify(file, BOOK, pure=pure)
        assert (found.reason, found.compiled) == ("", not pure)
    data = check.read(file)
    bold = tmp_path / "bold.cert.json.gz"
    bold.write_bytes(gzip.compress(json.dumps({**data, "bound": data["bound"] + data["bound"] // 1000}).encode()))
    assert all(verify(bold, BOOK, pure=pure).reason for pure in (False, True))
    done = inside("verify", "--json", "--pure", file)
    assert [each["compiled"] for each in json.loads(done.stdout)["certificates"]] == [False]


@pytest.mark.nightly
@pytest.mark.parametrize("sample", samples(15, 400))
def test_the_standard_library_alone_follows_certificates_of_the_library(sample):
    for file in {FILES[k % len(FILES)] for k in sample}:
        assert verify(file, BOOK, pure=True).reason == ""


def test_what_the_ledger_calls_checked_has_a_file_and_no_file_is_a_stray():
    promised = {BOOK.certificate_path(name) for name, entry in BOOK.entries.items() if entry.certified is not None}
    assert promised == set(FILES)
    assert len(promised) > 100


@pytest.fixture
def book(tmp_path):
    """A ledger with one checked entry, its plan and its certificate."""
    path = tmp_path / "best.yaml"
    found = Ledger(path, {ONE: BOOK.entries[ONE].model_copy(deep=True)})
    found.write()
    (tmp_path / "best").mkdir()
    for each in (BOOK.plan_path(ONE), BOOK.certificate_path(ONE)):
        shutil.copy(each, tmp_path / "best")
    return found


def rewrite(book, **changes):
    file = book.certificate_path(ONE)
    data = {**check.read(file), **changes}
    file.write_bytes(gzip.compress(json.dumps(data).encode(), mtime=0))


def reasons(book):
    book.write()
    return [each.reason for each in verify_all([], ledger=book.path)]


def test_a_certificate_that_fits_holds(book):
    assert reasons(book) == [""]
    done = inside("verify", "--ledger", book.path)
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert first.startswith(f"ok       {ONE}: no plan is below ")
    assert "the ledger's plan attains it" in first
    assert last.startswith("1 of 1 hold, 1 of them optima; ")
    told = json.loads(inside("verify", "--ledger", book.path, ONE, "--json", "--expand").stdout)
    assert (told["hold"], told["refused"], told["certificates"][0]["grade"]) == (1, 0, "optimum")


def test_a_higher_bound_is_refused(book):
    rewrite(book, bound=book.entries[ONE].bound.value + 1)
    assert "ends with a box that is not empty" in reasons(book)[0]
    done = inside("verify", "--ledger", book.path)
    assert done.returncode == 5
    assert done.stdout.startswith(f"REFUSED  {book.certificate_path(ONE)}: ")


def test_a_lower_bound_is_not_what_the_ledger_says(book):
    value = book.entries[ONE].bound.value
    rewrite(book, bound=value - 1)
    assert reasons(book) == [f"proves {value - 1}, but the ledger calls {value} checked"]


def test_another_instance_is_refused(book):
    facts = check.read(book.certificate_path(ONE))["instance"]
    facts["pipelines"][0]["boundaries"][0]["load"][0] += 1
    rewrite(book, instance=facts)
    assert "about an instance that the ledger does not know" in reasons(book)[0]


def test_the_file_of_another_entry_is_refused(book):
    shutil.copy(BOOK.certificate_path(ONE), book.certificate_path(OTHER))
    assert reasons(book) == ["", f"about {ONE}, whose file is {ONE}.cert.json.gz"]


def test_a_bound_that_the_ledger_does_not_call_checked_is_refused(book):
    book.entries[ONE].certificate = Certificate.AGREED
    assert "does not call this bound checked" in reasons(book)[0]


def test_a_plan_that_does_not_attain_what_the_ledger_says_is_refused(book):
    book.entries[ONE].plan.value += 1
    assert "the ledger's plan has" in reasons(book)[0]


def test_a_missing_file_is_missed(book):
    book.certificate_path(ONE).unlink()
    assert "cannot be read" in reasons(book)[0]
    assert "its certificate is not there" in book.problems_of(ONE)[0]


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"{}", b"[]", b"null", b'{"schema": 1}', b"\xff"])
def test_rubbish_is_refused(book, data):
    book.certificate_path(ONE).write_bytes(data)
    assert reasons(book)[0]


def test_a_file_elsewhere_about_an_unknown_instance_is_checked_alone(book, tmp_path):
    file = shutil.copy(BOOK.certificate_path(OTHER), tmp_path / "mine.cert.json.gz")
    (found,) = verify_all([str(file)], ledger=book.path)
    assert (found.holds, found.grade) == (True, "unknown")


def test_a_name_without_a_certificate_is_bad_input():
    done = inside("verify", "synergy_w1_anny")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_anyone_can_check_with_python_alone(tmp_path):
    """``python check.py`` outside the checkout, isolated from every installed package."""
    checker = Path(check.__file__).resolve()
    file = BOOK.certificate_path(ONE).resolve()
    command = [sys.executable, "-I", "-S", str(checker), str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{file}: ok: {ONE} (")


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", some(1, ["1", "2"]))
def test_a_program_does_not_depend_on_the_order_of_sets(seed):
    # Proofs name rows and variables by number: a writer that iterates over a set numbers them anew in each process.
    one_each = {
        entry.problem: entry for entry in BOOK.entries.values() if BOOK.certificate_path(entry.instance).exists()
    }
    names = [entry.instance for entry in one_each.values()] + ["mtrain_c1_tinyyolov3_0p5gbs"]
    files = [str(BOOK.certificate_path(name).resolve()) for name in names]
    command = [sys.executable, "-S", str(Path(check.__file__).resolve()), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONHASHSEED": seed})
    assert done.returncode == 0, done.stdout


def test_one_bad_file_does_not_stop_the_others(book, tmp_path):
    """An instance that the checker's writer takes and the strict reader does not, before one that is right."""
    folder = tmp_path / "best"
    data = check.read(book.certificate_path(ONE))
    data["instance"]["devices"][0]["weights"] = float(data["instance"]["devices"][0]["weights"]) + 0.5
    (folder / "a_first.cert.json.gz").write_bytes(gzip.compress(json.dumps(data).encode(), mtime=0))
    (folder / "b_second.cert.json.gz").write_bytes(gzip.compress(b"[]", mtime=0))
    book.save()
    found = verify_all([str(folder)], ledger=book.path)
    assert [each.holds for each in found] == [False, False, True]
    assert all(found_reason for found_reason in (found[0].reason, found[1].reason))


def test_several_processes_say_what_one_says_and_in_order(tmp_path):
    """Ten files, one of which is rubbish."""
    ledger, told = Ledger.load(), []
    for k, file in enumerate(files_of(["synergy_w*"], ledger)[:9]):
        shutil.copy(file, tmp_path / f"{k}.cert.json.gz")
    (tmp_path / "4b.cert.json.gz").write_text("rubbish")
    together = verify_all([str(tmp_path)], tell=told.append)
    alone = [verify(file, ledger) for file in files_of([str(tmp_path)], ledger)]
    assert told == together
    assert [replace(each, seconds=0.0) for each in together] == [replace(each, seconds=0.0) for each in alone]
    assert [each.holds for each in together].count(False) == 1
