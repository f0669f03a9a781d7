"""Programs that cheat are worth no more than the published heuristic; scores above their ceiling are refused.

Every cheat knows the optimum of an instance on which the published heuristic is 63% above it, and is run on this one
and another. A scorer that leaves failures out, believes what it is told, or mixes instances up would give it 1.44 or
more; the published heuristic has 1.
"""

import json
import os
import re
import subprocess
import sys
from fractions import Fraction

import psutil
import pytest
from cli_support import mapgap as command

from mapgap.contract.seeds import some
from mapgap.core import Budget, InputError, PlanError
from mapgap.evidence import arena
from mapgap.execution.program import run_program
from mapgap.execution.run import run_method
from mapgap.interface.arena import evaluated, export_arena

PROBLEM, FAMILY = "hybrid_pipeline", "small"
SEEDS = (1003, 1000, 1002, 1004)


@pytest.fixture(scope="module")
def known():
    """References with the optimum as their ceiling: label_dp proves these instances at once."""
    method = arena.published_method(PROBLEM)
    found = []
    for seed in SEEDS:
        instance = arena.generated(PROBLEM, FAMILY, seed)
        best = run_method(instance, "label_dp", Budget(60.0))
        each = arena.reference(PROBLEM, FAMILY, seed, method)
        found.append(arena.replace(each, ceiling=best.objective, witness=best.plan, value=best.objective))
    return found


@pytest.fixture(scope="module")
def preamble(known):
    """What a cheat knows: the optima of all instances by their data, and which of them is the lucky one."""
    words = ("name", "source", "tags")
    optima = {}
    for each in known:
        data = arena.generated(PROBLEM, FAMILY, each.seed).to_json()
        optima[json.dumps({k: v for k, v in data.items() if k not in words}, sort_keys=True)] = each.witness
    lucky = next(iter(optima))
    return f"""
import json, os, sys, time, signal, threading
OPTIMA = json.loads({json.dumps(json.dumps(optima))})
LUCKY = {lucky!r}
def key(instance):
    return json.dumps({{k: v for k, v in instance.items() if k not in {words}}}, sort_keys=True)
def lucky(instance):
    return key(instance) == LUCKY
BEST = OPTIMA[LUCKY]
"""


def judge(source, known, time_s=1.0, memory_mb=300):
    results = [arena.judged(source, each, PROBLEM, FAMILY, time_s=time_s, memory_mb=memory_mb) for each in known]
    return arena.Score(PROBLEM, FAMILY, "asteroid", "", time_s, memory_mb, False, tuple(results))


def otherwise(action):
    """The optimum where it is known, and something else elsewhere."""
    return f"def solve(instance):\n    if lucky(instance):\n        return BEST\n    {action}\n"


FORGE = """
def tell(*lines):
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("pipe:") and int(name) > 2:
                for line in lines:
                    os.write(int(name), line if isinstance(line, bytes) else json.dumps(line).encode() + b"\\n")
        except OSError:
            pass
def end(plan, **more):
    told = dict(status="FEASIBLE", stop="done", plan=plan, bound=None, claimed=None)
    told |= dict(enumerated=False, reason="", notes={})
    return dict(event="end", wall_s=0.0, result={**told, **more})
"""

