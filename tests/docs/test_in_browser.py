"""Pages that do something, in a real browser without network: the checker of certificates, the player, lessons."""

import copy
import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import END, ENTER, LEFT, RIGHT, SPACE, browsing, installed, serving

from mapgap.evidence.check import read

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not installed(), reason="needs chromium and chromedriver"),
    pytest.mark.skipif(not (ROOT / "docs" / "_ext").is_dir(), reason="the pages are not part of a wheel"),
]
LESSONS = ("integer_program_by_hand", "a_bound_from_multipliers", "two_goals", "checking_a_certificate")
PAGES = ("check_here.md", "lessons/watch_the_search.md", *(f"lessons/{name}.md" for name in LESSONS))
VERDICTS = "return Array.from(document.querySelectorAll('#checker-verdicts li'), (each) => each.innerText)"
GENUINE = ("synergy_w1_any", "mtrain_example_fig5", "elfish_lenet_straggler1", "asteroid_nano3_mobilenetv2_100mbps")
LOOKS = [(width, scheme) for width in (1440, 390) for scheme in ("light", "dark")]
FAINT = """
function light(colour) {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number)
    .map((c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}
function behind(node) {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!/, 0\\)$|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
}
return Array.from(document.querySelectorAll(arguments[0])).filter(function (node) {
  const [high, low] = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
  return (high + .05) / (low + .05) < 4.5;
}).map((node) => node.outerHTML);
"""
"""Texts whose contrast is less than the 4.5 of WCAG's level AA."""
TEXTS = (
    ".checker label, .checker button, .player button, .player .said, .player .legend, .cell button, .lesson-state, .ran"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of these pages alone, with what they bring along."""
    if shutil.which("npm") is None and not list(ROOT.glob("build/pyodide-*")):
        pytest.skip("needs npm, for Pyodide")
    root = tmp_path_factory.mktemp("site")
    (ROOT / "build").mkdir(exist_ok=True)  # what is fetched is fetched once
    for name in ("mapgap", "problems", "instances", "heuristics", "formulations", "solvers", "build"):
        (root / name).symlink_to(ROOT / name)
    docs = root / "docs"
    (docs / "lessons").mkdir(parents=True)
    for page in PAGES:
        shutil.copy(ROOT / "docs" / page, docs / page)
    (docs / "index.md").write_text("# Pages\n\n```{toctree}\n:glob:\n\n*\nlessons/*\n```\n")
    (docs / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'docs' / '_ext')!r})\n"
        "extensions = ['myst_nb', 'sphinx_design', 'site_math', 'site_checker', 'site_player', 'site_runner']\n"
        "extensions += ['site_slides']; html_math_renderer = 'mathml'\n"
        f"html_theme, html_static_path = 'furo', [{str(ROOT / 'docs' / '_static')!r}]\n"
        "html_css_files, html_js_files, nb_execution_mode = ['site.css'], ['player.js'], 'off'\n"
        "myst_enable_extensions = ['colon_fence', 'dollarmath']\n"
    )
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-b", "html", docs, root / "out"], check=True)
    (root / "out" / "favicon.ico").touch()  # browsers ask for one
    with serving(root / "out") as address:
        yield address


@pytest.fixture(scope="module")
def browser(site):
    with browsing() as found:
        found.looks(1440, 900)
        yield found
        assert found.errors() == []


def altered(folder):
    """Four files that claim more than the truth, or bring a proof that is none."""
    files = {}
    for name in GENUINE:
        files[name] = read(ROOT / "instances" / "best_known" / f"{name}.cert.json.gz")
    mtrain, synergy = copy.deepcopy(files["mtrain_example_fig5"]), copy.deepcopy(files["synergy_w1_any"])
    files["mtrain_example_fig5"]["bound"] += 1
    synergy["proof"] = synergy["proof"][:-1]
    mtrain["instance"]["tick_ns"] = -1
    files["elfish_lenet_straggler1"]["bound"] -= 1
    found = {
        "bound": files["mtrain_example_fig5"],
        "proof": synergy,
        "instance": mtrain,
        "most": files["elfish_lenet_straggler1"],
    }
    for name, data in found.items():
        (folder / f"{name}.cert.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))
    return [folder / f"{name}.cert.json.gz" for name in found]


def test_four_certificates_are_accepted_and_four_altered_ones_refused(site, browser, tmp_path):
    browser.open(f"{site}/check_here.html")
    for count, name in enumerate(GENUINE, 1):  # as one types it
        browser.run("document.getElementById('checker-name').value = ''")
        browser.press("#checker-name", name + ENTER)
        browser.wait(lambda: len(browser.run(VERDICTS)) == count)  # noqa: B023
    accepted = browser.run(VERDICTS)
    assert all(text.startswith("accepted") for text in accepted), accepted
    assert all(f"the library's {name}]" in text for name, text in zip(reversed(GENUINE), accepted, strict=True))
    browser.press("#checker-files", "\n".join(map(str, altered(tmp_path))))
    browser.wait(lambda: len(browser.run(VERDICTS)) == 8)
    assert all(text.startswith("refused") for text in browser.run(VERDICTS)[:4]), browser.run(VERDICTS)


def test_one_more_than_is_proven_is_refused_and_files_that_are_none_say_so(site, browser, tmp_path):
    browser.open(f"{site}/check_here.html?certificate=synergy_w1_any")
    browser.wait(lambda: browser.run(VERDICTS))
    browser.press("#checker-more", SPACE)
    browser.wait(lambda: len(browser.run(VERDICTS)) == 2)
    (tmp_path / "words.json").write_text("words")
    browser.press("#checker-files", str(tmp_path / "words.json"))
    browser.wait(lambda: len(browser.run(VERDICTS)) == 3)
    words, more, genuine = browser.run(VERDICTS)
    assert (words[:7], more[:7], genuine[:8]) == ("refused", "refused", "accepted")
    assert "cannot be read" in words


def test_keys_move_the_player_to_the_proof(site, browser):
    browser.open(f"{site}/lessons/watch_the_search.html")
    said = "return document.querySelector('.player .said').innerText"
    assert browser.run(said).startswith("Step 1 of")
    browser.press(".player input", RIGHT + RIGHT)
    assert browser.run(said).startswith("Step 3 of")
    browser.press(".player input", END)
    assert "best plan 36, bound 36" in browser.run(said)  # as the certificate proves
    browser.press(".player button", ENTER)  # plays from the first step on
    browser.wait(lambda: browser.run(said).startswith("Step 2 of"))


RAN = "return Array.from(document.querySelectorAll('.ran'), (each) => [each.className, each.innerText])"
CELLS = """
const cells = Array.from(document.querySelectorAll(".cell")).filter((each) => each.querySelector("button"));
cells.forEach((each, place) => { each.querySelector("button").id = "run" + place; });
document.querySelectorAll("details").forEach((each) => { each.open = true; });
return cells.map((each) => each.querySelector("pre").innerText);
"""


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_in_the_browser(site, browser, lesson):
    browser.open(f"{site}/lessons/{lesson}.html")
    cells = browser.run(CELLS)
    assert len(cells) > 3
    for place in reversed(range(len(cells))):  # the last one runs those before it; what is hidden, when it is asked for
        if len(browser.run(RAN)) < len(cells):
            browser.press(f"#run{place}", ENTER)
            browser.wait(lambda: not any("waiting" in each for each, _ in browser.run(RAN)))
    assert [each for each, _ in browser.run(RAN)] == ["ran"] * len(cells), browser.run(RAN)
    if lesson == "integer_program_by_hand":  # the optimum, as the certificate proves; the evaluator has the word
        assert any(text.startswith("36 True") for _, text in browser.run(RAN))


def test_code_is_changed_and_a_loop_without_end_is_stopped(site, browser):
    browser.open(f"{site}/lessons/two_goals.html")
    browser.run(CELLS)
    first = "document.querySelector('.cell pre').innerText = arguments[0]"
    browser.run(first, "print(1 / 0)")
    browser.press("#run0", ENTER)
    browser.wait(lambda: browser.run(RAN) and "waiting" not in browser.run(RAN)[0][0])
    assert browser.run(RAN)[0][0] == "ran failed"
    assert "ZeroDivisionError" in browser.run(RAN)[0][1]
    browser.run(first, "while True: pass")
    browser.press("#run0", ENTER)
    browser.wait(lambda: "Running" in browser.run("return document.querySelector('.lesson-state').innerText"))
    browser.press("#run0", ENTER)
    assert browser.run("return document.querySelector('.lesson-state').innerText").startswith("Stopped")


def test_slides_go_by_keys_and_answers_stand_in_the_solutions_alone(site, browser):
    browser.open(f"{site}/lessons/two_goals.slides.html")
    at = "return Array.from(document.querySelectorAll('.slide')).indexOf(document.activeElement)"
    for key, place in ((RIGHT, 1), (RIGHT, 2), (LEFT, 1)):
        browser.press("body", key)
        assert browser.run(at) == place
    answer = "Plans of equal weighted sum lie on a straight line"
    for kind, there in (("slides", False), ("sheet", False), ("solutions", True)):
        browser.open(f"{site}/lessons/two_goals.{kind}.html")
        text = browser.run("return document.body.innerText")
        assert (answer in text, "Exercise 2" in text) == (there, True), kind


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("page", ["check_here", "lessons/watch_the_search", "lessons/integer_program_by_hand"])
def test_nothing_is_cut_off_and_every_text_can_be_read(site, browser, page, width, scheme):
    browser.looks(width, 900, scheme)
    browser.open(f"{site}/{page}.html")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(FAINT, TEXTS) == []
