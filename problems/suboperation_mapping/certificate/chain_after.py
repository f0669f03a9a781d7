"""Labels of a chain after moves; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from operator import add

from .chain import Chain
from .chain_costs import Label, Move


def folded(chain: Chain, label: Label) -> Label:
    """A label of the tail as one of what is inside a fused layer."""
    longest, ends = max(label[: len(chain.shares)]), busy(chain, label)
    return (longest, *(max(0, end - longest) for end in ends))


def busy(chain: Chain, label: Label) -> list[int]:
    """When the work of the tail can be done, on each accelerator."""
    k, n = len(chain.shares), len(chain.places)
    return [work and work + since for work, since in zip(label[k : k + n], label[-n:], strict=True)]


def makespan(chain: Chain, label: Label) -> int:
    """What a label proves in the end."""
    k, n = len(chain.shares), len(chain.places)
    if not chain.inner(len(chain.steps)):
        return label[0] + max(label[1:])
    return max(*label[:k], *label[k + n : chain.weighed], *busy(chain, label))


def moved(chain: Chain, label: Label, move: Move) -> Label:
    """The label after a move."""
    _, added, pairs = move
    new = [x if x > 0 else 0 for x in starmap(add, zip(label, added, strict=True))]
    for b, a in pairs:
        j = a - len(chain.places)
        new[j] = min(new[j], label[b])
    return waited(chain, new) if chain.waits else tuple(new)


def waited(chain: Chain, label: Sequence[int]) -> Label:
    """With ``F`` that are no less than what is known otherwise."""
    k, n, new = len(chain.shares), len(chain.places), [*label]
    work, every, own = k, k + n, k + 2 * n  # where these numbers begin; after the last ones come the starts
    soonest = min(label[:k])
    for a in chain.places:
        begun = min(label[a - n], soonest) + label[work + a]
        new[every + a] = max(label[every + a], soonest, begun)
    for f in range(own, chain.weighed):
        new[f] = max(label[f], label[(f - own) // n])  # the time of the share
    return tuple(new)
