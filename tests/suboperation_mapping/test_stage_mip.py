"""The stage MIP is a relaxation: its bounds never exceed an optimum that brute force proves."""

import inspect
import re
from concurrent.futures import Executor, Future
from contextlib import closing
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from experiments import build

from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds, some
from mapgap.core import DISTRUSTED, Budget, Status, Stop
from mapgap.formulations.suboperation_mapping import enumerate as enumeration
from mapgap.formulations.suboperation_mapping import fluid_bound, stage_mip
from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.box_bound import fluid_bound as located_bound
from mapgap.formulations.suboperation_mapping.box_bound import search_of
from mapgap.formulations.suboperation_mapping.fluid_bound import FluidModel
from mapgap.formulations.suboperation_mapping.located_frame import Frame
from mapgap.formulations.suboperation_mapping.params import Stage
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.stage_boxes import StageBoxes
from mapgap.formulations.suboperation_mapping.stage_mip import run
from mapgap.formulations.suboperation_mapping.stage_model import StageModel
from mapgap.formulations.suboperation_mapping.stage_state import RatioState, State
from mapgap.formulations.suboperation_mapping.staged_ratio import StagedRatioModel
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


def optimum(instance):
    result = enumeration.run(instance, Budget(time_s=300).start())
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return None if result.plan is None else PROBLEM.evaluate(instance, result.plan).objective


@pytest.mark.parametrize("seed", seeds(6, 30))
def test_bounds_never_exceed_the_enumerated_optimum(seed):
    """Were a row invalid for some schedule, a bound would end up above the best of all plans."""
    instance = LIBRARY.generate("tiny", seed)
    best = optimum(instance)
    result = run(instance, Budget(time_s=1, seed=seed).start())
    if best is None:
        assert result.plan is None
        return
    assert result.bound is not None
    assert result.bound <= best
    if result.plan is not None:
        value = PROBLEM.evaluate(instance, result.plan)
        assert value.feasible
        assert value.objective == result.claimed
        assert result.bound <= best <= result.claimed


SLOW = pytest.param("mtrain_c2_tinyyolov3_1gbs", marks=pytest.mark.nightly)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", [*some(1, ["mtrain_c1_tinyyolov3_1gbs", "mtrain_scale_4fpga_resnet18_0p5gbs"]), SLOW])
def test_what_fluid_bound_says_is_known_after_as_many_programs(name, monkeypatch):
    """Work is counted in programs: one for every number of shares is all that fluid_bound solves, and all of them come
    before any stronger and dearer program of a single ratio."""
    instance = load_instance(name)
    least = located_bound(instance, Budget(time_s=100).start())
    roots = min(instance.batch, len(instance.accelerators))
    assert least.notes["programs"] == roots
    search = search_of(Frame(instance))
    while search.roots:
        search.step(100)
    assert (search.programs, search.bound()) == (roots, least.bound)
    staged, pieces, asked = stage_mip.StageMip(instance, Budget(time_s=200).start()), 0, []
    ask = staged.ask
    monkeypatch.setattr(staged, "ask", lambda pool, task: asked.append(task.kind) or ask(pool, task))
    with closing(staged.steps()) as steps:
        while staged.rooting:
            next(steps)
            pieces += 1
    assert staged.state.bound >= least.bound
    assert {*asked} <= {"box", "chain"}  # which have no program, and turns between as the clock gives them
    assert pieces - len(asked) <= roots + 2  # first the bounds that need no program, at last a look whether all is done


class AtOnce(Executor):
    """A pool of one process whose questions are answered here, so that a test can see them."""

    def __init__(self, processes, context, prepare, arguments):
        assert processes == 1
        prepare(*arguments)

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def test_one_process_for_questions_asks_none_of_them_for_all_the_time(monkeypatch):
    """The engine may have no answer at all in this kind of the model: then it is the turn of the next."""

    class Asked(Exception):
        pass

    def asked(ratio, cutoff, time_s, seed, kind):
        raise Asked(time_s)

    monkeypatch.setattr(search, "complete", asked)
    monkeypatch.setattr(stage_mip, "ProcessPoolExecutor", AtOnce)
    with pytest.raises(Asked) as question:
        run(LIBRARY.generate("small", 7), Budget(time_s=60, workers=2).start(), ratio="5,1")
    assert question.value.args[0] <= Stage().question_s * 2


