"""The checker's own rules, on programs small enough to refute by hand: right steps are followed, wrong ones refused."""

import gc
import gzip
import json
import random
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from mutants import at, leaves, replaced

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import samples
from mapgap.core import Budget
from mapgap.evidence import check
from mapgap.evidence.check import Box, Program, Refused, refuted
from mapgap.evidence.ledger import Ledger, library_hashes
from mapgap.formulations.multi_model_splitting.certificate import prove
from mapgap.formulations.neuron_masking import certificate as masks
from mapgap.formulations.neuron_masking import lagrangian
from mapgap.instances.multi_model_splitting import LIBRARY
from mapgap.instances.neuron_masking import LIBRARY as MASKS


def refused(program, proof):
    try:
        refuted(program, proof)
    except (Refused, IndexError, TypeError, ValueError):
        return True
    return False


def parity():
    """2 x + 2 y = 3 for binary x and y: no integer point, many rational ones (row 0 is "at most", row 1 "at least")."""
    program = Program()
    x, y = program.variable(0, 1), program.variable(0, 1)
    program.equal([(x, 2), (y, 2)], 3)
    return program


def apart():
    """x <= 1 and x >= 2 as rows of x in 0..5."""
    program = Program()
    x = program.variable(0, 5)
    program.at_most([(x, 1)], 1)
    program.at_most([(x, -1)], -2)
    return program


def hyperbola(most):
    """x y <= most and x + y >= 9 for x and y in 3..6: the least product is 3 * 6 = 18."""
    program = Program()
    x, y = program.variable(3, 6), program.variable(3, 6)
    program.products.append((x, y, most))
    program.at_most([(x, -1), (y, -1)], -9)
    return program


# --- rows that are added up ---


def test_sums_of_rows_empty_a_box():
    refuted(apart(), [["p", 0, 1, 1, 1]])  # 0 <= -1
    assert refused(apart(), [["p", 0, 2, 1, 1]])  # x <= 0 tightens, but empties nothing: the proof ends
    assert refused(apart(), [["p", 0, 1]])


@pytest.mark.parametrize("y", [0, -1, 1.0, True, "1", None])
def test_multipliers_are_positive_integers(y):
    assert refused(apart(), [["p", 0, 1, 1, y]])


def test_negative_numbers_of_rows_are_refused():
    # Row -1 would be the last one, which sums may only name by its number.
    assert refused(apart(), [["p", 0, 1, -1, 1]])
    assert refused(apart(), [["p", 0, 1, 2, 1]])


def test_a_multiplier_without_row_is_refused():
    assert refused(apart(), [["p", 0, 1, 1]])


def test_sums_round_bounds_to_integers():
    program = Program()
    x = program.variable(0, 5)
    program.at_most([(x, 2)], 3)  # x <= 1
    program.at_most([(x, -2)], -3)  # x >= 2
    refuted(program, [["p", 0, 1], ["p", 1, 1]])
    box = Box([0, -4], [9, 9], [])
    assert box.tighten({0: 3, 1: -2}, 8)  # 3 a <= 8 + 2 b: with b <= 9 a <= 8; with a >= 0 b >= -4
    assert (box.lower, box.upper) == ([0, -4], [8, 9])
    assert box.tighten({0: -5}, -11)  # a >= 2.2
    assert box.lower[0] == 3


# --- single rows ---


def test_single_rows_empty_a_box():
    refuted(apart(), [["q", 0, 1]])
    assert refused(apart(), [["q", 0]])
    assert refused(apart(), [["q", 0], ["q", 0]])
    assert refused(apart(), [["q", 0, 7]])


# --- splits ---


def test_both_halves_of_a_split_must_be_empty():
    # x = 0: 2 y >= 3 is too much of y <= 1. x = 1: y = 1/2, so y <= 0 and y >= 1 by rounding.
    refuted(parity(), [["s", 0, 0], ["q", 1], ["q", 0, 1]])
    assert refused(parity(), [["s", 0, 0], ["q", 1]])
    assert refused(parity(), [["s", 0, 0], ["q", 0, 1]][:2])


@pytest.mark.parametrize("v", [-3, 1, 7])
def test_a_split_outside_of_the_range_loses_nothing(v):
    # One half is empty and the other the whole box, so nothing is gained either.
    program = Program()
    x = program.variable(0, 1)
    program.at_most([(x, 1)], 1)
    assert refused(program, [["s", x, v], ["q", 0]])
    below, above = Box([0], [1], []).halves(0, v)
    assert {k for half in (below, above) for k in range(half.lower[0], half.upper[0] + 1)} == {0, 1}


