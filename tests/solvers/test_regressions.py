"""Instances on which an engine was caught: whatever it says today, no wrong word of it becomes a result.

Found by random search with HiGHS 1.13.1 and CBC 2.10.12:

- ``highs_wrong_optimal_mm_1e5``: presolve on, HiGHS says OPTIMAL 100004 in about half of 60 seeds.
- ``synergy_highs_wrong``: presolve on, HiGHS proves "no plan below 31205" beside its own plan of 31174.
- ``cbc_wrong_infeasible``, ``_optimal``, ``_bound``: CBC says INFEASIBLE, OPTIMAL 160000016 and bound 89999923, where a
  big M near 10^8 times a tolerance of 10^-7 leaves a slack of ten ticks.
- ``stage_mip_overflow``: no ratio fits, so no target was ever reached, and targets grew past every float.
- ``fpga_int64_wrap``: bytes times 10^9 wrap in 64 bits; four exact methods said 254, brute force 297.
"""

from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status
from mapgap.execution.run import run_method

FOLDER = Path(__file__).parents[1] / "data" / "regressions"
OPTIMA = {
    "highs_wrong_optimal_mm_1e5.json": 100_002,
    "synergy_highs_wrong.yaml": 31_174,
    "cbc_wrong_infeasible.json": 73,
    "cbc_wrong_optimal.json": 160_000_012,
    "cbc_wrong_bound.json": 60_000_021,
    "stage_mip_overflow.json": None,
}
"""By brute force, where the instance is small enough for it, else by CP-SAT; ``None`` for INFEASIBLE."""
TIME_S = 6.0
MIPS = [
    (name, method)
    for name in OPTIMA
    for method in registry.methods(load_instance(FOLDER / name).problem)
    if method.startswith("mip")
]
OTHERS = [
    (name, method.name)
    for name in OPTIMA
    for method in registry.methods(load_instance(FOLDER / name).problem).values()
    if method.kind in ("exact", "bound") and not method.name.startswith("mip")
]


def check(name, method, seed):
    """Every claim against the optimum; the record."""
    instance, optimum = load_instance(FOLDER / name), OPTIMA[name]
    found = run_method(instance, method, Budget(TIME_S, seed=seed), isolate=False)
    assert not found.error
    if optimum is None:
        assert found.objective is None
        assert found.status in (Status.INFEASIBLE, Status.UNKNOWN)
        return found
    assert found.status != Status.INFEASIBLE
    assert found.bound is None or found.bound <= optimum
    assert found.objective is None or found.objective >= optimum
    assert found.status != Status.OPTIMAL or found.objective == optimum
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(3, 60))
@pytest.mark.parametrize(("name", "method"), MIPS)
def test_no_mip_says_what_is_wrong(name, method, seed):
    check(name, method, seed)


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "method"), OTHERS)
def test_nor_does_any_other_method(name, method):
    check(name, method, seed=0)


@pytest.mark.parametrize("method", ["mip", "mip_cbc"])
@pytest.mark.parametrize("name", [name for name in OPTIMA if name.startswith("cbc")])
def test_a_leaking_big_m_is_refused_with_a_reason(name, method):
    found = check(name, method, seed=0)
    assert found.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert "expected big M below 5e+06" in found.reason


@pytest.mark.parametrize("method", ["cpsat", "mip", "mip_cbc", "stage_mip", "enumerate"])
def test_an_instance_without_plans_is_proven_to_have_none(method):
    assert check("stage_mip_overflow.json", method, seed=0).status == Status.INFEASIBLE


def test_sizes_beyond_64_bits_are_refused_by_name():
    with pytest.raises(
        InputError, match=r"modules\[0\]\.layers\[0\]\.outputs\[0\] .*expected at most 4611686018 bytes"
    ):
        load_instance(FOLDER / "fpga_int64_wrap.json")
