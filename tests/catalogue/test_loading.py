"""Files to instances: every finding at once, with its line and column; and back without loss."""

import json

import pytest
from cli_support import tiny
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from mapgap.catalogue import files as loading
from mapgap.catalogue import registry
from mapgap.core import CompactBase, Finding, InputError, Library
from mapgap.problems.suboperation_mapping import Plan


@pytest.fixture
def text():
    return loading.dump(tiny().to_json())


def findings(path, content, load=loading.load_instance):
    """``{(line, column, message)}`` of a broken file."""
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load(path)
    found = []
    for problem in caught.value.problems:
        assert problem.startswith(f"{path}:"), problem
        line, column, message = problem.removeprefix(f"{path}:").split(":", 2)
        found.append((int(line), int(column), message.strip()))
    return found


def place(content, needle, offset=0, nth=1):
    """Line and column (from 1) of the ``nth`` occurrence of a piece of text."""
    at = -1
    for _ in range(nth):
        at = content.index(needle, at + 1)
    at += offset
    return content.count("\n", 0, at) + 1, at - content.rfind("\n", 0, at)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_round_trip(tmp_path, suffix):
    path = loading.save_expanded(tiny(), tmp_path / f"tiny{suffix}")
    again = loading.load_instance(path)
    assert again == tiny()
    assert again.content_hash == tiny().content_hash


def test_tables_are_one_line_per_row(text):
    assert "  - [2, 4, 6, 8]\n" in text


def test_many_errors_are_found_at_once_and_in_place(tmp_path, text):
    broken = (
        text.replace("batch: 4", "batch: 0")
        .replace("flops: 1000000", "flopz: 1000000")
        .replace("tick_ns: 1000", "tick_ns: 1e3")
        .replace("kind: fused", "kind: fussed")
        .replace("source: 1", "source: one")
        .replace("schema: 1", "schema: 2")
        .replace("{name: B, memory: 100, pes: 1}", "{name: B, memory: -1, pes: 1.5}")
        .replace("[6, 12, 18, 24]", "[6, x, 18, 24]", 1)
        + "name: again\n"
    )
    found = findings(tmp_path / "broken.yaml", broken)
    expected = [
        (*place(broken, "schema: 2", 8), "schema: expected 1, found 2"),
        (*place(broken, "batch: 0", 7), "batch: expected at least 1, found 0"),
        (*place(broken, "flopz"), "flopz: expected a known field, found an unknown one; did you mean 'flops'?"),
        (1, 1, "flops: expected this field, found nothing"),
        (*place(broken, "1e3"), "tick_ns: expected an integer, found '1e3' (text in YAML; write the digits out)"),
        (*place(broken, "fussed"), "layers[1].kind: expected 'split' or 'fused', found 'fussed'"),
        (*place(broken, "source: one", 8), "layers[2].inputs[0].source: expected an integer, found 'one'"),
        (*place(broken, "-1, pes"), "accelerators[1].memory: expected at least 0, found -1"),
        (*place(broken, "1.5"), "accelerators[1].pes: expected an integer, found 1.5"),
        (*place(broken, "x, 18"), "layers[2].fp[1][1]: expected an integer, found 'x'"),
        (*place(broken, "name: again"), "name: expected each key once, found it again (first in line 4)"),
    ]
    assert sorted(found) == sorted(expected)


def test_findings_of_the_whole_are_placed_at_their_field(tmp_path, text):
    broken = text.replace("- [1, 1000000000]", "- [1, 0]").replace("name: bn", "name: conv")
    broken = broken.replace("  - [3]\n", "  - [3, 4]\n", 1) + "colour: red\n"
    found = findings(tmp_path / "broken.yaml", broken)
    zero = "bandwidth[0][1]: expected a positive number of bytes per second, found 0"
    assert (*place(broken, "[1, 0]", 4), zero) in found
    assert (*place(broken, "name: conv", 0, 2), "layers[1] (conv): expected a distinct name") in found
    row = place(broken, "- [3, 4]")
    assert (*row, "layers[1].fp (conv): expected 2 rows of 1 ticks, found [2, 1]") in found
    assert any(line == broken.count("\n") and "colour" in message for line, _, message in found)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        ("schema: 1\nlayers: [1,\nproblem: x\n", 4, 1, "began in line 2, column 9"),
        ("schema: 1\n\tform: x\n", 2, 1, "expected valid YAML"),
        ("", 1, 1, "empty file"),
        ("- 1\n- 2\n", 1, 1, "expected a mapping"),
        ("a: &x [*x]\n", 1, 8, "alias"),
        ("form: !!python/object:os.system x\n", 1, 7, "tag"),
        ("<<: {a: 1}\n", 1, 1, "merge key"),
        ("[1]: 2\n", 1, 1, "expected a word as key"),
        ("schema: 1\nform: expandd\nproblem: suboperation_mapping\n", 2, 7, "expected 'compact' or 'expanded'"),
        ("schema: 1\nform: expanded\nproblem: suboperation_maping\n", 3, 10, "did you mean 'suboperation_mapping'?"),
    ],
)
def test_broken_from_the_start(tmp_path, content, line, column, words):
    found = findings(tmp_path / "broken.yaml", content)
    assert any((at, col) == (line, column) and words in message for at, col, message in found), found


