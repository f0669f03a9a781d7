"""The portfolio of the FPGA-GPU partition: never worse than a heuristic, and it says who found and who proved."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
from mapgap.formulations.fpga_gpu_partition import portfolio
from mapgap.formulations.fpga_gpu_partition.label_setting import cheap
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.instances.fpga_gpu_partition.families import realistic, small, tiny
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate


def budget(seconds=300.0, seed=0):
    return Budget(time_s=seconds, seed=seed).start()


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(300, 306))
@pytest.mark.parametrize("make", [tiny, realistic, small])
def test_no_heuristic_is_better(make, seed):
    instance = make(seed)
    found = portfolio.run(instance, budget(seed=seed))
    for method in registry.methods("fpga_gpu_partition").values():
        if method.kind in ("published", "baseline"):
            plan = method.solve(instance, budget(seed=seed)).plan
            if plan is not None:
                assert found.claimed <= evaluate(instance, plan).objective, method.name


def test_the_record_names_who_found_the_plan_and_who_proved_the_bound():
    record = run_method(small(4), "portfolio", Budget(300.0), isolate=False)
    members = registry.methods("fpga_gpu_partition")["portfolio"].members
    assert record.status == "OPTIMAL"
    assert record.found_by in members
    assert record.proved_by == "label_setting"
    assert list(record.notes["used_s"]) == list(members)


def test_the_exact_method_is_cheap_on_small_instances_only():
    assert cheap(tiny(0))
    assert not cheap(LIBRARY.generate("networks", 502))