@pytest.mark.parametrize("seed", [20044, 462])
def test_a_relaxation_that_doubles_cannot_hold_proves_nothing(seed):
    """Ticks of 1 and 10^7 beside a first plan of 7 ticks that fits no DRAM: HiGHS called a question INFEASIBLE that the
    plan of 4,000,007 answers, so the bound stood above the optimum; of the second instance it said so of all plans."""
    instance = LIBRARY.generate("realistic", seed)
    best = optimum(instance)
    result = run(instance, Budget(time_s=200, seed=seed).start())
    assert (result.status, result.bound, result.claimed) == (Status.OPTIMAL, best, best)
    assert result.notes.get(DISTRUSTED) in (None, [search.UNRESOLVED])  # none where nobody had to ask
    search.prepare(instance, 1.0)
    ratios = partitions(instance.batch, len(instance.accelerators))
    replies = [search.destroy(ratio, best, 10.0, 10.0, 0) for ratio in ratios]
    assert all(reply.bound <= best for reply in replies)
    assert [search.UNRESOLVED] in [reply.result.notes.get(DISTRUSTED) for reply in replies]


@pytest.mark.parametrize("family", ["small", "branching"])
@pytest.mark.parametrize("seed", range(8))
def test_every_plan_is_at_least_its_ratio_s_bound(family, seed):
    """Any plan of a ratio is a schedule, so the LP must lie below it; longer annealing makes the test sharper."""
    instance = LIBRARY.generate(family, seed)
    search.prepare(instance, 1.0)
    for ratio in list(partitions(instance.batch, len(instance.accelerators)))[::2]:
        reply = search.explore(ratio, True, 30.0, seed)
        assert reply.result.plan is None or reply.bound <= reply.result.claimed


def test_a_mapping_fixed_in_the_model_stays_below_its_timetable():
    """The relaxation with all accelerators fixed bounds every order of that mapping (ResNet-18, branches)."""
    instance = build(1, "resnet18", 3.0, 8)
    ratio = (5, 3)
    lowered = lower(instance, ratio)
    rng = np.random.default_rng(1)
    for _ in range(5):
        location = rng.integers(0, 2, lowered.n)
        makespan = lowered.makespan(location, lowered.topological)
        model = StageModel(PhaseGraph(instance), ratio, makespan / 1000.0)
        upper = np.array(model.matrix.upper)
        for operation, place in zip(lowered.operations, location, strict=True):
            upper[model.x[operation][1 - place]] = 0.0
        answer = model.matrix.solve(30.0, relaxed=True, upper=upper)
        assert answer.bound is not None
        assert 300.0 < answer.bound <= 1000.0 * (1 + 1e-7)


@pytest.mark.in_turn
def test_an_interrupted_run_has_reported_a_plan_and_a_bound():
    """A run that is killed keeps what it has announced: bounds only rise, plans only improve."""
    plans = []
    bounds = []
    instance = build(1, "tinyyolov3", 3.0, 6)

    def listen(plan, bound):
        if plan is not None:
            plans.append(PROBLEM.evaluate(instance, plan).objective or 0)
        if bound is not None:
            bounds.append(bound)

    result = run(instance, Budget(time_s=6, listener=listen).start(), target_gap=0.01)
    assert plans == sorted(plans, reverse=True)
    assert bounds == sorted(bounds)
    assert result.bound == bounds[-1]
    assert result.claimed == plans[-1]
    assert plans[-1] >= bounds[-1]


