"""Emulated plans: the order of tasks, one at a time on a lane, all the bytes; the best plan is the fastest; traces."""

import json
import os
import random
import secrets
import signal
import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from cli_support import inside

import mapgap
from mapgap.catalogue import registry
from mapgap.clock.replay import full, round_s
from mapgap.clock.run import Host, execute, recorded
from mapgap.clock.trace import Trace, measured
from mapgap.core import GanttLane, InputError, Move, Quarters, Script, Task
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import communication_bytes
from mapgap.problems.hybrid_pipeline.simulate import simulate

PROBLEMS = ("hybrid_pipeline", "multi_model_splitting", "suboperation_mapping")
SECONDS = 0.3  # of a run, about


def drawn(problem, rng):
    """A tiny instance and a plan of it that breaks no rule."""
    library = registry.library(problem)
    for _ in range(500):
        instance = library.generate("tiny", rng.randrange(10**6))
        for _ in range(20):
            plan = library.random_plan(instance, rng)
            found = registry.problems()[problem].evaluate(instance, plan)
            if not found.violations and found.objective:
                return instance, plan
    raise AssertionError("no plan in 500 instances")


def run_of(problem, instance, plan, rounds):
    script = registry.problems()[problem].clock.script(instance, plan, rounds)
    boards = {task.board for task in script.tasks if task.board}
    boards |= {name for task in script.tasks if task.move for name in (task.move.sender, task.move.receiver)}
    scale = SECONDS / (rounds * script.seconds)
    return script, execute(script, {name: Host() for name in sorted(boards)}, scale=scale)


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_task_is_done_once_after_those_before_it_and_lanes_do_one_at_a_time(problem):
    seed = secrets.randbits(32)
    for turn in range(2):
        instance, plan = drawn(problem, random.Random(seed + turn))
        script, records = run_of(problem, instance, plan, rounds=2)
        by_name = {each["task"]: each for each in records}
        assert len(by_name) == len(records) == len(script.tasks)
        lanes = {}
        for task in script.tasks:
            each = by_name[task.name]
            assert each["end"] >= each["start"] >= 0, seed
            assert all(by_name[name]["end"] <= each["start"] for name in task.after), (seed, task.name)
            # Nothing takes less than the model says; more, on a machine that others use as well.
            assert each["end"] - each["start"] >= task.seconds * (1 - 1e-6) - 1e-9, (seed, task.name)
            assert each.get("bytes") == (task.move.bytes if task.move else None)
            lanes.setdefault(task.lane, []).append((each["start"], each["end"]))
        for spans in lanes.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(spans)), seed
        if not script.in_flight:
            # Equations may count more than the tasks take (Asteroid's latency of a round); their replay does not.
            assert measured(script, records) >= round_s(script) * 0.9, seed


def test_a_training_round_moves_what_eq_2_counts_in_the_order_of_1f1b():
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    while True:
        instance, plan = drawn("hybrid_pipeline", rng)
        if instance.execution.training and len(plan.stages) > 1 and instance.execution.communication == "step":
            break
    clock = registry.problems()["hybrid_pipeline"].clock
    script = clock.script(instance, plan, 1)
    rings = sum(len(stage.devices) for stage in plan.stages if len(stage.devices) > 1)
    moved = sum(task.move.bytes for task in script.tasks if task.move)
    if instance.execution.allreduce == "round":  # parts of a ring are whole bytes
        assert 0 <= communication_bytes(instance, plan) - moved <= rings, seed
    # On every device the order of the simulated schedule.
    for p, stage in enumerate(plan.stages):
        for d in stage.devices:
            tasks = [task for task in simulate(instance, plan).tasks if task.where == ("device", d)]
            expected = [f"{task.kind}{task.micro_batch}" for task in tasks if task.kind != "R"]
            lane = f"{instance.devices[d].name} (stage {p})"
            found = [task.name.split("/")[1] for task in script.tasks if task.lane == lane and task.board]
            assert found == expected, seed


def test_accelerators_keep_the_order_of_the_plan():
    seed = secrets.randbits(32)
    instance, plan = drawn("suboperation_mapping", random.Random(seed))
    _, records = run_of("suboperation_mapping", instance, plan, rounds=1)
    for accelerator, names in zip(instance.accelerators, plan.order, strict=True):
        done = [each["operation"] for each in records if each.get("board") == accelerator.name]
        assert sorted(done) == sorted(names), seed
        long = [each["operation"] for each in records if each.get("board") == accelerator.name and each["model_s"]]
        assert long == [name for name in names if name in long], seed