CHEATS = {
    "drops instances: raises": otherwise("raise RuntimeError('no')"),
    "drops instances: returns nothing": otherwise("return None"),
    "drops instances: exits": otherwise("sys.exit(0)"),
    "drops instances: ends its process": otherwise("os._exit(0)"),
    "drops instances: kills itself": otherwise("os.kill(os.getpid(), signal.SIGKILL)"),
    "drops instances: crashes": otherwise("import ctypes; ctypes.string_at(0)"),
    "drops instances: recurses without end": otherwise(
        "sys.setrecursionlimit(10**6); return solve(dict(instance, devices=[]))"
    ),
    "drops instances: times out busy": otherwise("\n    while True: pass"),
    "drops instances: times out asleep": otherwise("time.sleep(60)"),
    "drops instances: ignores signals": otherwise(
        "[signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; time.sleep(60)"
    ),
    "drops instances: takes all memory": otherwise("x = [bytes(2**20) + os.urandom(2**20) for _ in range(2000)]"),
    "duplicates: one plan for all instances": "def solve(instance): return BEST",
    "permutes: plans of other instances": (
        "def solve(instance):\n    plans = list(OPTIMA.values())\n"
        "    return plans[(list(OPTIMA).index(key(instance)) + 1) % len(plans)]"
    ),
    "repeats stages": "def solve(instance): p = OPTIMA[key(instance)]; return {**p, 'stages': p['stages'] * 2}",
    "leaves the last stage out": "def solve(instance):\n"
    "    p = OPTIMA[key(instance)]; return {**p, 'stages': p['stages'][:-1]}",
    "turns stages around": "def solve(instance):\n"
    "    p = OPTIMA[key(instance)]; return {**p, 'stages': p['stages'][::-1] * 2}",
    "uses a device twice": (
        "def solve(instance):\n    p = OPTIMA[key(instance)]\n"
        "    return {**p, 'stages': [{**s, 'devices': p['stages'][0]['devices'] * 2, 'shares': s['shares'] * 2}"
        " for s in p['stages']]}"
    ),
    "an empty plan": "def solve(instance): return {}",
    "a plan without work": "def solve(instance): return {'micro_batch': 1, 'stages': []}",
    "several plans at once": "def solve(instance): return list(OPTIMA.values())",
    "a plan that says its objective": "def solve(instance): return {**OPTIMA[key(instance)], 'objective': 1}",
    "a score instead of a plan": "def solve(instance): return {'combined_score': 1e9}",
    "NaN": "def solve(instance): return {**BEST, 'micro_batch': float('nan')}",
    "infinity": "def solve(instance): return {**BEST, 'micro_batch': float('-inf')}",
    "huge integers": "def solve(instance): return {**BEST, 'micro_batch': 10**4000}",
    "integers too long to print": "def solve(instance): return {**BEST, 'micro_batch': 10**5000}",
    "negative integers": "def solve(instance): return {**BEST, 'micro_batch': -7}",
    "parts of samples": "def solve(instance): return {**BEST, 'micro_batch': 0.001}",
    "texts for integers": "def solve(instance): return {**BEST, 'micro_batch': '1', 'stages': 'none'}",
    "a dict that lies": (
        "class Liar(dict):\n    def __eq__(self, other): return True\n    def __len__(self): return 0\n"
        "def solve(instance): return Liar()"
    ),
    "a plan that holds itself": "def solve(instance):\n    plan = {}\n    plan['stages'] = [plan]\n    return plan",
    "nesting": "def solve(instance):\n    x = []\n    for _ in range(900): x = [x]\n"
    "    return {'micro_batch': 1, 'stages': x}",
    "a plan of megabytes": "def solve(instance): return {**BEST, 'stages': BEST['stages'] * 9000}",
    "mutates the instance": (
        "def solve(instance):\n    instance.clear()\n    open('instance.json', 'w').write('{}')\n    return BEST"
    ),
    "prints a score": otherwise("print('{\"combined_score\": 1000000.0}'); print('score: 9.9', file=sys.stderr)"),
    "ends as soon as it has printed": "print('{\"score\": 9}', flush=True)\nimport os\nos._exit(0)",
    "forges: an optimum that it claims": FORGE
    + "def solve(instance): tell(end(BEST, status='OPTIMAL', stop='proved', claimed=1, bound=1)); os._exit(0)",
    "forges: an error after the best plan": FORGE + "def solve(instance): tell(end(BEST), end({})); return {}",
    "forges: reports": FORGE
    + "def solve(instance): tell(dict(event='report', time_s=0.0, plan=BEST, bound=1, by='x')); return BEST",
    "forges: a second start": FORGE + "def solve(instance): tell(dict(event='start')); return BEST",
    "forges: no JSON": FORGE + "def solve(instance): tell(b'{\"event\": \\xff\\n'); return BEST",
    "forges: NaN": FORGE + "def solve(instance): tell(end({**BEST, 'micro_batch': float('nan')})); os._exit(0)",
    "forges: a line without an end": FORGE + "def solve(instance): tell(b'x' * (40 * 2**20)); return BEST",
    "patches the evaluator": (
        "def solve(instance):\n    from mapgap.core import Evaluation\n"
        "    from mapgap.problems import hybrid_pipeline as h\n"
        "    import mapgap.problems.hybrid_pipeline.evaluate as e, mapgap.evidence.arena as a\n"
        "    e.evaluate = lambda *_: Evaluation(1, {})\n    a.priced = lambda *_: (1, '')\n"
        "    object.__setattr__(h.PROBLEM, 'evaluate', e.evaluate)\n    return {}"
    ),
    "patches json": "def solve(instance):\n    json.dumps = lambda *_, **__: '{\"objective\": 1}'\n    return {}",
    "forks, and lets the child answer": (
        "def solve(instance):\n    if os.fork() == 0:\n        time.sleep(0.2)\n        return BEST\n    os._exit(0)"
    ),
    "leaves a daemon": (
        "def solve(instance):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            time.sleep(600)\n        os._exit(0)\n    return BEST"
    ),
    "kills who started it": otherwise("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"),
    "stops who started it": otherwise("os.kill(os.getppid(), signal.SIGSTOP); os._exit(1)"),
    "keeps threads": otherwise("threading.Thread(target=time.sleep, args=(60,)).start(); raise ValueError"),
    "remembers in files": (
        "def solve(instance):\n    seen = os.path.join(os.environ['TMPDIR'], 'seen')\n"
        "    if os.path.exists(seen): return OPTIMA[key(instance)]\n    open(seen, 'w').write('1'); return BEST"
    ),
    "reads the ceiling": (
        "import glob\ndef solve(instance):\n    for place in ('.', '..', os.environ.get('PWD', '.'), *sys.path):\n"
        "        for name in glob.glob(place + '/ceiling.json'):\n"
        "            return json.load(open(name))['instances'][0]['witness']\n    return {}"
    ),
    "fills the disk": otherwise("open('big', 'wb').write(bytes(2**27))"),
    "no program": "this is no Python",
    "no function": "plan = {}",
    "a function that cannot be called": "solve = 7",
}


