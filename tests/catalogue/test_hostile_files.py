"""Files that are made to break a reader: one readable refusal each, in bounded time and memory."""

import os
import re
import time
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.expansion import ALIAS_LIMIT, DEPTH_LIMIT
from mapgap.catalogue.files import check_file, find_instances, load_instance, load_plan
from mapgap.core import InputError, storage
from mapgap.core.storage import read_text, replace_file
from mapgap.evidence.ledger import Ledger
from mapgap.execution.sweep import load_spec
from mapgap.records.files import read_runs
from mapgap.solvers.model import read_solution

PROBLEM = "suboperation_mapping"
HEAD = f"schema: 1\nform: compact\nproblem: {PROBLEM}\nname: x\nnetwork: alexnet\ncluster: 1\nbandwidth_gbs: 1.0\n"
LAUGHS = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 10)
)


def refusal(tmp_path, content, read=check_file):
    """The messages about a file with this content."""
    path = tmp_path / "hostile.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read(path)
    assert all(len(text) < 1500 for text in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("batch: !!bool foo", "8:8: batch: expected a value of type bool, found 'foo'"),
        ('batch: !!int ""', "8:8: batch: expected a value of type int, found ''"),
        ("batch: !!float x", "8:8: batch: expected a value of type float, found 'x'"),
        ("batch: !!binary x", "8:8: batch: expected plain data, found tag tag:yaml.org,2002:binary"),
        ("batch: !!python/object:os.system x", "found tag tag:yaml.org,2002:python/object:os.system"),
        ("batch: !!set {a}", "8:8: batch: expected plain data, found tag tag:yaml.org,2002:set"),
        (f"batch: {'9' * 5000}", "8:8: batch: expected a value of type int, found '9999"),
        (f"batch: 0x{'f' * 5000}", "8:8: batch: expected a whole number of at most 1024 bits, found '0xfff"),
        (f"batch: {10**30}", "8:8: batch: expected at most 1024, found 1000000000000000000000000000000"),
        (f"batch: {'[' * 900}{']' * 900}", f"expected at most {DEPTH_LIMIT} lists and mappings in each other"),
        (f"{'- ' * 300}x", "hostile.yaml:8:1: expected valid YAML"),
        ("batch: \x00", "hostile.yaml:8:8: expected valid YAML, found: character 0x0000"),
        ("batch: *nobody", "hostile.yaml:8:8: expected the alias of an anchor, found nobody"),
        ("batch: &a 1\nip: &a best", "hostile.yaml:9:5: expected each anchor once, found a again"),
        ("batch: .inf", "8:8: batch: expected an integer"),
        ("[a, b]: 1", "hostile.yaml:8:1: expected a word as key, found a list or mapping"),
        (f"{'x' * 100_000}: 1", "expected valid YAML"),
        ("--- 1", "hostile.yaml:8:1: expected a single document, found another one"),
        (LAUGHS, f"expected aliases of at most {ALIAS_LIMIT:,} values in all, found more"),
    ],
)
def test_one_message_with_place_expected_and_found(tmp_path, line, words):
    problems = refusal(tmp_path, HEAD + line + "\n")
    assert len(problems) == 1 or words.startswith("8:1")
    assert words in problems[0]


@pytest.mark.parametrize("value", ["[a]", "{a: b}", "1", "null", "true", "1.5"])
@pytest.mark.parametrize("key", ["problem", "form", "schema", "name"])
def test_a_header_of_another_type(tmp_path, key, value):
    if (key, value) == ("schema", "1"):
        return
    text = re.sub(rf"(?m)^{key}: .*$", f"{key}: {value}", HEAD)
    assert any(f" {key}: expected" in text for text in refusal(tmp_path, text))


def test_utf_16_is_refused(tmp_path):
    assert "expected UTF-8 text, found byte 0xff" in refusal(tmp_path, HEAD.encode("utf-16"))[0]


def test_what_is_larger_than_the_limit_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "large.yaml"
    with path.open("wb") as stream:
        stream.truncate(10**12)  # a sparse file: nobody could read it
    with pytest.raises(InputError, match="expected a file of at most 33,554,432 bytes, found a larger one"):
        load_instance(path)


def test_laughs_take_no_second(tmp_path):
    began = time.process_time()
    refusal(tmp_path, LAUGHS)
    assert time.process_time() - began < 5  # half a minute would be a table that was built


def test_aliases_of_some_values_are_read_as_if_written_out(tmp_path):
    (tmp_path / "a.yaml").write_text(HEAD + "tags: &t [a, b]\n")
    plain = HEAD + "tags: [a, b]\n"
    (tmp_path / "b.yaml").write_text(plain)
    assert load_instance(tmp_path / "a.yaml") == load_instance(tmp_path / "b.yaml")
    row = "devices: &d [zcu102, zcu102]\n".replace("&d ", "")
    text = HEAD.replace("cluster: 1\n", row).replace("1.0\n", "[&r [1.0, 2.0], *r]\n")
    with_alias, without = tmp_path / "c.yaml", tmp_path / "d.yaml"
    with_alias.write_text(text)
    without.write_text(text.replace("&r ", "").replace("*r", "[1.0, 2.0]"))
    found = []
    for path in (with_alias, without):
        try:
            found.append(load_instance(path).to_json())
        except InputError as error:
            found.append([text.partition(": ")[2] for text in error.problems])
    assert found[0] == found[1]


@pytest.fixture
def special(tmp_path):
    """A fifo, a folder, a loop of links, and names that no file can have."""
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "pool.yaml")
    (tmp_path / "pool.yaml").symlink_to(tmp_path / "loop.yaml")
    names = ["fifo.yaml", "folder.yaml", "loop.yaml", "x" * 300 + ".yaml", "a\0b.yaml", "nothing.yaml"]
    return [*(tmp_path / name for name in names), Path("/dev/zero")]


@pytest.mark.parametrize(
    "read",
    [
        load_instance,
        lambda path: load_plan(path, PROBLEM),
        load_spec,
        read_solution,
        registry.load_plugin,
        read_text,
    ],
    ids=["instance", "plan", "sweep", "solution", "plug-in", "text"],
)
def test_what_is_no_regular_file_is_refused_at_once(special, read):
    for path in special:
        with pytest.raises(InputError, match=r"expected (a|the name of a)( readable| Python)? ?file") as caught:
            read(path)
        assert len(str(caught.value)) < 1000


def test_runs_and_ledgers_that_are_no_regular_files(special):
    for path in special:
        if storage.kind_of(path) != "a folder":
            with pytest.raises(InputError, match="expected a run file"):
                read_runs(path)
    with pytest.raises(InputError, match="expected a readable file, found a fifo"):
        Ledger.load(special[0])


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "a/\0/*.yaml", "[", "**/" * 200])
def test_patterns_that_can_be_no_name_match_nothing(name):
    assert find_instances(name) == []


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path, link = tmp_path / "plan.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_file(link, b"new")
    assert (path.read_text(), link.is_symlink(), path.stat().st_mode & 0o777) == ("new", True, 0o640)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(InputError, match="expected a file that can be written, found: No space left on device"):
        replace_file(path, b"newer")
    assert [(each.name, each.read_text()) for each in sorted(tmp_path.iterdir())] == [
        ("link.json", "new"),
        ("plan.json", "new"),
    ]