def pipeline(training=False):
    """Six layers of 10 ms a sample (20 backward) on a fast board, of 30 (60) on a slow one; 1 MB/s between them."""
    layers = tuple(
        Layer(name=f"l{k}", output_bytes=2_000, weight_bytes=0, state_memory=0, activation_memory=0) for k in range(6)
    )

    def kind(name, ticks):
        return DeviceType(name=name, memory=10, forward=((ticks,),) * 6, backward=((2 * ticks,),) * 6)

    return Instance(
        name="six",
        mini_batch=4,
        micro_batch_sizes=(1,),
        tick_ns=1000,
        memory_unit_bytes=1,
        types=(kind("fast", 10_000), kind("slow", 30_000)),
        devices=(Device(name="quick", type=0), Device(name="late", type=1)),
        bandwidth=((1, 1_000_000), (1_000_000, 1)),
        layers=layers,
        all_devices=False,
        execution={"training": training},
    )


def cut_at(*stages):
    made, start = [], 0
    for stop, device in stages:
        made.append(Stage(start=start, stop=stop, devices=(device,), shares=(1,)))
        start = stop
    return Plan(micro_batch=1, stages=tuple(made))


@pytest.mark.in_turn
def test_the_clock_ranks_plans_as_the_model_does():
    instance = pipeline()
    plans = [cut_at((5, 0), (6, 1)), cut_at((6, 0)), cut_at((3, 0), (6, 1)), cut_at((6, 1))]
    # Four micro-batches. 5 layers of 10 ms in front of one of 30: 50 * 4 + 2 + 30 = 232 ms; alone 240 (too close to
    # tell); 3 of 10 in front of 3 of 30: 30 + 2 + 4 * 90 = 392 ms; all on the slow one: 720 ms.
    evaluate = registry.problems()["hybrid_pipeline"].evaluate
    assert [evaluate(instance, plan).objective for plan in plans] == [232_000, 240_000, 392_000, 720_000]
    clock = []
    for plan in plans:
        script = registry.problems()["hybrid_pipeline"].clock.script(instance, plan, 1)
        clock.append(measured(script, execute(script, {"quick": Host(), "late": Host()})))
    assert max(clock[:2]) < clock[2] < clock[3]


def test_a_cycle_is_the_time_between_rounds_in_flight():
    """Three tasks of 1 s behind each other on lanes of their own, the first and the last rounds slower."""
    ends = [10, 20, 30, 31, 32, 33, 43, 53]
    records = [{"task": f"{r}", "start": end - 3.0, "end": float(end)} for r, end in enumerate(ends)]
    script = Script((), tuple((f"{r}",) for r in range(8)), 1.0, in_flight=2)
    assert measured(script, records) == 1.0  # from 30 to 33
    one = Script((), (("0",), ("1",)), 1.0)
    assert measured(one, records[:2]) == 6.5  # from 7 to 20, two rounds


def played(script):
    """When every task would end: lanes that take the task that was ready first, without any clock."""
    waiting, end, free = list(script.tasks), {}, {}
    place = {task.name: k for k, task in enumerate(script.tasks)}
    while waiting:
        ready = [
            (max((end[name] for name in task.after), default=0.0), place[task.name], task)
            for task in waiting
            if all(name in end for name in task.after)
        ]
        _, _, task = min((max(since, free.get(task.lane, 0.0)), (since, k), task) for since, k, task in ready)
        since = max(max((end[name] for name in task.after), default=0.0), free.get(task.lane, 0.0))
        end[task.name] = free[task.lane] = since + task.seconds
        waiting.remove(task)
    return end


def test_rounds_in_flight_keep_the_busiest_unit_busy_and_never_too_busy():
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    for _ in range(10):
        instance, plan = drawn("multi_model_splitting", rng)
        script = registry.problems()["multi_model_splitting"].clock.script(instance, plan, 25)
        end = played(script)
        busy = {}
        for task in script.tasks:
            busy[task.lane] = busy.get(task.lane, 0.0) + task.seconds
        assert max(busy.values()) == pytest.approx(25 * script.seconds), seed
        assert max(end.values()) >= 25 * script.seconds * (1 - 1e-9), seed
        cycle = measured(script, [{"task": name, "start": 0.0, "end": value} for name, value in end.items()])
        alone = sum(task.seconds for task in script.tasks) / 25  # one task after the other
        assert 0.8 * script.seconds <= cycle <= alone * (1 + 1e-9), seed