def test_what_is_no_text_is_an_input_error(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        loading.load_instance(tmp_path / "binary.yaml")
    with pytest.raises(InputError, match="found a folder"):
        loading.load_instance(tmp_path / "..")


@given(st.text(max_size=60))
def test_no_text_crashes_the_reader(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_text(content, encoding="utf-8", errors="ignore")
    with pytest.raises(InputError):
        loading.load_instance(path)


def test_an_instance_without_any_plan_is_refused_by_validate_only(tmp_path):
    path = loading.save_expanded(tiny(memory=1), tmp_path / "small.yaml")
    loading.load_instance(path)
    assert any("conv need 6 units" in m for *_, m in findings(path, path.read_text(), loading.check_file))


class Compact(CompactBase):
    model_config = ConfigDict(title="compact")

    memory: int
    network: str


def expand(compact):
    if compact.network != "tiny":
        wrong = Finding(f"expected one of tiny; found {compact.network!r}", ("network",))
        raise InputError([wrong, Finding("too odd", ("memory",))])
    return tiny(memory=compact.memory, name=compact.name)


@pytest.fixture
def small_library(monkeypatch, tmp_path):
    library = Library("suboperation_mapping", tmp_path, Compact, expand, {"tiny": lambda seed: tiny()})
    monkeypatch.setattr(registry, "library", lambda problem: library)
    path = tmp_path / "t_small.yaml"
    path.write_text("schema: 1\nform: compact\nproblem: suboperation_mapping\nname: small\nmemory: 50\nnetwork: tiny\n")
    monkeypatch.setattr(loading, "library_files", lambda: {"t_small": path})
    return path


def test_compact_files_expand(small_library):
    assert loading.load_instance("t_small") == tiny(memory=50, name="small")
    compact = loading.load_model(small_library, Compact)
    assert compact.memory == 50
    assert loading.expand(compact) == loading.load_instance(small_library)
    assert loading.expand(tiny()) == tiny()


def test_findings_of_an_expansion_are_placed_in_the_compact_file(small_library):
    found = findings(small_library, small_library.read_text().replace("network: tiny", "network: tyni"))
    assert found == [(5, 9, "memory: too odd"), (6, 10, "network: expected one of tiny; found 'tyni'")]


def test_a_file_without_form_is_one_finding_more(small_library):
    content = small_library.read_text().replace("form: compact\n", "").replace("memory: 50", "memry: 50")
    messages = [message.split(":")[0] for *_, message in findings(small_library, content)]
    assert sorted(messages) == ["form", "memory", "memry"]


def test_names_resolve_and_suggest(small_library):
    assert loading.find_instances("t_*") == ["t_small"]
    assert loading.find_instances(str(small_library)) == [str(small_library)]
    assert loading.find_instances(str(small_library.parent / "*.yaml")) == [str(small_library)]
    assert loading.find_instances("nothing*") == []
    with pytest.raises(InputError, match="did you mean 't_small'"):
        loading.resolve("t_smal")


def test_plans_load_bare_and_from_a_run(tmp_path):
    plan = Plan(ratio=(4, 0), order=(("FP/conv/0",), ()))
    bare = loading.save_plan(plan, tmp_path / "plan.json")
    assert loading.load_plan(bare, "suboperation_mapping") == plan
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"problem": "suboperation_mapping", "plan": plan.to_json()}))
    assert loading.load_plan(run, "suboperation_mapping") == plan
    run.write_text(json.dumps({"problem": "suboperation_mapping", "plan": None}))
    with pytest.raises(InputError, match="plan: expected a mapping, found nothing"):
        loading.load_plan(run, "suboperation_mapping")
    run.write_text('{"ratio": [4, "x"], "ordr": []}')
    with pytest.raises(InputError) as caught:
        loading.load_plan(run, "suboperation_mapping")
    assert len(caught.value.problems) == 3


def test_schema_requires_the_header():
    schema = loading.json_schema("suboperation_mapping")
    assert {"schema", "form", "problem", "layers"} <= set(schema["required"])
    assert loading.json_schema("suboperation_mapping", "plan")["properties"].keys() == {"ratio", "order"}
    with pytest.raises(InputError, match="expected one of"):
        loading.json_schema("nothing")


def test_any_model_loads(tmp_path):
    class Inner(BaseModel):
        model_config = ConfigDict(extra="forbid")
        x: int = 0

    class Outer(BaseModel):
        items: dict[str, Inner] = {}
        one: Inner | None = None

    path = tmp_path / "any.yaml"
    path.write_text("items: {a: {x: 1}}\n")
    assert loading.load_model(path, Outer).items["a"].x == 1
    path.write_text("one: {y: 1}\n")
    with pytest.raises(InputError, match=r":1:7: one\.y: expected a known field, found an unknown one \(known: x\)"):
        loading.load_model(path, Outer)
