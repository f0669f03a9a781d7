"""Run files: what was written comes back, and what is no run names its line."""

import json

import pytest
from records import record

from mapgap.core import InputError, TracePoint
from mapgap.records.files import append, locked, pack, packed, read_runs, repair, run_files

GOOD = record("i", "m", 12, 10, trace=[TracePoint(0.5, objective=12), TracePoint(0.75, bound=10)])


def test_what_was_appended_comes_back(tmp_path):
    path = tmp_path / "runs.jsonl"
    for seed in range(3):
        append(path, record("i", "m", 12, seed=seed))
    append(path, GOOD)
    runs = read_runs(path)
    assert [run.seed for run in runs] == [0, 1, 2, 0]
    assert runs[3] == GOOD
    assert len(read_runs(tmp_path)) == 4  # a folder of run files


def test_a_torn_last_line_is_no_run_and_can_be_cut_off(tmp_path):
    path = tmp_path / "runs.jsonl"
    append(path, GOOD)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert list(read_runs(path)) == [GOOD]
    assert repair(path) == 40
    assert repair(path) == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"not json", "expected a run record, found Invalid JSON"),
        (b"[1]", "expected a run record, found Input should be an object"),
        (b'{"instance_hash": "x"}', "instance: Field required; problem: Field required; sense: .* and 2 more"),
        (b"\xff\xfe", "expected a run record, found Invalid JSON"),
        (json.dumps(GOOD.to_json() | {"objective": "12"}).encode(), "objective: Input should be a valid integer"),
        (json.dumps(GOOD.to_json() | {"wall_s": float("nan")}).encode(), "not finite"),
        (json.dumps(GOOD.to_json() | {"status": "GREAT"}).encode(), "status: 'GREAT', none of OPTIMAL"),
        (json.dumps(GOOD.to_json() | {"trace": [{"when": 1}]}).encode(), "expected a run record"),
        (json.dumps(GOOD.to_json() | {"trace": 3}).encode(), "expected a run record"),
        (b"[" * 100_000, "expected"),
    ],
)
def test_what_is_no_run_names_its_line(tmp_path, line, words):
    path = tmp_path / "runs.jsonl"
    append(path, GOOD)
    with path.open("ab") as stream:
        stream.write(line + b"\n")
    append(path, GOOD)
    with pytest.raises(InputError, match=rf"runs\.jsonl:2: .*{words}"):
        read_runs(path)


def test_what_is_no_text_or_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="found none"):
        read_runs(tmp_path / "missing.jsonl")


def three(path):
    """A run file of three runs, and these."""
    for seed in range(3):
        append(path, record("i", "m", 12, seed=seed))
    return list(read_runs(path))


def test_a_packed_file_is_read_under_its_old_name(tmp_path):
    path = tmp_path / "runs.jsonl"
    runs = three(path)
    whole = path.read_bytes()
    assert pack(path) == packed(path) == tmp_path / "runs.jsonl.gz"
    assert [each.name for each in tmp_path.iterdir()] == ["runs.jsonl.gz"]
    assert list(read_runs(path)) == list(read_runs(packed(path))) == list(read_runs(tmp_path)) == runs
    assert run_files(tmp_path) == [path]
    first = packed(path).read_bytes()
    assert pack(path).read_bytes() == first  # again: nothing to do
    path.write_bytes(whole)
    assert pack(path).read_bytes() == first  # no time stamp in it
    with pytest.raises(InputError, match="found none"):
        pack(tmp_path / "other.jsonl")


def test_whoever_holds_a_packed_file_has_it_unpacked(tmp_path):
    path = tmp_path / "runs.jsonl"
    three(path)
    whole = path.read_bytes()
    pack(path)
    with locked(path):
        assert path.read_bytes() == whole
        with pytest.raises(InputError, match="no other sweep"):
            pack(path)
    assert not packed(path).exists()
    pack(path)
    with locked(path, fresh=True):
        assert path.read_bytes() == b""
    assert not packed(path).exists()
    with pytest.raises(InputError, match="expected the name that a packed run file was made of"), locked(packed(path)):
        pass


def test_no_run_is_lost_or_read_twice_between_the_two_forms(tmp_path):
    """A program that was stopped while it unpacked leaves the packed file and a beginning of the plain one."""
    path = tmp_path / "runs.jsonl"
    runs = three(path)
    whole = path.read_bytes()
    pack(path)
    for size in (0, 10, len(whole) // 2, len(whole)):
        path.write_bytes(whole[:size])
        assert list(read_runs(path)) == list(read_runs(tmp_path)) == runs
    path.write_bytes(whole[: len(whole) // 2])
    with locked(path):
        assert path.read_bytes() == whole
    data = pack(path).read_bytes()
    append(path, GOOD)
    assert list(read_runs(path)) == [GOOD, *runs]  # the packed ones come after those of the plain file
    pack(path)
    assert list(read_runs(path)) == [GOOD, *runs]
    packed(path).write_bytes(data[:-20])
    with pytest.raises(InputError, match="expected a packed run file"):
        read_runs(path)
    packed(path).write_bytes(b"no gzip")
    with pytest.raises(InputError, match="expected a packed run file"):
        read_runs(path)
