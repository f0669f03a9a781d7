"""Packages that announce themselves and attack: every command works, and says which package was left out and why."""

import json
import os
import sys
from pathlib import Path

import pytest
from announced import announce, announce_problem
from cli_support import mapgap

from mapgap.catalogue import announced, registry
from mapgap.core.limited import Limits

GOOD = """
from mapgap.core import Method, SolveResult, Status, Stop
def run(instance, budget):
    return SolveResult(Status.UNKNOWN, Stop.DONE)
def method(name, problem="neuron_masking", **more):
    return Method(name, problem, more.pop("kind", "baseline"), "test", run, **more)
"""

#: Name to source and to what is said of it; ``None``: the package is harmless to others and is loaded.
HOSTILE = {
    "leaves": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "leaves_with_words": ("raise SystemExit('bye')", "SystemExit: bye"),
    "leaves_at_once": ("import os; os._exit(0)", "loading it leads to the end of its process"),
    "is_killed": ("import os; os.kill(os.getpid(), 9)", "an end by SIGKILL"),
    "interrupts": ("raise KeyboardInterrupt", "loading it raises KeyboardInterrupt"),
    "interrupts_cleverly": ("class K(KeyboardInterrupt): pass\nraise K('x')", "K: x"),
    "raises_base": ("class B(BaseException): pass\nraise B('x')", "B: x"),
    "raises_mute": ("class M(Exception):\n    def __str__(self): raise self\nraise M", "M"),
    "raises_exit": ("class M(Exception):\n    def __str__(self): raise SystemExit(0)\nraise M", "without words"),
    "recurses": ("def f(): f()\nf()", "RecursionError"),
    "fills_memory": ("x = bytearray(2**40)", "MemoryError"),
    "hangs": ("import time; time.sleep(600)", "loading it takes more than 1.5 s"),
    "hangs_at_the_end": ("import atexit, time; atexit.register(time.sleep, 600)", "more than 1.5 s"),
    "keeps_a_thread": ("import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()", "a thread"),
    "moves": ("import os; os.chdir('/')", "changes the working folder"),
    "takes_signals": ("import signal; signal.signal(2, signal.SIG_IGN)", "changes what a signal does"),
    "takes_output": ("import sys, io; sys.stdout = io.StringIO()", "changes standard output"),
    "reads_input": ("input()", "EOFError"),
    "missing": ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
    "twice": ("METHODS = [method('same'), method('same')]", "a method named 'same' already"),
    "shadows": ("METHODS = [method('cpsat')]", "a method named 'cpsat' already"),
    "absurd": ("METHODS = [method('../../x [red]\\u202e')]", "expected a name of a method of at most 60 letters"),
    "no_text": ("METHODS = [method(7)]", "expected a name of a method"),
    "no_kind": ("METHODS = [method('k', kind='best')]", "expected a kind of exact"),
    "endless": ("class L(list):\n    def __iter__(self):\n        while True: yield 1\nMETHODS = L()", "more than"),
    "strange": ("class S:\n    def __getattribute__(self, n): raise SystemExit(0)\nMETHODS = S()", "left out"),
    "prints": ("import os; print('{'); os.write(1, b'{')\nMETHODS = [method('printing')]", None),
    "prints_much": ("print('x' * 10**7)\nMETHODS = [method('printing_much')]", None),
}


def announce_all(site, names):
    for name in names:
        source = GOOD + HOSTILE[name][0] + ("" if "METHODS" in HOSTILE[name][0] else "\nMETHODS = [method('never')]")
        announce(site, f"hostile_{name}", {"mapgap.methods": {name: f"hostile_{name}:METHODS"}}, source)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of the path, for packages; a user's cache of its own; a registry that has read nothing."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(announced, "LIMITS", Limits(cpu_s=5, wall_s=1.5, memory_mb=1024))
    registry.forget()
    yield folder
    registry.forget()
    for name in [name for name in sys.modules if name.startswith(("hostile_", "package_good"))]:
        del sys.modules[name]


@pytest.mark.in_turn
def test_twenty_hostile_packages_are_left_out_one_by_one(site, recwarn):
    before, folder = set(registry.methods("neuron_masking")), Path.cwd()
    registry.forget()
    announce_all(site, HOSTILE)
    announce_problem(site, "package_good", "good_problem")
    methods = set(registry.methods("neuron_masking"))
    said = {str(each.message) for each in recwarn if each.category is announced.BrokenEntryPoint}
    assert methods - before == {"printing", "printing_much"}
    assert before <= methods
    assert "good_problem" in registry.problems()
    for name, (_, words) in HOSTILE.items():
        about = [text for text in said if f"package hostile_{name} is left out" in text]
        assert len(about) == (words is not None), (name, about)
        assert words is None or words in about[0], (name, about)
    assert Path.cwd() == folder


def test_a_verdict_is_remembered_until_the_package_changes(site, monkeypatch):
    announce_all(site, ["leaves_at_once"])
    tried = []
    real = announced.limited
    monkeypatch.setattr(announced, "limited", lambda *more: tried.append(1) or real(*more))
    for expected in (1, 1):
        registry.forget()
        with pytest.warns(announced.BrokenEntryPoint, match="end of its process"):
            registry.methods("neuron_masking")
        assert len(tried) == expected
    module = site / "hostile_leaves_at_once.py"
    module.write_text(GOOD + "METHODS = [method('mended')]")
    os.utime(module, ns=(1, 1))
    sys.modules.pop("hostile_leaves_at_once", None)
    registry.forget()
    assert "mended" in registry.methods("neuron_masking")
    assert len(tried) == 2


@pytest.mark.in_turn
def test_a_cache_that_others_can_write_to_is_not_believed(site, tmp_path):
    announce_all(site, ["leaves_at_once"])
    with pytest.warns(announced.BrokenEntryPoint):
        registry.methods("neuron_masking")
    (cache,) = (tmp_path / "cache").rglob("*.json")
    cache.write_text(json.dumps(dict.fromkeys(json.loads(cache.read_text()), "")))
    cache.chmod(0o666)
    registry.forget()
    with pytest.warns(announced.BrokenEntryPoint, match="end of its process"):
        registry.methods("neuron_masking")


@pytest.mark.nightly
def test_commands_work_beside_them_and_say_so(site, tmp_path, monkeypatch):
    names = ["leaves", "leaves_at_once", "raises_exit", "twice", "prints", "absurd"]
    announce_all(site, names)
    monkeypatch.setenv("PYTHONPATH", str(site))
    told = {name for name in names if HOSTILE[name][1] is not None}
    for arguments in (["list", "methods", "--json"], ["solve", "mtrain_example_fig5", "-m", "enumerate", "--json"]):
        done = mapgap(*arguments)
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)
        assert all(f"package hostile_{name} is left out" in done.stderr for name in told), done.stderr
        assert "Traceback" not in done.stderr
    done = mapgap("plugins", "--json")
    rows = {row["package"].removeprefix("hostile_"): row for row in json.loads(done.stdout)["plugins"]}
    assert {name for name in names if not rows[name]["loaded"]} == told
    assert rows["prints"]["names"] == ["printing"]
    assert "left out: SystemExit: 0" in mapgap("plugins").stdout