def test_so_many_rounds_are_in_flight_that_the_busiest_lane_is_busy():
    def chain(rounds, in_flight, seconds=(1.0, 2.0, 1.0)):
        tasks, ends = [], []
        for r in range(rounds):
            before = ends[r - in_flight] if r >= in_flight else ()
            for lane, each in enumerate(seconds):
                tasks.append(Task(f"{r}/{lane}", f"lane{lane}", "", each, after=before))
                before = (f"{r}/{lane}",)
            ends.append(before)
        return Script(tuple(tasks), tuple(ends), 2.0, in_flight)

    # One round takes 4 s; two in turns 2 s each; the lane in the middle is then always busy.
    assert full(chain).in_flight == 2
    assert round_s(chain(9, 1)) == 4.0
    assert [each.in_flight for each in (full(chain, 4), full(chain, 6), full(chain, 7))] == [
        1,
        1,
        2,
    ]  # three times, and 1
    with pytest.raises(InputError, match="--rounds: expected at least 4"):
        full(chain, 3)
    # A model that promises what no number keeps: the one that comes closest, and the clock will say so.
    never = full(lambda rounds, in_flight: replace(chain(rounds, in_flight), seconds=1.5))
    assert (never.in_flight, round_s(never)) == (2, 2.0)


def test_cycles_of_the_library_need_a_handful_of_rounds_in_flight():
    """Random plans of Synergy's third workload: with few rounds in flight units wait, with enough of them none does."""
    instance = mapgap.load("synergy_w3_any")
    rng, needed = random.Random(secrets.randbits(32)), []
    while len(needed) < 6:
        plan = registry.library("multi_model_splitting").random_plan(instance, rng)
        if not registry.problems()["multi_model_splitting"].evaluate(instance, plan).violations:
            script = full(partial(registry.problems()["multi_model_splitting"].clock.script, instance, plan))
            assert round_s(script) == pytest.approx(script.seconds, rel=0.05)
            needed.append(script.in_flight)
    assert max(needed) > 1


@pytest.mark.in_turn
def test_who_wakes_late_makes_nobody_late():
    """A board is stopped for a while; what follows waits for moments, not for times."""
    names = ("a", "b")
    tasks, before = [], ()
    for k in range(20):
        tasks.append(Task(f"{k}", names[k % 2], "FP", 0.05, names[k % 2], None, before))
        before = (f"{k}",)
    script = Script(tuple(tasks), (before,), 1.0)

    def begun(pids):
        threading.Timer(0.2, os.kill, (pids["b"], signal.SIGSTOP)).start()
        threading.Timer(0.4, os.kill, (pids["b"], signal.SIGCONT)).start()

    records = execute(script, {name: Host() for name in names}, begun=begun)
    assert measured(script, records) == pytest.approx(1.0, abs=1e-6)
    assert max(each["late"] for each in records) > 0.05


def test_bytes_that_no_network_moves_in_time_are_late():
    move = Task("m", "a to b", "FP", 1e-5, "", Move("a", "b", 50_000_000))  # 5 TB/s
    script = Script((move, Task("c", "b", "FP", 0.01, "b", None, ("m",))), (("c",),), 0.01001)
    found, last = execute(script, {"a": Host(), "b": Host()})
    assert found["seconds"] > found["model_s"]
    assert last["start"] == found["end"] == pytest.approx(found["seconds"])


def record(stage, phase, board, seconds, model):
    return {"stage": stage, "phase": phase, "board": board, "seconds": seconds, "model_s": model}


def test_what_was_measured_comes_back_as_times_and_bandwidths():
    instance, plan = pipeline(training=True), cut_at((4, 0), (6, 1))
    records = [{"plan": plan.to_json()}]
    for factor in (1.5, 2.0, 3.0):  # of a stage on the fast board that should take 40 ms; quartiles 1.75 and 2.5
        records.append(record(0, "forward", "quick", factor * 0.04, 0.04))
        records.append(record(0, "backward", "quick", 0.08, 0.08))
        records.append({"stage": 0, "phase": "forward", "sender": "late", "receiver": "quick", "bytes": 5000,
                        "seconds": 0.01, "model_s": 0.005})  # fmt: skip
    made, told = registry.problems()["hybrid_pipeline"].clock.calibrated(instance, records)
    fast, slow = made.types
    # Layers of the stage and, as nothing else was measured on this type, the others too.
    assert fast.forward == ((20_000,),) * 6
    assert fast.backward == ((20_000,),) * 6
    assert fast.quartiles.forward_lower == ((17_500,),) * 6
    assert fast.quartiles.forward_upper == ((25_000,),) * 6
    assert slow == instance.types[1]
    assert made.bandwidth == ((1, 500_000), (500_000, 1))
    assert [(what, each.middle, unit) for what, each, unit in told] == [
        ("fast: forward of stage 0", 2.0, "times"),
        ("fast: backward of stage 0", 1.0, "times"),
        ("quick to late", 500_000.0, "B/s"),
    ]
    assert made.content_hash != instance.content_hash
    assert "Calibrated by a run" in made.source