def test_rows_after_a_share_raise_bounds_without_fusion_points(monkeypatch):
    """Row (17): without it some LP of a network of split layers falls, and none rises."""
    instances = [
        i for i in (LIBRARY.generate("small", s) for s in range(30)) if all(x.kind == "split" for x in i.layers)
    ]
    assert instances

    def bounds():
        return [
            StageModel(PhaseGraph(i), ratio, 1.0).matrix.solve(30.0, relaxed=True).bound
            for i in instances
            for ratio in list(partitions(i.batch, len(i.accelerators)))[:3]
        ]

    full = bounds()
    monkeypatch.setattr(StageModel, "followers", lambda *_: None)
    less = bounds()
    assert all(b <= a + 1e-6 for a, b in zip(full, less, strict=True))
    assert sum(less) < sum(full) - 1.0


def test_four_shares_on_four_accelerators_keep_their_configurations():
    """256 of them per layer, and 35 where equal shares are sorted; with fewer the columns would be lost silently."""
    chain = next(i for i in (LIBRARY.generate("small", s) for s in range(99)) if len(i.accelerators) == 2)
    four = chain.changed(
        batch=4,
        accelerators=tuple(a.model_copy(update={"name": f"{a.name}{k}"}) for k in range(2) for a in chain.accelerators),
        bandwidth=tuple((chain.bandwidth[0][1],) * 4 for _ in range(4)),
        layers=tuple(
            layer.model_copy(
                update={
                    key: tuple(row[:4] for row in rows) * 2
                    for key in ("fp", "bp", "wu")
                    if (rows := getattr(layer, key))
                }
            )
            for layer in chain.layers
        ),
    )
    model = StageModel(PhaseGraph(four), (1, 1, 1, 1), 1.0)
    assert {len(found) for found in model.lam.values()} == {256, 35}


def test_lp_bounds_are_recomputed_from_their_duals():
    """The exact bound of a ratio is at most the engine's optimum, and no further below it than a tick."""
    for seed in range(6):
        instance = LIBRARY.generate("branching", seed)
        ratio = next(partitions(instance.batch, len(instance.accelerators)))
        one = search.RatioSolver(PhaseGraph(instance), ratio, 1.0)
        exact = one.relax(30.0)
        assert one.linear is not None
        assert one.linear.bound is not None
        assert one.linear.bound - 1e-3 <= exact <= one.linear.bound + 1.0


def numbered(text):
    """Numbers of the rows that a text states, one at the beginning of a line each."""
    return [int(number) for number in re.findall(r"^ *\((\d+)\)", text, re.MULTILINE)]


@pytest.mark.parametrize(("program", "model"), [(StageModel.__doc__, StageModel), (fluid_bound.__doc__, FluidModel)])
def test_every_numbered_row_has_one_method(program, model):
    """From the equation in the docstring to the code, and back."""
    methods = [inspect.getdoc(method) or "" for _, method in inspect.getmembers(model, inspect.isfunction)]
    stated = numbered(program)
    assert stated == list(range(1, len(stated) + 1))
    assert sorted(number for doc in methods for number in numbered(doc)) == stated


def test_every_row_of_the_stage_model_is_proven_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "methods" / "suboperation_mapping.md").read_text()
    section = page.partition("## Why every row is valid")[2].partition("\n## ")[0]
    proofs = re.findall(r"^- \*\*((?:\(\d+\)(?:, )?)+)", section, re.MULTILINE)
    proven = [int(number) for numbers in proofs for number in re.findall(r"\d+", numbers)]
    assert sorted(proven) == numbered(StageModel.__doc__)


@pytest.mark.parametrize("kind", get_args(search.ModelKind))
@pytest.mark.parametrize("seed", seeds(8, 40))
def test_the_complete_model_tells_the_optimum_from_one_tick_less(seed, kind):
    """Realistic ticks: below the optimum of brute force there is no plan of any ratio, below the next tick there is.

    Without limits of DRAM, whose delays take CP-SAT longer; the contract of models covers those.
    """
    limited = LIBRARY.generate("realistic", seed)
    instance = limited.changed(accelerators=tuple(a.model_copy(update={"memory": 10**9}) for a in limited.accelerators))
    best = optimum(instance)
    search.prepare(instance, 1.0)

    def below(cutoff):
        ratios = partitions(instance.batch, len(instance.accelerators))
        return [search.complete(ratio, cutoff, 60.0, 0, kind).result for ratio in ratios]

    assert all(result.plan is None and result.bound == best for result in below(best))
    assert min(result.claimed for result in below(best + 1) if result.plan is not None) == best


