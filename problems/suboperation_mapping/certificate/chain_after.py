"""Labels of a chain after moves; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Sequence

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
    new = [max(0, x + y) for x, y in zip(label, added, strict=True)]
    for b, a in pairs:
        j = a - len(chain.places)
        new[j] = min(new[j], label[b])
    return waited(chain, new) if chain.waits else tuple(new)


def waited(chain: Chain, label: Sequence[int]) -> Label:
    """With ``F`` that are no less than what is known otherwise."""
    k, n = len(chain.shares), len(chain.places)
    times, work, every, own = label[:k], label[k : k + n], label[k + n : k + 2 * n], label[k + 2 * n : chain.weighed]
    soonest = min(times)
    begun = (min(since, soonest) + x for x, since in zip(work, label[-n:], strict=True))
    every = [max(x, soonest, y) for x, y in zip(every, begun, strict=True)]
    return (*times, *work, *every, *(max(x, times[j // n]) for j, x in enumerate(own)), *label[-n:])