@pytest.mark.parametrize("problem", ["multi_model_splitting", "suboperation_mapping"])
@pytest.mark.parametrize("same", [True, False])
def test_a_calibrated_model_takes_as_long_as_was_measured(problem, same):
    """Factors by board and kind of task, drawn; the new tables give every task of the plan its time on the clock."""
    seed = secrets.randbits(32)
    rng, clock = random.Random(seed), registry.problems()[problem].clock
    for _ in range(5):
        instance, plan = drawn(problem, rng)
        script, drawn_factors = clock.script(instance, plan, 3), {}

        def factor(task, factors=drawn_factors):
            # A task of Synergy's problem has a kind; of MTrain's the phase, or the link of a move.
            kind = task.about.get("kind") or (task.group if task.board else task.move.receiver)
            where = task.board or task.move.sender
            return 1.0 if same else factors.setdefault((where, kind), rng.choice((0.5, 1.5, 2.0, 3.0)))

        records = [recorded(task, 0.0, 0.0, task.seconds * factor(task)) for task in script.tasks]
        made, told = clock.calibrated(instance, [{"plan": plan.to_json()}, *records])
        if same:
            assert made.changed(source=instance.source) == instance, seed
            continue
        assert {round(each.middle, 9) for _, each, unit in told if unit == "times"} <= {0.5, 1.5, 2.0, 3.0}
        again = {task.name: task for task in clock.script(made, plan, 3).tasks}
        ticks = 2 + max(
            len(each.layers) for each in getattr(instance, "pipelines", (instance,))
        )  # rounded layer by layer
        for task in script.tasks:
            if task.seconds:
                expected = task.seconds * factor(task)
                # Bandwidths are whole bytes per second: of slow links more than a tick.
                slack = ticks * instance.seconds_per_tick + (1e-3 * expected if task.move else 0)
                assert abs(again[task.name].seconds - expected) <= slack, (seed, task.name)


def test_quarters_of_one_value_are_that_value():
    assert Quarters.of([3.0]) == Quarters(3.0, 3.0, 3.0, 1)


def test_a_trace_is_whole_or_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    one = {"task": "0/F0/a", "lane": "a", "group": "FP", "model_s": 1.0, "start": 0.0, "end": 2.0, "seconds": 2.0}
    Trace({"instance": "x"}, [one, one | {"task": "0/F1/a", "start": 2.0, "end": 3.0, "seconds": 1.0}]).write(path)
    found = Trace.read(path)
    assert found.head["instance"] == "x"
    ((lane, group, count, model, clock, ratios),) = found.rows()
    assert (lane, group, count, model, clock, ratios.middle) == ("a", "FP", 2, 2.0, 3.0, 1.5)
    (drawn_lane,) = found.lanes()
    assert isinstance(drawn_lane, GanttLane)
    assert [(bar.label, bar.start, bar.end) for bar in drawn_lane.bars] == [("F0", 0.0, 2.0), ("F1", 2.0, 3.0)]
    lines = path.read_text().splitlines()
    for bad, words in (
        (lines[:2], "expected 2 tasks, found 1"),
        ([*lines, lines[-1]], "expected 2 tasks, found 3"),
        ([*lines[:2], lines[2][:20]], "t.jsonl:3: expected a JSON object on every line"),
        ([lines[0], lines[1], lines[2].replace("3.0", "NaN")], "numbers from 0 on"),
        ([lines[0], lines[1], lines[2].replace("3.0", '"3"')], "numbers from 0 on"),
        (lines[1:], "expected a trace of mapgap run"),
        ([], "expected a trace of mapgap run"),
    ):
        path.write_text("".join(f"{line}\n" for line in bad))
        with pytest.raises(InputError, match=words):
            Trace.read(path)


