"""Plans replayed on links of their own, on ports and on one medium, against hand-made schedules and evaluators."""

import json
import random
import runpy
import secrets
from itertools import pairwise
from pathlib import Path

import pytest
from cli_support import wide

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.clock.replay import ends, round_s
from mapgap.core import Move, Script, Task
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.media import Media, media

PORTS = "mtrain_scale_6fpga_resnet18_0p5gbs"


def moves(*pairs):
    """Transfers of a second each that could all begin at once, every one on a lane of its own."""
    tasks = (Task(f"{a}{b}", f"{a}-{b}", "", 1.0, move=Move(a, b, 8)) for a, b in pairs)
    return Script(tuple(tasks), (tuple(f"{a}{b}" for a, b in pairs),), 1.0)


@pytest.mark.parametrize(
    ("pairs", "ports", "shared"),
    [
        (["ab", "cd"], 1, 2),  # nobody in common
        (["ab", "cb"], 2, 2),  # one way in
        (["ab", "ac"], 2, 2),  # one way out
        (["ab", "ba"], 1, 2),  # full duplex
        (["ab", "bc", "ca"], 1, 3),
        (["ab", "ac", "bc", "ba"], 2, 4),  # a's way out and c's way in carry two each
    ],
)
def test_transfers_wait_for_ports_and_for_the_medium(pairs, ports, shared):
    found = [round_s(moves(*map(tuple, pairs)), medium) for medium in ("links", "ports", "shared")]
    assert found == [1, ports, shared]


def test_who_was_ready_first_goes_first_and_nobody_waits_for_nothing():
    # On one medium: b's transfer is ready at 1, c's at 2; a third that was ready at 3 needs no medium.
    tasks = (
        Task("a", "a", "", 1.0),
        Task("c", "c", "", 2.0),
        Task("long", "x", "", 0.5),
        Task("from c", "c", "", 5.0, move=Move("c", "d", 1), after=("c",)),
        Task("from a", "a", "", 3.0, move=Move("a", "b", 1), after=("a",)),
        Task("empty", "e", "", 0.0, move=Move("a", "c", 0), after=("c",)),
        Task("on c", "x", "", 1.0, after=("c",)),
    )
    script = Script(tasks, (("from c", "from a", "empty", "on c"),), 1.0)
    assert ends(script, "shared") == {
        "a": 1, "c": 2, "long": 0.5, "from a": 4, "from c": 9, "empty": 2, "on c": 3,
    }  # fmt: skip
    assert ends(script)["from c"] == 7


def test_links_of_their_own_are_what_the_evaluator_has():
    """MTrain: the makespan of every tenth plan of the ledger, by another program that knows tasks only."""
    book = Ledger.load()
    names = [name for name, entry in book.entries.items() if entry.problem == "suboperation_mapping" and entry.plan]
    for name in names[:: len(names) // 10]:
        instance, plan = load_instance(name), load_plan(book.plan_path(name), "suboperation_mapping")
        script = registry.problems()["suboperation_mapping"].clock.script(instance, plan, 1)
        assert round_s(script) == pytest.approx(book.entries[name].plan.value * instance.seconds_per_tick), name


@pytest.mark.in_turn
def test_no_medium_is_quicker_than_links_of_their_own():
    """Synergy: rounds overlap, as many as a medium needs. Four of them, whatever the medium, took 1.2 times the model's
    cycle on links of their own, and less where all share one."""
    book = Ledger.load()
    for name in ("synergy_w1_overlapped", "synergy_w4_distributed", "synergy_fig11b_5pipelines"):
        instance, entry = load_instance(name), book.entries[name]
        found = media(instance, load_plan(book.plan_path(name), "multi_model_splitting"))
        assert found.links == pytest.approx(entry.plan.value * instance.seconds_per_tick, rel=0.01), name
        assert min(found.ports, found.shared) >= 0.99 * found.links, name


def test_no_medium_changes_the_order_on_an_accelerator():
    """MTrain's plans have an order, which waiting for a port must not change."""
    instance, plan = load_instance(PORTS), load_plan(Ledger.load().plan_path(PORTS), "suboperation_mapping")
    script = registry.problems()["suboperation_mapping"].clock.script(instance, plan, 1)
    lane = {task.name: task.lane for task in script.tasks}
    orders = []
    for medium in ("links", "ports", "shared"):
        end = ends(script, medium)
        by_lane = {}
        for name in sorted((task.name for task in script.tasks if task.seconds), key=end.__getitem__):
            by_lane.setdefault(lane[name], []).append(name)
        orders.append(by_lane)
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("problem", ["suboperation_mapping", "hybrid_pipeline", "multi_model_splitting"])
def test_no_medium_carries_two_at_a_time(problem):
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    library = registry.library(problem)
    for _ in range(40):
        instance = library.generate("tiny", rng.randrange(10**6))
        plan = library.random_plan(instance, rng)
        if registry.problems()[problem].evaluate(instance, plan).violations:
            continue
        script = registry.problems()[problem].clock.script(instance, plan, 3)
        tasks = {task.name: task for task in script.tasks}
        for medium in ("links", "ports", "shared"):
            end = ends(script, medium)
            spans = {}
            for name, task in tasks.items():
                assert all(end[before] <= end[name] - task.seconds + 1e-9 for before in task.after), seed
                held = [("lane", task.lane)]
                if task.move is not None and task.move.bytes and task.seconds:
                    held += {
                        "links": [],
                        "ports": [("out", task.move.sender), ("in", task.move.receiver)],
                        "shared": ["medium"],
                    }[medium]
                for each in held if task.seconds else ():
                    spans.setdefault(each, []).append((end[name] - task.seconds, end[name]))
            for each in spans.values():
                each.sort()
                assert all(a[1] <= b[0] * (1 + 1e-9) + 1e-12 for a, b in pairwise(each)), (seed, medium, each)


def test_a_best_plan_that_loses_to_one_board_on_a_switch_is_told(tmp_path):
    """Six FPGAs at 0.5 GB/s: the best plan known is 1.52 times as fast as one board, on ports it is slower."""
    book = Ledger.load()
    found = media(load_instance(PORTS), load_plan(book.plan_path(PORTS), "suboperation_mapping"))
    assert found.links < found.single < found.ports < found.shared
    assert found.turned == ["ports", "shared"]
    assert Media(1.0, 1.5, 3.0, 2.0, "one").turned == ["shared"]
    assert Media(2.5, 3.0, 3.0, 2.0, "one").turned == []  # it is slower on any links


@pytest.mark.in_turn
def test_solve_tells_what_shared_links_do():
    done = wide("solve", "mtrain_example_fig6", "--method", "mtrain_converting", "--json")
    told = json.loads(done.stdout)
    assert set(told["media"]) == {"links", "ports", "shared", "single", "alone"}
    assert told["media"]["links"] == pytest.approx(told["terms"]["makespan_s"])
    assert "replayed" in wide("solve", "mtrain_example_fig6", "--method", "mtrain_converting").stdout
    assert "media" not in json.loads(wide("solve", "dhm_squeezenet_fire4", "--fast", "--json").stdout)


@pytest.mark.parametrize("name", ["ranking", "computed"])
def test_the_page_says_what_the_committed_runs_say(name):
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "model_against_clock.md").read_text()
    for row in runpy.run_path(str(docs / "clock" / f"{name}.py"))["table"]():
        assert row in page
