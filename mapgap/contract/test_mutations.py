"""Altered certificates of every problem: none is accepted that claims more than the truth.

``pytest -m fuzz`` alters many more.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mapgap.catalogue import registry
from mapgap.contract.mutations import KINDS, mutated

PROVING = [name for name in registry.problems() if registry.library(name).proving is not None]
QUICK, LONG = 20, 300


def holds(problem: str, seeds: range) -> Counter[str]:
    """No mutation of the seeds is wrong; the counts."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        some, wrong = mutated(problem, seed)
        assert not wrong
        counts.update(some)
    return counts


@pytest.mark.parametrize("problem", PROVING)
def test_no_altered_certificate_claims_more_than_the_truth(problem: str) -> None:
    counts = holds(problem, range(QUICK))
    tried = {kind: counts[f"{kind}/tried"] for kind in KINDS}
    assert sum(tried.values()) >= 50
    assert tried["bound"] == counts["bound/refused"]


@pytest.mark.fuzz
@pytest.mark.parametrize("problem", PROVING)
@pytest.mark.parametrize("block", range(QUICK, LONG, QUICK))
def test_no_altered_certificate_claims_more_in_a_long_run(problem: str, block: int) -> None:
    holds(problem, range(block, block + QUICK))