def test_a_split_needs_an_integer_and_a_variable():
    assert refused(parity(), [["s", 0, 0.5], ["q", 1], ["q", 0, 1]])
    assert refused(parity(), [["s", 2, 0], ["q", 1], ["q", 0, 1]])
    assert refused(parity(), [["s", 0], ["q", 1], ["q", 0, 1]])


def test_halves_do_not_share_bounds():
    box = Box([0, 0], [4, 4], [({0: 1}, 3)])
    below, above = box.halves(0, 1)
    below.tighten({1: 1}, 2)
    below.rows.append(({1: 1}, 0))
    assert (above.lower, above.upper, above.rows) == ([2, 0], [4, 4], [({0: 1}, 3)])
    assert (box.lower, box.upper) == ([0, 0], [4, 4])


# --- products ---


def test_secants_follow_the_range():
    # Over y in 3..6 the chord of 17 / y says 18 x + 17 y <= 153, and x + y >= 9 asks for 18 x + 17 y >= 156.
    refuted(hyperbola(17), [["h", 0], ["p", 0, 17, 1, 1]])
    assert refused(hyperbola(17), [["p", 0, 17, 1, 1]])  # there is no secant yet
    assert refused(hyperbola(17), [["h", 1], ["p", 0, 17, 1, 1]])
    assert refused(hyperbola(18), [["h", 0], ["p", 0, 18, 1, 1]])  # (3, 6) is a point
    assert refused(hyperbola(18), [["s", 1, 4], ["h", 0], ["p", 0, 18, 1, 1], ["h", 0], ["p", 0, 18, 1, 1]])


@pytest.mark.parametrize("v", range(40))
def test_a_secant_holds_wherever_the_product_does(v):
    for low in range(7):
        for high in range(low, 7):
            row, bound = Box([0, low], [99, high], []).secant((0, 1, v))
            points = [(e, length) for e in range(41) for length in range(low, high + 1) if e * length <= v]
            assert all(row.get(0, 0) * e + row.get(1, 0) * length <= bound for e, length in points)


def test_a_product_of_a_variable_that_may_be_negative_is_refused():
    program = hyperbola(17)
    program.lower[0] = -1
    assert refused(program, [["h", 0], ["p", 0, 17, 1, 1]])


# --- machines ---


def machine(lengths, end):
    """Tasks of these lengths on one machine, from 0 to ``end``: of each a start, a load and a place that is sure."""
    program = Program()
    last = program.variable(0, end)
    tasks = [(program.variable(0, end), program.variable(n, n), program.variable(1, 1), n, []) for n in lengths]
    for start, load, *_ in tasks:
        program.at_most([(start, 1), (load, 1), (last, -1)], 0)
    program.machines.append((last, tasks))
    return program


def test_tasks_of_a_machine_do_not_overlap():
    # Two tasks of 3 take 6: not 5, though each ends in time, but 6 is enough.
    refuted(machine([3, 3], 5), [["w", 0, 0], ["p", 2, 1]])
    refuted(machine([3, 3], 5), [["w", 0, 0, 5], ["p", 2, 1]])
    assert refused(machine([3, 3], 5), [["q", 0, 1], ["p", 2, 1]])  # there is no such row yet
    assert refused(machine([3, 3], 6), [["w", 0, 0], ["p", 2, 1]])
    assert refused(machine([3, 3], 5), [["w", 1, 0], ["p", 2, 1]])


@pytest.mark.parametrize(("end", "fits"), [(8, False), (9, True)])
def test_a_part_of_a_task_lies_in_a_window_wherever_it_starts(end, fits):
    # A task of 5 from 1 to 6. One of 3 has not enough of 0 to 1 and of 6 to 8, but of 6 to 9.
    program = machine([5, 3], end)
    last, ((start, load, place, least, _), other) = program.machines[0]
    program.lower[start] = 1
    program.machines[0] = last, [(start, load, place, least, [program.variable(0, 6)]), other]
    proof = [["w", 0, 1, 6], ["p", 2, 1]]
    assert refused(program, proof) if fits else refuted(program, proof) is None


@pytest.mark.parametrize("times", [(6,), (4, 3), (100,), (100, 99)])
def test_a_window_that_may_begin_after_its_end_is_refused(times):
    # Nothing is in it, and nothing would be less than nothing.
    assert refused(machine([1], 5), [["w", 0, *times], ["p", 1, 1]])