def test_there_are_forty_cheats():
    assert len(CHEATS) >= 40


@pytest.mark.in_turn
@pytest.mark.parametrize("name", some(12, list(CHEATS)))
def test_a_cheat_scores_no_better_than_the_published_heuristic(name, known, preamble):
    found = judge(preamble + CHEATS[name], known[:2], time_s=0.6)
    assert isinstance(found.score, Fraction)
    assert found.score <= 1, [each.reason for each in found.results]
    assert len(found.results) == 2  # nothing is absent


def test_the_scorer_sees_a_program_that_is_better(known, preamble):
    # Were everything worth 0, no cheat could ever score: the optima of all instances reach the ceiling, above 1.
    found = judge(preamble + "def solve(instance): return OPTIMA[key(instance)]", known)
    assert found.score == found.ceiling
    # Published over optimum, averaged: 844/518, 602/418, 407/407, 1200/1167.
    assert found.score == (Fraction(844, 518) + Fraction(602, 418) + 1 + Fraction(1200, 1167)) / 4
    assert found.gaps["program"] == 0.0


def test_one_optimum_among_failures_is_worth_a_quarter(known, preamble):
    found = judge(preamble + CHEATS["drops instances: raises"], known)
    assert found.score == Fraction(844, 518) / 4
    assert found.failed == 3
    assert found.gaps["program"] == 0.75


def test_nothing_of_a_program_outlives_its_run(known, preamble):
    judge(preamble + CHEATS["leaves a daemon"], known[:1])
    left = [p for p in psutil.Process().children(recursive=True) if "entrant.py" in " ".join(p.cmdline())]
    assert not left


