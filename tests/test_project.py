"""What the project says of itself beside the code: citation, version, changelog, forms."""

import tomllib
from pathlib import Path

import pytest
import yaml

from mapgap import __version__
from mapgap.catalogue import registry

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


def test_forms_and_workflows_can_be_read():
    files = sorted((ROOT / ".github").rglob("*.yml"))
    assert {file.name for file in files} >= {"ci.yml", "wrong_result.yml"}
    for file in files:
        read = yaml.safe_load(file.read_text())
        assert read["name"]
        if file.parent.name == "ISSUE_TEMPLATE":
            assert all(part["attributes"]["label"] for part in read["body"])
