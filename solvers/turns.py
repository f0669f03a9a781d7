"""No engine's word is the last one: where one contradicts itself, the next is asked, and the result says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mapgap.core import DISTRUSTED, MapgapError, SolveResult, Status, Stop
from mapgap.solvers.guard import GuardError


class EngineError(MapgapError):
    """An engine contradicts itself, another engine or the evaluator: at least one of its claims is wrong."""


def in_turn(ask: Callable[[str], SolveResult], engines: Sequence[str]) -> SolveResult:
    """The answer of the first of several engines that does not contradict itself.

    Parameters
    ----------
    ask : callable
        ``ask(engine)``; raises EngineError or GuardError where the engine is not to be believed.

    Returns
    -------
    SolveResult
        UNKNOWN with the reasons where every engine is refused or refuted.
    """
    reasons: list[str] = []
    for engine in engines:
        try:
            result = ask(engine)
        except (EngineError, GuardError) as error:
            repeated = isinstance(error, GuardError) and any(each.endswith(str(error)) for each in reasons)
            if not repeated:  # a guard refuses a model whatever the engine
                reasons.append(f"{engine}: {error}" if engine else str(error))
            continue
        return replace(result, notes={**result.notes, DISTRUSTED: reasons}) if reasons else result
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason="; ".join(reasons), notes={DISTRUSTED: reasons})