@pytest.mark.parametrize("seed", range(60))
def test_windows_hold_in_every_schedule(seed):
    """Of random schedules with idle times, tasks elsewhere and random boxes around them, at every begin and end."""
    rng = random.Random(seed)
    scale = rng.choice([1, 10**3, 10**6])
    point, tasks, now = [0], [], 0
    for _ in range(rng.randint(1, 5)):
        here, least = rng.random() < 0.8, rng.randint(0, 6) * scale
        length = (least + rng.choice([0, 0, rng.randint(0, 3)]) * scale) * here
        begin = now + rng.randint(0, 2) * scale if here else rng.randint(0, 20) * scale
        now = begin + length if here else now
        first = len(point)
        point += [begin, length, int(here), begin + length + rng.randint(0, 4) * scale]
        tasks.append((first, first + 1, first + 2, least, [first + 3] * rng.randint(0, 1)))
    point[0] = max(point[t[0]] + point[t[1]] for t in tasks) + rng.randint(0, 2) * scale
    lower = [x - rng.randint(0, 4) * scale * rng.randint(0, 1) for x in point]
    upper = [x + rng.randint(0, 4) * scale * rng.randint(0, 1) for x in point]
    box, tried = Box(lower, upper, []), 0
    moments = sorted({k * scale + rng.randint(-1, 1) for k in range(-1, 40)})
    for begin, end in product(moments, [None, *moments]):
        if begin > (lower[0] if end is None else end):
            continue
        row, bound = box.window((0, tasks), begin, end)
        assert sum(a * point[j] for j, a in row.items()) <= bound, (begin, end)
        tried += bool(row)
    assert tried


def test_a_task_is_over_after_its_load():
    # Tasks of 3 that start by 2 are over by 5, whatever the end is: both do not fit there.
    program = machine([3, 3], 20)
    for start, *_ in program.machines[0][1]:
        program.upper[start] = 2
    refuted(program, [["w", 0, 0, 5], ["p", 2, 1]])
    assert refused(program, [["w", 0, 0, 6], ["p", 2, 1]])
    program.upper[program.machines[0][1][0][0]] = 3
    assert refused(program, [["w", 0, 0, 5], ["p", 2, 1]])


# --- stores ---


def store(room, held, always=()):
    """What is there from a start to an end, here for sure: of each a start, a place, a last operation and its load."""
    program, found = Program(), []
    for size, begins, ends in held:
        start, place = program.variable(*begins), program.variable(1, 1)
        found.append((start, place, size, program.variable(*ends), [program.variable(1, 1)]))
    program.stores.append((room, [(program.variable(1, 1), size) for size in always], found))
    return program


def test_what_is_there_at_one_time_fits():
    # 3 from 2 to 6, 4 from 5 to 9, and 1 always: 8 at 5, no longer at 6.
    held = [(3, (2, 2), (5, 5)), (4, (5, 5), (8, 8))]
    refuted(store(7, held, [1]), [["m", 0, 5], ["p", 0, 1]])
    assert refused(store(7, held, [1]), [["m", 0, 4], ["p", 0, 1]])
    assert refused(store(7, held, [1]), [["m", 0, 6], ["p", 0, 1]])
    assert refused(store(8, held, [1]), [["m", 0, 5], ["p", 0, 1]])
    assert refused(store(7, held, [1]), [["m", 1, 5], ["p", 0, 1]])


@pytest.mark.parametrize(("begins", "ends"), [((2, 6), (5, 5)), ((2, 2), (4, 5))])
def test_what_may_come_later_or_go_sooner_is_not_counted(begins, ends):
    assert refused(store(6, [(3, begins, ends), (4, (5, 5), (8, 8))]), [["m", 0, 5], ["p", 0, 1]])


# --- proofs as a whole ---


@pytest.mark.parametrize("proof", [[], [[]], [["x"]], ["q"], [["q", 0, 1], ["q", 0]], [["q", 0, 1, 1], []], [None], 3])
def test_what_is_no_proof_is_refused(proof):
    with pytest.raises((Refused, IndexError, TypeError)):
        refuted(apart(), proof)


def test_rows_add_equal_variables_and_drop_zeros():
    program = Program()
    x, y = program.variable(0, 9), program.variable(0, 9)
    program.at_most([(x, 2), (y, 3), (x, 4), (y, -3)], 5)
    assert program.rows == [({x: 6}, 5)]


# --- files ---


@pytest.fixture(scope="module")
def certificate():
    instance = LIBRARY.generate("tiny", 0).to_json()
    bound = 1  # no cycle is shorter than a tick
    proof = prove(instance, bound, Budget(time_s=200).start())
    return {"schema": 1, "instance": instance, "bound": bound, "proof": proof}


