"""Certificates of the FPGA-GPU partition against brute force: what is proven is true, and every optimum is proven."""

import pytest
from certificates import accepted

from mapgap.core import Budget
from mapgap.formulations.fpga_gpu_partition import certificate as producer
from mapgap.formulations.fpga_gpu_partition import label_setting
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.problems.fpga_gpu_partition import PROBLEM


def budget(seconds=200.0):
    return Budget(time_s=seconds).start()


def proven(instance, best):
    """The optimum is proven, and one more is neither proven nor accepted."""
    facts = instance.to_json()
    proof = producer.prove(facts, best, budget())
    assert proof is not None
    assert accepted(facts, best, proof)
    assert producer.prove(facts, best + 1, budget()) is None
    assert not accepted(facts, best + 1, proof)
    return facts, proof


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", PROBLEM.objectives)
def test_larger_optima_are_proven(objective):
    for seed in (0, 15):  # where the writer takes no seconds
        instance = PROBLEM.retarget(LIBRARY.generate("small", seed), objective)
        found = label_setting.run(instance, budget())
        assert found.claimed == found.bound
        proven(instance, found.claimed)