@pytest.mark.nightly
def test_the_stages_make_the_complete_model_prove_more():
    """The same work of the engine (its own deterministic measure), with rows (15) and without."""
    lowered = lower(build(1, "tinyyolov3", 3.0), (32, 32))
    phases = PhaseGraph(lowered.instance)

    def below(without):
        model = StagedRatioModel(phases, lowered, cutoff=18_500_000, without=without)
        model.parameters = {**StagedRatioModel.parameters, "max_deterministic_time": 6.0}
        return model.solve(Budget(300.0).start()).status

    assert (below(()), below((15,))) == (Status.INFEASIBLE, Status.UNKNOWN)


def test_boxes_are_outdone_where_questions_have_proven_more_of_the_weakest_one():
    """Then their word is the bound of all ratios."""
    instance = LIBRARY.generate("small", 7)
    search.prepare(instance, 1.0)
    known = State.begin(instance, Budget(time_s=60).start(), list(partitions(6, 2)), False)
    boxes = StageBoxes(known, Frame(instance), chained=True)
    assert not boxes.outdone()  # its roots have no programs yet
    while not boxes.rooted:
        boxes.step()
    weakest, other = boxes.search.heap
    assert not boxes.outdone()
    for ratio in boxes.search.ratios(weakest):
        known.ratios[ratio].raise_to(other.bound + 10, own=True)
    assert not boxes.outdone()  # of the other one no question has proven anything
    assert known.bound == other.bound
    for ratio in boxes.search.ratios(other):
        known.ratios[ratio].raise_to(other.bound + 7, own=True)
    assert boxes.outdone()
    assert known.bound == known.budget.recomputed[-1] == other.bound


@pytest.mark.parametrize("outdone", [False, True])
def test_beside_processes_boxes_that_are_outdone_are_not_divided(monkeypatch, outdone):
    """As long as there is an answer to wait for; here none ever comes, and nothing has been asked in the first turn."""
    divided = []

    class Silent(AtOnce):
        def submit(self, fn, /, *args, **kwargs):
            return Future()

    def step(boxes):
        divided.append(boxes)

    monkeypatch.setattr(stage_mip, "ProcessPoolExecutor", Silent)
    monkeypatch.setattr(StageBoxes, "waiting", lambda boxes: True)
    monkeypatch.setattr(StageBoxes, "outdone", lambda boxes: outdone)
    monkeypatch.setattr(StageBoxes, "step", step)
    mip = stage_mip.StageMip(LIBRARY.generate("small", 7), Budget(time_s=60, workers=2).start())
    steps = mip.steps()
    idle = [next(steps) for _ in range(5)]  # the first time behind the bounds that need no program
    steps.close()
    assert mip.running
    assert len(divided) == (1 if outdone else 4)
    assert idle[-1] == outdone  # the others may have the time


@pytest.mark.in_turn
def test_a_promising_ratio_that_is_closed_already_costs_no_time():
    """Its path is longer than the best plan; waiting for an answer of nobody took all of the time."""
    instance = LIBRARY.generate("small", 206)
    result = run(instance, Budget(time_s=120.0).start())
    assert (result.status, result.bound, result.claimed) == (Status.OPTIMAL, 292, 292)
    assert result.stop is Stop.PROVED


def test_targets_stay_below_what_the_relaxation_attains_and_meet_it():
    # Whoever asks at 1,002,000 when a mapping ends at 1,000,900 is told of a mapping again, and of no bound.
    known = RatioState(1_000_000)
    assert known.target == 1_002_000
    known.attained = 1_000_900
    assert known.target == 1_000_450
    known.bound = 1_000_850  # a distance of half a ten-thousandth is not divided
    assert (known.target, known.settled) == (1_000_899, False)
    known.bound = 1_000_899
    assert known.settled
    known.bound = 1_000_950  # as the complete model may prove
    assert (known.target, known.settled) == (1_000_950, True)