def test_a_certificate_says_what_it_proves(certificate):
    said = check.check(certificate, certificate["instance"])
    assert said == f"tiny_0 ({check.instance_hash(certificate['instance'])}): no plan has an objective below 1"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"bound": 1.0},
        {"bound": "1"},
        {"bound": True},
        {"bound": None},
        {"proof": None},
        {"proof": [["q", 0]] * 3},
        {"proof": {"q": 0}},
        {"instance": {"problem": "none"}},
        {"instance": {"problem": "../problems/neuron_masking"}},
        {"instance": []},
    ],
)
def test_malformed_certificates_are_refused(certificate, change):
    with pytest.raises(Refused):
        check.check({**certificate, **change})


@pytest.mark.parametrize("key", ["schema", "instance", "bound", "proof"])
def test_incomplete_certificates_are_refused(certificate, key):
    with pytest.raises(Refused):
        check.check({name: value for name, value in certificate.items() if name != key})


def test_a_certificate_about_another_instance_is_refused(certificate):
    other = {**certificate["instance"], "tick_ns": 999}
    with pytest.raises(Refused, match="about instance"):
        check.check(certificate, other)
    check.check(certificate, {**certificate["instance"], "name": "other", "tags": []})  # what no optimiser sees


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_after_a_check_as_before(certificate, collecting):
    """Accepted or refused."""
    before = gc.isenabled()
    try:
        for those in (certificate, {}):
            (gc.enable if collecting else gc.disable)()
            if those:
                check.check(those)
            else:
                with pytest.raises(Refused):
                    check.check(those)
            assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


def test_hashes_are_those_of_the_library(certificate):
    assert check.instance_hash(certificate["instance"]) == LIBRARY.generate("tiny", 0).content_hash


