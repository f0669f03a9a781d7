"""What the project says of itself beside the code: citation, version, changelog, forms."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from mapgap import __version__
from mapgap.catalogue import registry
from mapgap.instances.readings import readings_of

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_every_problem_cites_its_paper(citation):
    cited = {each["scope"].removeprefix("problem "): each for each in citation["references"]}
    own = {name for name, problem in registry.problems().items() if problem.plan_type.__module__.startswith("mapgap.")}
    assert len(own) >= 6
    assert own <= set(cited)
    for name in own:
        first = cited[name]["authors"][0]["family-names"].partition("-")[0]
        statement = (ROOT / "docs" / "problems" / f"{name}.md").read_text()
        assert first in statement, f"{name}: the statement does not name {first}"


def test_versions_agree(citation):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{project['version']}]" in changelog
    assert __version__ == project["version"]
    meta = json.loads((ROOT / "codemeta.json").read_text())
    assert (meta["name"], meta["version"]) == (project["name"], project["version"])
    assert meta["license"].endswith(f"/{project['license']}")
    assert meta["keywords"] == citation["keywords"]
    assert [each["name"] for each in meta["author"]] == [each["name"] for each in citation["authors"]]
    assert " ".join(citation["abstract"].split()) in meta["description"]
    assert all((ROOT / meta[link]).is_file() for link in ("readme", "softwareHelp", "continuousIntegration"))


PAPERS = {
    "suboperation_mapping": "mtrain",
    "hybrid_pipeline": "asteroid",
    "multi_model_splitting": "synergy",
    "fpga_gpu_partition": "dhm",
    "neuron_masking": "elfish",
    "layer_flow": None,
}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/findings.md", "docs/problems/{problem}.md"])
@pytest.mark.parametrize("problem", PAPERS)
def test_headlines_are_one_recipe(page, problem):
    """Mean and worst loss over all cases and readings, as one cell of data, wherever a heuristic is judged."""
    first = readings_of(problem).crossed[0]
    text = (ROOT / page.format(problem=problem)).read_text()
    if page in ("docs/index.md", "docs/findings.md"):  # the rows of all heuristics
        assert re.search(
            r"^```{results} readings/recipe\nmethod\nset\ncell\b.*\ninstances\b.*\ncombinations\b", text, re.M
        )
        return
    said = set(re.findall(r"<!-- fig: readings/recipe\[method=(\w+)\]\.(\w+) -->", text))
    assert {(first.method, "cell"), (first.method, "instances"), (first.method, "combinations")} <= said
    if PAPERS[problem] is not None and page == "README.md":
        assert f"published_numbers/counts[paper={PAPERS[problem]}].reproduced" in text
        assert f"ledger[problem={problem}, certificate=checked] count" in text


def test_forms_and_workflows_can_be_read():
    files = sorted((ROOT / ".github").rglob("*.yml"))
    assert {file.name for file in files} >= {"ci.yml", "wrong_result.yml"}
    for file in files:
        read = yaml.safe_load(file.read_text())
        assert read["name"]
        if file.parent.name == "ISSUE_TEMPLATE":
            assert all(part["attributes"]["label"] for part in read["body"])
