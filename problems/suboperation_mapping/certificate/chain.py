"""The makespan of one ratio along a chain of layers: part of the writer, standard library only.

Take a path of the network, from an input to an output, of most layers, and of the largest numbers among these; leave
out all other layers but for what is said below. Look at a schedule from the inside out: first at the layers after the
last fused one (the *tail*), then, layer by layer towards the input, at what encloses them. A *label*
``(D, E[0], E[1], …)`` bounds what is inside:

- between the start of FP and the end of BP of its outermost layer lies a time of ``D`` at least;
- after that, so much work is left on accelerator ``a`` that it cannot be done in less than ``E[a]``.

A fused operation separates what comes before it from what comes after it. So ``D`` grows by the time of FP, which is
that of the accelerator with most to do in it, and by that of BP; ``E[a]`` grows by the work of BP and WU on ``a``,
which cannot start before, and falls by the time of BP, but not below 0. No makespan is below ``D + max E``. In the tail
shares do not wait for each other: a label has a ``D`` for each, then the work on each accelerator, last the time before
which nothing starts there, counted for every operation from the start of FP of its own share. Nothing at all starts at
2^60, and later as this is passed on outwards; so no makespan may be that large.

Where nothing is fused, all is tail, and shares wait for each other. Then a label has times as well, from the start of
the first FP, before which an accelerator has not done some of its work: ``F[a]`` of any share, ``F[b, a]`` of BP and WU
of one. Outwards both grow by the time of FP, that of the share, or the least one; and by the work of BP and WU on the
accelerator, all or that of the share. This cannot start before the ``D`` of the share, so ``F[b, a]`` is no less than
that, and ``F[a]`` no less than the least one. Nor is ``F[a]`` less than all work there after its start, or after the
least ``D`` if that is sooner: then work that is added outwards comes after this time, too.

A step decides a place or some, which are part of the *state* as long as a cost depends on them. Costs are those of
:mod:`~.graph`, with all transfers along the path; others are left out but for those of :mod:`~.chain_shortcuts`. A
layer beside the path whose output the path reads has the work of its BP and WU, wherever these lie, as they follow the
BP of the layer that reads it.

Of a box of ratios, each share has the samples that it has at least, takes what it takes at least, and is left out if
it may have none: what a schedule of one of these ratios does in some time can be done in it with less to do. Others are
left out but for the work of their BP and WU, outside of the tail, wherever these lie: like those of a layer beside the
path they follow the BP of the layer that reads theirs.

Shares of the same limits can change places in a layer between fused ones, which wait for all of them, or in the whole
tail. So only schedules count in which their places of FP rise, and those of BP where places of FP are the same.

Nor has the first fused FP to be tried on more than one of equal accelerators (:mod:`~.alike`): in every schedule they
can be exchanged, in all places, so that it lies on the first one of them.

In a chain that is *counted* a state says how many of each run of alike shares lie on each accelerator, not which: that
is enough but for what a share reads of itself. It reads nothing over a link if its run is there as well, once for each
share that was, else what comes over the quickest link. And all equal accelerators have names only that follow from what
they have. So a cost is what it is in any schedule with these numbers, or less. In one that is *headed* the first ones
of equal accelerators keep their names, and the first fused FP lies on one of these.

:mod:`~.chain_labels` says what proves a bound.
"""

from __future__ import annotations

from typing import Any

from .chain_costs import NEVER, Label
from .chain_states import States
from .lengths import limits


class Chain(States):
    """Labels of a ratio, and what moves do to them."""

    def start(self) -> Label:
        """The label of nothing, in the tail."""
        return (*(0 for _ in range(self.weighed)), *(NEVER for _ in self.places))


def along(instance: dict[str, Any], name: str) -> Chain:
    """The chain of a ratio, or of all ratios of a box, without the shares that may have no samples."""
    groups, _, kind = name.partition(" ")
    shares = limits(groups)
    here = [(low, high) for low, high, out in shares if low and not out]
    out = [(low, high) for low, high, out in shares if out]
    return Chain(instance, [low for low, _ in here], " " + kind, [high for _, high in here], out)