def run(*arguments, folder):
    """The checker as a program, without site packages, environment and working directory to import from."""
    code = (
        "import sys\n"
        "sys.path[:] = [p for p in sys.path if 'python3' in p and 'site-packages' not in p]\n"
        f"sys.argv = ['check.py', *{list(map(str, arguments))!r}]\n"
        "import runpy\n"
        f"runpy.run_path({str(Path(check.__file__).resolve())!r}, run_name='__main__')\n"
    )
    probe = "\ntry:\n    import mapgap\nexcept ImportError:\n    pass\nelse:\n    raise SystemExit('mapgap is there')\n"
    return subprocess.run(
        [sys.executable, "-S", "-E", "-I", "-c", probe + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_checker_is_a_program_of_its_own(certificate, tmp_path):
    good, packed, bad = tmp_path / "good.json", tmp_path / "good.json.gz", tmp_path / "bad.json"
    good.write_text(json.dumps(certificate))
    packed.write_bytes(gzip.compress(json.dumps(certificate).encode()))
    bad.write_text(json.dumps({**certificate, "bound": 10**9}))
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(certificate["instance"]))
    done = run(good, packed, "-i", instance, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(": ok: tiny_0") == 2
    done = run(good, bad, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count(": ok: ") == done.stdout.count(": REFUSED: ") == 1


def test_it_checks_problems_that_recompute_their_argument(tmp_path):
    instance = MASKS.generate("small", 0)
    best = lagrangian.run(instance, Budget(time_s=200).start()).claimed
    proof = masks.prove(instance.to_json(), best, Budget(time_s=200).start())
    for bound, answer in ((best, "ok"), (best - 1, "REFUSED")):
        path = tmp_path / f"{bound}.json"
        path.write_text(json.dumps({"schema": 1, "instance": instance.to_json(), "bound": bound, "proof": proof}))
        done = run(path, folder=tmp_path)
        assert f": {answer}: " in done.stdout, done.stderr


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\x1f\x8b", b"\x1f\x8b\x08\x00junk", b"\xff\xfe", b"[" * 100_000, b"[]", b"3"]
)
def test_files_that_are_no_certificates_are_refused(text, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(text)
    done = run(path, tmp_path / "absent", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count(": REFUSED: ") == 2


def test_files_that_unpack_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "SIZE_LIMIT", 1000)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b" " * 10**6))
    with pytest.raises(Refused, match="larger than 1000 bytes"):
        check.read(path)


@pytest.mark.parametrize("problem", registry.house())
def test_instances_outside_of_a_writers_domain_are_refused(problem):
    """Fields and words that the rules may give a meaning; before, an unknown objective counted as another one."""
    library, spec = registry.library(problem), registry.problems()[problem]
    made = map(partial(library.generate, "tiny"), range(60))
    if spec.always_feasible:
        instance = next(made)
        bound, words = 2**30, f"above {2**30}"
    else:
        instance = next(each for each in made if not has_plan(each))
        bound, words = None, "there is no plan"
    facts = instance.to_json()
    proof = library.prove(facts, check.NONE[spec.sense] if bound is None else bound, Budget(20.0).start())
    certificate = {"schema": 1, "instance": facts, "bound": bound, "proof": proof}
    assert words in check.check(certificate)
    strange = [{**facts, "priority": 3}]
    if "objective" in facts:
        strange.append({**facts, "objective": "happiness"})
    key = next(key for key in ("layers", "modules", "pipelines", "nodes") if isinstance(facts.get(key), list))
    strange.append({**facts, key: [{**facts[key][0], "deadline": 3}, *facts[key][1:]]})
    for own in strange:
        with pytest.raises(Refused):
            check.check({**certificate, "instance": own})


@pytest.mark.parametrize("problem", registry.house())
def test_negative_and_broken_numbers_of_an_instance_are_refused(problem):
    """No such instance can be loaded. With an energy that is worth -3 a better combination of options was dropped as
    worse, and where a feature took -40 bytes of memory the least mask broke a limit that a larger one keeps."""
    facts = registry.library(problem).generate("tiny", 3).to_json()
    places = [path for path in leaves(facts) if type(at(facts, path)) is int and path[0] != "schema"]
    assert len(places) > 10
    for path in places:
        for number in (-2, 1.5):
            with pytest.raises(Refused, match="negative or not whole"):
                check.check({"schema": 1, "instance": replaced(facts, path, number), "bound": 1, "proof": []})


def has_plan(instance):
    return registry.methods(instance.problem)["enumerate"].solve(instance, Budget(60.0).start()).plan is not None


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(40, 400))
def test_shapes_are_those_of_the_library(sample):
    """Every instance of the library is within its writer's domain, so a new field does not pass unseen."""
    entries = list(Ledger.load().entries.values())
    for entry in {k % len(entries): entries[k % len(entries)] for k in sample}.values():
        instance = load_instance(entry.instance).to_json()
        writer = check.writer_of(entry.problem)
        found = check.strange(instance, getattr(writer, "SHAPE", None), getattr(writer, "LEAST", {}))
        assert found is None, (entry.instance, found)


@pytest.mark.nightly
def test_the_list_of_the_library_names_its_instances():
    """``instances/best_known.sha256``; docs/maintainers/certificate.md has the command that writes it."""
    path = check.beside("instances/best_known.sha256")
    listed = dict(line.split("  ", 1)[::-1] for line in path.read_text().splitlines())
    names = sorted(set(library_hashes().values()))
    assert sorted(listed) == names
    for name in names[:: max(1, len(names) // 40)]:
        assert listed[name] == check.digest(load_instance(name).to_json())


def test_what_is_printed_says_whether_the_instance_is_the_librarys(certificate, tmp_path, capsys, monkeypatch):
    name = "synergy_fig11b_1pipelines"
    own = check.read(Ledger.load().certificate_path(name))
    files = []
    for each in (own, {**certificate, "instance": {**certificate["instance"], "name": name}}):
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(json.dumps(each))
    monkeypatch.setattr(sys, "argv", ["check.py", *map(str, files)])
    assert check.main() == 0
    first, second = capsys.readouterr().out.splitlines()
    assert f"sha256 {check.digest(own['instance'])}, the library's {name}]" in first
    assert second.endswith("not of the library]")  # although it bears the name of one


def test_work_has_a_limit(tmp_path):
    """A hostile file, of a size that a library could have, ends by the clock and not by patience."""
    instance = LIBRARY.generate("tiny", 1).to_json()
    layers = instance["pipelines"][0]["layers"] * 400
    first, inner, *_, last = instance["pipelines"][0]["boundaries"]
    cuts = [first, *[inner] * (len(layers) - 1), last]
    pipeline = {
        **instance["pipelines"][0],
        "layers": layers,
        "boundaries": [cuts[0], *cuts[1:2] * (len(layers) - 1), cuts[-1]],
    }
    file = tmp_path / "large.json"
    file.write_text(
        json.dumps({"schema": 1, "instance": {**instance, "pipelines": [pipeline]}, "bound": 10**9, "proof": []})
    )
    done = subprocess.run([sys.executable, check.__file__, file, "--seconds", "0.3"], capture_output=True, text=True)
    assert (done.returncode, "not checked within --seconds of work" in done.stdout) == (1, True)
