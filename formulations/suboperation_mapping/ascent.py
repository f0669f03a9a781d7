"""The bound of one ratio along a chain of layers, and what proves it, raised step by step.

With weights alone a ratio is bounded by a shortest path. The best ones are the dual of a linear program with a column
for each path; Kelley's cutting planes find them, a path at a time. That bound mixes paths: half of the network here and
half there. With shortcuts, where states are few enough, or with some accelerators told apart where shares are counted,
the same is done again from the weights that are known. A tree of choices of moves divides the mixture
(:mod:`~.chain_tree`), and labels, which do not mix, end its leaves: a decision diagram (Bergman, Cire, van Hoeve,
Hooker, "Decision Diagrams for Optimization", 2016, ch. 4) of what weights do not drop. All of it is in whole numbers
(:mod:`~.chain_diagram`), and :mod:`mapgap.problems.suboperation_mapping.certificate.chain_labels` checks it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.chain_diagram import Diagram, Weighed
from mapgap.formulations.suboperation_mapping.chain_size import Devices, headed_devices, moves
from mapgap.formulations.suboperation_mapping.chain_tree import Divisions, Tree, weighed_proof
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.formulations.suboperation_mapping.programs import flat
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_shares import CHAIN, COUNTED, HEADED, SHORTCUTS, Limits
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT


def chained(instance: dict[str, Any]) -> bool:
    """Whether ratios of an expanded instance can be bounded along a chain."""
    try:
        Chain(instance, [instance["batch"]])
    except ValueError:
        return False
    return True


Known = defaultdict[Any, Divisions]  #: by what chains with the same moves have in common


def shares_of(ratio: Sequence[int]) -> tuple[int, ...]:
    """A ratio without those that have no samples."""
    return tuple(share for share in ratio if share)


def leaves(tree: Sequence[Any]) -> int:
    """How many the tree of a proof has."""
    return sum(isinstance(part, dict) for part in tree)


class Ascent:
    """Raises the bound of one ratio, a step at a time: by weights, the same with shortcuts, then by a tree of choices.

    Or of all ratios with shares between those of ``ratio`` and of ``most``, and others of the limits ``out``.

    Attributes
    ----------
    bound : int
        Proven by ``proof``.
    kind : str
        Of the chain that the proof is about, as a certificate names it.
    goal : int
        A bound that is enough; may be lowered.
    named : bool
        All shares and accelerators are told apart by choices, as plans along the chain need it.
    weights : bool
        Weights are all that is asked for.
    root : Weighed or None
        The best weights.
    weighed : str
        The kind of chain that they are of.
    older : list
        The tree of a certificate, which goes on if a new one of as many leaves proves less.
    known : dict
        Divisions of the trees of an instance, with which new trees begin.
    """

    def __init__(
        self,
        instance: dict[str, Any],
        ratio: Sequence[int],
        goal: int,
        params: Params,
        most: Sequence[int] = (),
        out: Limits = (),
        named: bool = False,
        known: Known | None = None,
    ) -> None:
        self.instance, self.ratio, self.goal, self.params = instance, tuple(ratio), goal, params
        self.most, self.out, self.named = tuple(most) or self.ratio, out, named
        self.known: Known = defaultdict(dict) if known is None else known
        self.bound, self.kind, self.weighed = 0, CHAIN, ""
        self.proof: Any = None
        self.weights = False
        self.root: Weighed | None = None
        self.tree: Tree | None = None
        self.older: list[Any] = []

    @cached_property
    def runs(self) -> tuple[int, ...]:
        """How many shares are alike, by run."""
        return tuple(len(list(those)) for _, those in groupby(zip(self.ratio, self.most, strict=True)))

    @property
    def next_kind(self) -> str:
        """The kind of chain for what comes next: weights, or a tree; empty if it has too many moves for a tree."""
        devices, params, runs = len(self.instance["accelerators"]), self.params, self.runs
        alone = moves(runs, Devices(devices))  # with all told apart
        # What is remembered of a shortcut is two places more in a state, beside those of the shares.
        if self.root is not None and alone * devices**2 <= params.remembered:
            return SHORTCUTS
        if devices <= params.told_apart or flat(self.instance):
            return CHAIN
        if self.root is None:
            return COUNTED
        if self.named and alone <= params.widest_alone:
            return CHAIN
        # Choices have to tell some accelerators apart; weights that have to be equal gain nothing by them.
        return HEADED if moves(runs, headed_devices(self.instance)) <= params.widest_alone else ""

    def diagram(self) -> Diagram:
        """Of what comes next; made anew for each piece of work, as those of all ratios take gigabytes."""
        return Diagram(Chain(self.instance, self.ratio, self.next_kind, self.most, self.out))

    @property
    def over(self) -> bool:
        """Whether nothing is left to try."""
        weighed = self.root is not None and (self.weights or not self.next_kind)
        grown = self.tree is not None and self.tree.over and not self.older
        return self.bound >= self.goal or weighed or grown

    def climb(self, budget: Budget, diagram: Diagram | None = None) -> bool:
        """Once more, with what is next; ``False`` if there is nothing."""
        if self.over:
            return False
        diagram, first = diagram or self.diagram(), self.root is None
        root = self.weigh(diagram)
        if not first:
            self.by_choices(diagram, root, budget)
        return True

    def weigh(self, diagram: Diagram) -> Weighed:
        """The best weights of a diagram, those of a chain with shortcuts from those of one without."""
        chain = diagram.chain
        kind = SHORTCUTS if chain.opened else HEADED if chain.headed else COUNTED if chain.counted else CHAIN
        if self.root is None or self.weighed != kind:
            point = None if self.root is None else self.root.point
            self.root, self.weighed = diagram.weights(self.goal, 2 * self.params.rounds, (), point), kind
            plain = min(self.goal, self.root.value // UNIT)
            if self.bound < plain or not self.proof:
                self.bound, self.kind, self.proof = plain, kind, weighed_proof(self.root.weighing.runs, diagram.last)
        return self.root

    def by_choices(self, diagram: Diagram, root: Weighed, budget: Budget) -> None:
        """Until the bound is a step better, or there may be twice as many leaves."""
        if self.tree is None:
            self.tree = Tree(root, self.goal, self.params, self.known[self.weighed, self.runs, len(self.out)])
            same = self.kind != COUNTED and (self.kind == HEADED) == (self.weighed == HEADED)  # moves
            if isinstance(self.proof, list) and same:  # of a certificate
                self.older = self.proof
        if self.older and (len(self.tree.leaves) >= leaves(self.older) or self.tree.over or flat(self.instance)):
            if self.tree.bound <= self.bound:
                self.tree = Tree(root, self.goal, self.params, self.tree.divisions)
                self.tree.regrow(diagram, root, self.older, self.bound)
            self.older = []
        tree = self.tree
        while tree.bound < self.goal and not budget.exhausted and tree.follow(diagram):
            pass
        target = min(self.goal, self.bound + 1 + int(self.params.apart * self.goal))
        for _ in range(len(tree.leaves)):
            if tree.bound >= target or budget.exhausted or not tree.climb(diagram, target, budget):
                break
        if (bound := min(self.goal, tree.bound)) > self.bound:
            self.bound, self.kind, self.proof = bound, self.weighed, tree.proof(diagram.last)