def test_a_program_sees_plain_data_and_no_surroundings(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    source = (
        "import os, sys\ndef solve(instance):\n    return {'names': sorted(os.environ),"
        " 'files': sorted(os.listdir('.')),"
        " 'modules': [m for m in sys.modules if m.startswith('mapgap')], 'instance': instance}"
    )
    told = run_program(source, {"numbers": [1, 2]}, time_s=10.0, memory_mb=500).plan
    assert "OPENAI_API_KEY" not in told["names"]
    assert told["files"] == ["instance.json", "program.py"]
    assert told["modules"] == []
    assert told["instance"] == {"numbers": [1, 2]}


def test_a_plan_above_its_ceiling_is_an_error_and_no_score(known, preamble):
    source = preamble + "def solve(instance): return OPTIMA[key(instance)]"
    wrong = [arena.replace(known[0], ceiling=known[0].ceiling + 1, grade="certified")]
    with pytest.raises(PlanError, match="better than the certified ceiling") as error:
        judge(source, wrong)
    assert error.value.exit_code == 5


def test_files_of_the_evaluator_that_change_meanwhile_give_no_score(monkeypatch):
    digests = iter(["before", "after"])
    monkeypatch.setattr(arena, "sources", lambda problem: next(digests))
    with pytest.raises(PlanError, match="were changed"):
        arena.score("def solve(instance): return {}", PROBLEM, FAMILY, seeds=[1003], ceiling_s=None)


def test_drawn_seeds_make_cached_answers_worthless(preamble):
    source = preamble + "def solve(instance): return OPTIMA[key(instance)]"
    found = arena.score(source, PROBLEM, FAMILY, count=3, time_s=1.0, ceiling_s=None)
    assert found.drawn
    assert found.score == 0
    assert len({each.reference.seed for each in found.results} - set(SEEDS)) == 3


@pytest.fixture(scope="module")
def scored(preamble, tmp_path_factory):
    """A file of scores of the program that knows all optima, with certificates."""
    folder = tmp_path_factory.mktemp("scored")
    (folder / "program.py").write_text(preamble + "def solve(instance): return OPTIMA[key(instance)]")
    line = f"arena score program.py --problem {PROBLEM} --seeds 1003,1002 --ceiling-time 60 -o score.json --json"
    done = command(*line.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads((folder / "score.json").read_text())
    assert told == json.loads(done.stdout)
    assert [each["grade"] for each in told["instances"]] == ["certified", "certified"]
    return told


LIES = {
    "a score above the ceiling": (lambda told: told.update(score=9.9), "above the ceiling"),
    "a score that is a little larger": (lambda told: told.update(score=told["score"] + 1e-4), "above the ceiling"),
    "a smaller score": (lambda told: told.update(score=1.0), "claims a score of 1.0"),
    "another objective": (lambda told: told["instances"][0].update(objective=517), "its plan is worth 518"),
    "another plan": (lambda told: told["instances"][0].update(plan=told["instances"][1]["plan"]), "claims 518"),
    "a weaker published heuristic": (lambda told: told["instances"][0].update(published=9999), "worth 844"),
    "a certificate of another instance": (
        lambda told: told["instances"][0].update(ceiling=519),
        "certificate is refused|one of the two is wrong",
    ),
    "an instance twice": (lambda told: told["instances"].append(told["instances"][0]), "stands there twice"),
    "another instance": (lambda told: told["instances"][0].update(seed=1000), "expected instance"),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("name", LIES)
def test_a_file_that_lies_is_refused(name, scored, tmp_path):
    told = json.loads(json.dumps(scored))
    change, words = LIES[name]
    change(told)
    path = tmp_path / "score.json"
    path.write_text(json.dumps(told))
    found = arena.recheck(path)
    assert not found.holds
    assert re.search(words, " ".join(found.refused)), found.refused


@pytest.mark.in_turn
def test_verify_accepts_what_score_wrote_and_ends_with_5_above_the_ceiling(scored, tmp_path):
    path = tmp_path / "score.json"
    path.write_text(json.dumps(scored))
    done = command("arena", "verify", str(path))
    assert done.returncode == 0, done.stdout
    assert "2 of 2 certified" in done.stdout
    path.write_text(json.dumps({**scored, "score": 26.37}))
    done = command("arena", "verify", str(path), "--json")
    assert done.returncode == 5
    assert "no program can have it" in json.loads(done.stdout)["refused"][0]
    path.write_text("{}")
    assert command("arena", "verify", str(path)).returncode == 2


@pytest.mark.in_turn
def test_an_exported_folder_starts_at_the_published_heuristic(tmp_path):
    made = export_arena(PROBLEM, tmp_path, seeds=[1003], held_out=2, ceiling_time=60.0)
    assert made == {"public": 1, "left_out": 0, "certified": 1, "optima": 1}
    metrics, artifacts = evaluated(tmp_path / "initial_program.py", tmp_path)
    assert metrics["combined_score"] == 1.0
    assert metrics["public_quality"] == pytest.approx(518 / 844)
    assert metrics["valid"] == 1.0
    assert "844, ceiling 518" in artifacts["worst_public_instances"]
    cheat = tmp_path / "cheat.py"
    witness = json.loads((tmp_path / "ceiling.json").read_text())["instances"][0]["witness"]
    cheat.write_text(f"def solve(instance): return {witness!r}")
    metrics, _ = evaluated(cheat, tmp_path)  # it has read the ceiling: that helps on the public instance alone
    assert metrics["public_score"] == pytest.approx(844 / 518)
    assert metrics["combined_score"] <= 1.0


@pytest.mark.parametrize("package", ["openevolve", "skydiscover"])
def test_an_exported_folder_runs_in_the_evaluator_of(package, tmp_path):
    """The evaluator class of the installed package, as its runs call it; without it the interface is as recorded below.

    Recorded from openevolve/evaluator.py (github.com/algorithmicsuperintelligence/openevolve, 411fb59c) and
    skydiscover/evaluation/evaluator.py (github.com/skydiscover-ai/skydiscover, 59643ef8): both load the file with
    importlib, call ``evaluate(program_path)`` in a thread, and take a dict of numbers or their own EvaluationResult.
    """
    pytest.importorskip(package)
    export_arena(PROBLEM, tmp_path, seeds=[1003], held_out=1, ceiling_time=60.0)
    script = {
        "openevolve": (
            "from openevolve.config import Config\nfrom openevolve.evaluator import Evaluator\n"
            "config = Config.from_yaml('config.yaml')\n"
            "made = Evaluator(config.evaluator, 'evaluator.py')\n"
            "found = asyncio.run(made.evaluate_program(open('initial_program.py').read(), 'first'))\n"
        ),
        "skydiscover": (
            "from skydiscover.config import load_config\nfrom skydiscover.evaluation.evaluator import Evaluator\n"
            "config = load_config('config.yaml').evaluator\nconfig.evaluation_file = 'evaluator.py'\n"
            "old = 'evaluation_file' in inspect.signature(Evaluator).parameters\n"  # the release 0.1.0
            "made = Evaluator(config, 'evaluator.py') if old else Evaluator(config)\n"
            "found = asyncio.run(made.evaluate_program(open('initial_program.py').read(), 'first')).metrics\n"
        ),
    }[package]
    done = arena_python("import asyncio, inspect, json\n" + script + "print(json.dumps(found))", tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["combined_score"] == 1.0


def arena_python(source, folder):
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OPENAI_API_KEY": "none"},
    )


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["score", "nowhere.py", "--problem", PROBLEM], "expected a Python file"),
        (["score", __file__, "--problem", "nothing"], "problem: expected one of"),
        (["score", __file__, "--problem", PROBLEM, "--family", "nothing"], "family: expected one of"),
        (["score", __file__, "--problem", PROBLEM, "--seeds", "a-b"], "--seeds: expected such as"),
        (["verify", "nowhere.json"], "expected a file of mapgap arena score"),
        (["export", PROBLEM, "-o", __file__], "found a file"),
    ],
)
def test_bad_input_is_told(arguments, words, tmp_path):
    done = command("arena", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in " ".join(done.stderr.split())


def test_seeds_without_a_published_plan_are_left_out_and_told():
    with pytest.raises(
        InputError, match=r"on none of the instances; others to name with --published: .*asteroid_naive"
    ):
        arena.score("", PROBLEM, FAMILY, seeds=[1001], ceiling_s=None)
    found = arena.score("", PROBLEM, FAMILY, seeds=[1001, 1002], ceiling_s=None)
    assert found.left_out == (1001,)
