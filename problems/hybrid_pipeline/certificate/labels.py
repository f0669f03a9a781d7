"""Labels of unfinished plans, by which the search compares them: part of the checker, standard library only.

**Objectives.** Every one is ``R (D + A) + G``, with R = 1 and G = 0 without a failure:

- Latency of a round: by the package's docstring D is the largest aligned step, ``M E_i`` and all E in front of it, and
  A the largest excess of an AllReduce, at least 0 as the first step has a ``Ta >= 0``.
- Latency of a flow shop (rule 13: inference, or training that says so): D is ``(M - 1) max E_i``, A the sum of all E.
- Bottleneck (rule 14): D is the largest E, and A is 0.

**Labels.** A stage with ``E = Ef + Eb`` and ``Ta``, put in front of the stages from layer j on, with c ticks over the
cut in each of w ways (two in training, one in inference), turns their D and A (0 if there are none) and the migration G
into

    D' = max(busy E, busy w c + aligned E, aligned (E + w c) + D),
    A' = max(Ta, A - aligned (Eb + c)) + drain (E + w c),
    G' = max(G, migration of the stage)

with ``(busy, aligned, drain)`` = (M, 1, 0), (M - 1, 0, 1) and (1, 0, 0) for the three objectives. E
and Eb include what rule 12 makes part of them: transfers, an AllReduce with every micro-batch (then Ta is 0).

On one medium (rule 18) they also have W, what a micro-batch takes of it: ``W' = W + w c`` and what it takes for the
stage. With the first stage in front, D is ``max(D, busy W + aligned E)``, E of that stage. And AllReduces at the end
take turns from the last stage on, so that ``A' = Ta + max(0, A - Eb - c)`` where A is the end of the last of them,
less the end of the suffix's own steps. Elsewhere W is 0.

None of them falls as D, A, G, W grow, nor does the objective. What may be put in front, and at what cost, depends on
the cut, the devices left, K of the next stage (Eq. 3; in inference 1), the worst link from each device left to the
first group behind and, where links are parallel, its number of members. Of two labels that agree in these, one that is
no smaller in D, A, G and W is not needed: each plan that it leads to has a counterpart that is no worse.
"""

from __future__ import annotations

from typing import Any

from .links import in_turn

Label = tuple[int, int, int, int]  # D, A, G, W


def keep(labels: list[Label], new: Label) -> None:
    """Add a label unless another one makes it needless, and drop those that it makes needless."""
    if not any(d <= new[0] and a <= new[1] and g <= new[2] and w <= new[3] for d, a, g, w in labels):
        labels[:] = [old for old in labels if any(x < y for x, y in zip(old, new, strict=True))] + [new]


class Objective:
    """The factors of an objective."""

    def __init__(self, instance: dict[str, Any], rules: dict[str, Any], micro_batches: int) -> None:
        full = instance.get("objective", "latency") == "bottleneck"
        training, flow = rules["training"], not rules["training"] or rules["latency"] == "flow_shop"
        self.rounds = 1 if instance["replanning"] is None else int(instance["replanning"]["rounds"])
        self.ways = 2 if training else 1
        self.aligned, self.drain = int(not flow and not full), int(flow and not full)
        self.busy = 1 if full else micro_batches - self.drain
        self.turns = int(in_turn(instance))

    def ahead(self, e: int, eb: int, ta: int, moved: int, c: int, taken: int, label: Label) -> Label:
        """The label with a stage and the cut behind it in front."""
        (d, a, g, w), step = label, self.ways * c
        return (
            max(self.busy * e, self.busy * step + self.aligned * e, self.aligned * (e + step) + d),
            max(ta, a - self.aligned * (eb + c) + self.turns * ta) + self.drain * (e + step),
            max(g, moved),
            self.turns * (w + step + taken),
        )

    def whole(self, e: int, label: Label) -> Label:
        """The label of a plan whose first stage takes E."""
        d, a, g, w = label
        return max(d, self.turns * (self.busy * w + self.aligned * e)), a, g, w

    def value(self, label: Label) -> int:
        """The objective of a plan."""
        d, a, g, _ = label
        return self.rounds * (d + a) + g

    def least(self, label: Label, both: int, forward: int, stages: int) -> int:
        """Of all plans with stages in front, at most so many, whose E and Ef add up to so much: (2) of the search."""
        d, a, g, w = label
        longest = max(d + self.aligned * both, -(-self.busy * both // max(1, stages)), self.busy * w)
        return self.rounds * max(longest + self.drain * (a + both), d + a + self.aligned * forward) + g
