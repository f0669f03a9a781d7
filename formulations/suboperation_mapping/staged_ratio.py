"""The complete CP-SAT model of one ratio with the rows of the stage model beside it.

Alone, the complete model has a weak linear relaxation (orders are disjunctions) and the stage model knows no order.
Together the engine gets both: the stage rows bound what a mapping costs, the intervals what an order of it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mapgap.formulations.suboperation_mapping.cpsat import RatioModel
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import parts
from mapgap.formulations.suboperation_mapping.stage_model import StageModel
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered
from mapgap.solvers.cpsat import ROW_LIMIT
from mapgap.solvers.highs import Terms
from mapgap.solvers.model import Part, row


class StagedRatioModel(RatioModel):
    """All plans of one ratio, with a second, linear description of what their mappings cost.

    The variables and rows of :class:`~mapgap.formulations.suboperation_mapping.cpsat.RatioModel` (stated there):

    (1)  places
    (2)  holders of a layer's FP
    (3)  layers present
    (4)  tensors moved
    (5)  dW moved
    (6)  durations
    (7)  makespan
    (8)  areas                                                                                                (implied)
    (9)  precedence
    (10) no overlap
    (11) DRAM
    (12) weights in the DRAM                                                                                  (implied)
    (13) equal shares                                                                                         (implied)
    (14) shared links                                                                                         (implied)

    and

    (15) the rows of :class:`~mapgap.formulations.suboperation_mapping.stage_model.StageModel` in whole ticks, over the
         same places, starts and makespan; what they call the end of an operation is at most its end here    (implied)

    Every schedule has a point in the stage model (``docs/methods/suboperation_mapping.md``), in which units are 0 or 1
    and times whole ticks. Its ends are those of an operation that receives its tensors at the cheapest rate, hence "at
    most". A row too large for the engine (:data:`~mapgap.solvers.cpsat.ROW_LIMIT`), or with a coefficient that is no
    whole number (the slack of its DRAM row; row (12) says the same), is left out.

    Parameters
    ----------
    phases : PhaseGraph
        Of the instance of ``lowered``.
    lowered, strict, cutoff, symmetry, look
        Of the ratio model.
    without : collection of int
        Rows to leave out, and (15) with any of them: it implies some of the others.
    """

    def __init__(
        self,
        phases: PhaseGraph,
        lowered: Lowered,
        *,
        strict: bool = False,
        cutoff: int | None = None,
        symmetry: bool = True,
        without: Collection[int] = (),
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.stages = StageModel(phases, lowered.ratio, 1.0, sort=symmetry)
        without = {*without, 15} if without else ()
        super().__init__(lowered, strict=strict, cutoff=cutoff, symmetry=symmetry, without=without, look=look)

    @row(15, implied=True)
    def stage_rows(self) -> None:
        """The stage model's rows hold for the same places, starts and makespan."""
        stages, matrix = self.stages, self.stages.matrix
        variables = self._shared()
        largest = self._largest(variables)
        for j in range(matrix.columns):
            if j not in variables:
                variables[j] = self.program.new_int_var(0, largest[j], f"stage[{j}]")
        for operation, j in stages.end.items():
            o = self.lowered.operations.index(operation)
            self.program.add(variables[j] <= self.end[o]).with_name(f"stage end[{o}]")
        for r in range(matrix.rows):
            self.look()
            terms = self._terms(r)
            whole = all(v.is_integer() for _, v in terms)
            if whole and sum(abs(int(v)) * largest[j] for j, v in terms) < ROW_LIMIT:
                total = sum(int(v) * variables[j] for j, v in terms)
                lower, upper = matrix.row_lower[r], matrix.row_upper[r]
                if lower == upper:
                    self.program.add(total == int(lower)).with_name(f"stage[{r}]")
                else:
                    assert lower > -ROW_LIMIT or upper < ROW_LIMIT
                    self.program.add(total >= int(lower) if lower > -ROW_LIMIT else total <= int(upper)).with_name(
                        f"stage[{r}]"
                    )

    def _shared(self) -> dict[int, Any]:
        """The columns of the stage model that are variables of the ratio model."""
        index = {operation: o for o, operation in enumerate(self.lowered.operations)}
        shared: dict[int, Any] = {self.stages.M: self.makespan}
        for operation, columns in self.stages.x.items():
            shared.update((j, self.x[index[operation]][a]) for a, j in enumerate(columns))
        shared.update((j, self.start[index[operation]]) for operation, j in self.stages.start.items())
        return shared

    def _terms(self, r: int) -> Terms:
        matrix = self.stages.matrix
        span = slice(matrix.starts[r], matrix.starts[r + 1])
        return list(zip(matrix.index[span], matrix.value[span], strict=True))

    def _largest(self, shared: dict[int, Any]) -> list[int]:
        """Per column its largest value; a time that is a sum of units is at most the sum of their coefficients."""
        matrix, units = self.stages.matrix, self.stages.columned
        largest = [1 if j in units else self.last for j in range(matrix.columns)]
        for r in range(matrix.rows):
            (j, v), *sum_of = self._terms(r)
            defines = matrix.row_lower[r] == matrix.row_upper[r] == 0.0 and v == 1.0 and all(w < 0.0 for _, w in sum_of)
            if defines and j not in units and j not in shared:
                largest[j] = min(largest[j], sum(int(-w) * largest[i] for i, w in sum_of))
        return largest


def models(instance: Instance) -> list[Part]:
    """One exact model per ratio."""
    phases = PhaseGraph(instance)

    def build(lowered: Lowered, complete: bool = False, without: Collection[int] = ()) -> StagedRatioModel:
        return StagedRatioModel(phases, lowered, strict=True, symmetry=not complete, without=without)

    return parts(instance, build)