def test_the_way_from_a_plan_to_the_clock_and_back(tmp_path):
    instance, plan = pipeline(), cut_at((5, 0), (6, 1))
    files = {name: tmp_path / name for name in ("six.json", "plan.json", "t.jsonl", "chart.svg", "new.yaml")}
    files["six.json"].write_text(json.dumps(instance.to_json()))
    files["plan.json"].write_text(json.dumps(plan.to_json()))
    flags = ("--emulate", "--scale", 0.5, "-o", files["t.jsonl"], "--gantt", files["chart.svg"])
    done = inside("run", files["six.json"], files["plan.json"], *flags)
    assert done.returncode == 0, done.stderr
    assert "quick (stage 0)" in done.stdout
    assert "planned chart  232 ms" in done.stdout
    assert "the clock" in files["chart.svg"].read_text()
    told = json.loads(files["t.jsonl"].read_text().splitlines()[0])
    assert told["instance_hash"] == instance.content_hash
    assert told["tasks"] == 4 * 3
    done = inside("calibrate", files["six.json"], files["t.jsonl"], "-o", files["new.yaml"], "--json")
    assert done.returncode == 0, done.stderr
    made = mapgap.load(str(files["new.yaml"]))
    assert made.content_hash == json.loads(done.stdout)["instance_hash"]
    assert made.measured
    assert mapgap.check(made, str(files["plan.json"])).feasible
    # A run of another instance is none of this.
    done = inside("calibrate", files["new.yaml"], files["t.jsonl"], "-o", tmp_path / "more.yaml")
    assert done.returncode == 2
    assert "expected a run of" in done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "--emulate, --parts: expected one of them, found none"),
        (("--emulate", "--parts", "."), "found both"),
        (("--parts", "nowhere"), "found no manifest.json"),
        (("--parts", ".", "--scale", 2), "--scale: expected it with --emulate"),
        (("--emulate", "--boards", "boards.yaml"), "expected the board 'late' of the plan"),
        (("--emulate", "--boards", "half.yaml"), "an address for every board of the plan or for none"),
        (("--emulate", "--boards", "wrong.yaml"), "late: expected an address HOST:PORT, found '7070'"),
        (("--emulate", "--boards", "away.yaml"), "MAPGAP_TOKEN: expected a token"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(tmp_path, monkeypatch, flags, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAPGAP_TOKEN", raising=False)
    head = "schema: 1\nform: cluster\nboards:\n"
    (tmp_path / "boards.yaml").write_text(f"{head}  quick: {{}}\n")
    (tmp_path / "half.yaml").write_text(f"{head}  quick: {{}}\n  late: {{address: 'localhost:1'}}\n")
    (tmp_path / "wrong.yaml").write_text(f"{head}  quick: {{}}\n  late: {{address: '7070'}}\n")
    (tmp_path / "away.yaml").write_text(
        f"{head}  quick: {{address: 'localhost:1'}}\n  late: {{address: 'localhost:1'}}\n"
    )
    (tmp_path / "six.json").write_text(json.dumps(pipeline().to_json()))
    (tmp_path / "plan.json").write_text(json.dumps(cut_at((5, 0), (6, 1)).to_json()))
    done = inside("run", "six.json", "plan.json", *flags)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("error:") == 1


@pytest.mark.in_turn
def test_a_model_is_cut_and_run_by_commands(tmp_path, monkeypatch):
    models = pytest.importorskip("mapgap.importing.models")
    monkeypatch.chdir(tmp_path)
    models.write(tmp_path)
    (tmp_path / "boards.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 1000\nboards:\n"
        "  one: {memory_gb: 1, gflops: 1, memory_gbps: 1, launch_us: 1}\n"
        "  two: {memory_gb: 1, gflops: 1, memory_gbps: 1, launch_us: 1, slower: 2}\n"
        "settings: {micro_batch: 2, mini_batch: 8, replication: false}\n"
    )
    assert (
        inside("import", "mobile_tiny.onnx", "--cluster", "boards.yaml", "--inference", "-o", "m.yaml").returncode == 0
    )
    instance = mapgap.load("m.yaml")
    count = len(instance.layers)
    stages = ({"start": 0, "stop": 3, "devices": [0], "shares": [2]},
              {"start": 3, "stop": count, "devices": [1], "shares": [2]})  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps({"micro_batch": 2, "stages": stages}))
    done = inside("split", "m.yaml", "plan.json", "--model", "mobile_tiny.onnx", "-o", "parts", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["folder"] == "parts"
    told = json.loads((tmp_path / "parts" / "manifest.json").read_text())
    assert [each["boards"] for each in told["stages"]] == [
        [{"name": "one", "samples": 2}],
        [{"name": "two", "samples": 2}],
    ]
    assert told["stages"][0]["layers"][0] == "stem"
    assert told["stages"][0]["sends"] == told["stages"][1]["reads"]
    done = inside(
        "run", "m.yaml", "plan.json", "--parts", "parts", "--boards", "boards.yaml", "--rounds", 2, "-o", "t.jsonl"
    )
    assert done.returncode == 0, done.stderr
    trace = Trace.read(tmp_path / "t.jsonl")
    size = told["tensors"][told["stages"][0]["sends"][0]]["bytes"]
    assert len(trace.records) == 2 * 4 * 3
    # What was moved is what the model says of the cut.
    assert (
        {each["bytes"] for each in trace.records if "bytes" in each} == {size} == {2 * instance.layers[2].output_bytes}
    )
    assert inside("calibrate", "m.yaml", "t.jsonl", "-o", "new.yaml").returncode == 0
    # The parts of another plan are refused.
    stages[0]["stop"] = stages[1]["start"] = 4
    (tmp_path / "plan.json").write_text(json.dumps({"micro_batch": 2, "stages": stages}))
    done = inside("run", "m.yaml", "plan.json", "--parts", "parts")
    assert done.returncode == 2
    assert "expected the parts of this plan and instance" in done.stderr


@pytest.mark.in_turn
def test_several_models_are_cut_where_their_pipelines_are(tmp_path, monkeypatch):
    models = pytest.importorskip("mapgap.importing.models")
    monkeypatch.chdir(tmp_path)
    models.write(tmp_path)
    (tmp_path / "boards.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 100\nboards:\n"
        "  one: {memory_gb: 1, gflops: 1, memory_gbps: 1, launch_us: 1}\n"
        "  two: {memory_gb: 1, gflops: 2, memory_gbps: 1, launch_us: 1}\n"
    )
    both = ("lenet5.onnx", "--also", "mobile_tiny.onnx")
    flags = ("--cluster", "boards.yaml", "--problem", "multi_model_splitting", "-o", "m.yaml")
    assert inside("import", *both, *flags).returncode == 0
    instance = mapgap.load("m.yaml")
    first, second = (len(each.layers) for each in instance.pipelines)
    pipelines = [
        {"source": 0, "target": 1, "segments": [[0, 0, 4], [1, 4, first]]},
        {"source": 1, "target": 0, "segments": [[1, 0, 2], [0, 2, second]]},
    ]
    names = ("device", "first", "last")
    for each in pipelines:
        each["segments"] = [dict(zip(names, segment, strict=True)) for segment in each["segments"]]
    (tmp_path / "plan.json").write_text(json.dumps({"pipelines": pipelines}))
    done = inside("split", "m.yaml", "plan.json", "--model", "lenet5.onnx", "-o", "parts")
    assert done.returncode == 2
    assert "--model: expected 2, one per pipeline (lenet5, mobile_tiny), found 1" in done.stderr
    assert not (tmp_path / "parts").exists()
    models_flags = ("--model", "lenet5.onnx", "--model", "mobile_tiny.onnx")
    done = inside("split", "m.yaml", "plan.json", *models_flags, "-o", "parts")
    assert done.returncode == 0, done.stderr
    for pipeline, ends in zip(instance.pipelines, (("one", "two"), ("two", "one")), strict=True):
        told = json.loads((tmp_path / "parts" / pipeline.name / "manifest.json").read_text())
        assert (told["source"], told["target"]) == ends
        assert [each["boards"][0]["name"] for each in told["stages"]] == list(ends)
        # What crosses is the tensor whose bytes the model charges.
        (sent,) = told["stages"][0]["sends"]
        index = len(told["stages"][0]["layers"]) if pipeline.name == "lenet5" else 2
        assert told["tensors"][sent]["bytes"] == pipeline.boundaries[index].bytes
    # Swapped models are refused by the names of their layers.
    done = inside("split", "m.yaml", "plan.json", *models_flags[2:], *models_flags[:2], "-o", "other")
    assert done.returncode == 2
    assert "expected the layers of mobile_tiny.onnx" in done.stderr
    assert not (tmp_path / "other").exists()
    assert inside("run", "m.yaml", "plan.json", "--parts", "parts").returncode == 2
