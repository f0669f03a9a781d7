"""Altered certificates of every problem: none is accepted that claims more than the truth.

By night many more are altered.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mapgap.catalogue import registry
from mapgap.contract.mutations import KINDS, mutated
from mapgap.contract.seeds import seeds

PROVING = [name for name in registry.problems() if registry.library(name).proving is not None]
BLOCK = 10  # instances of a test


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", PROVING)
@pytest.mark.parametrize("block", seeds(1, 30))
def test_no_altered_certificate_claims_more_than_the_truth(problem: str, block: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        some, wrong = mutated(problem, seed)
        assert not wrong
        counts.update(some)
    tried = {kind: counts[f"{kind}/tried"] for kind in KINDS}
    assert sum(tried.values()) >= 20
    assert tried["bound"] == counts["bound/refused"]
