"""``mapgap prove`` and ``verify``: certificates of bounds are made, and checked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mapgap.cli.output import cell, print_json, say
from mapgap.cli.progress import Spinner
from mapgap.core import Budget
from mapgap.evidence.prove import Outcome, Searching, prove_all
from mapgap.evidence.verify import Verdict, verify_all
from mapgap.execution.progress import Event


class Lines(Spinner):
    """A line per certificate on standard output (unless that is for machines), what is searched for in motion."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self.quiet = quiet

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, Searching):
            self.spin(f"{event.instance}: looking for a proof of {cell(event.bound)}")
        elif isinstance(event, Outcome):
            self.tell(proved(event))
        elif isinstance(event, Verdict):
            self.tell(verified(event))

    def tell(self, line: str) -> None:
        if not self.quiet:
            say(line)


def statement(found: Outcome | Verdict) -> str:
    """``no plan is below 36 in ticks of 1000 ns``."""
    return f"no plan is {'below' if found.sense == 'min' else 'above'} {cell(found.bound)} in {found.unit}"


def proved(found: Outcome) -> str:
    """One line on a certificate that was made, or was not."""
    if found.file is None:
        return f"none     {found.instance}: {found.reason}"
    if found.kept:
        return f"kept     {found.instance}: {statement(found)} (checked in {found.check_s:.2f} s)"
    took = f"{found.prove_s:.2f} s, checked in {found.check_s:.2f} s, {found.size:,} bytes"
    return f"proven   {found.instance}: {statement(found)} ({took})"


def verified(found: Verdict) -> str:
    """One line on a certificate that was checked."""
    name = found.instance or str(found.file)
    if not found.holds:
        return f"REFUSED  {name}: {found.reason}" + ("" if name == str(found.file) else f" ({found.file})")
    attained = {"optimum": ", and the ledger's plan attains it", "bound": "", "unknown": ""}[found.grade]
    return f"ok       {name}: {statement(found)}{attained} ({found.seconds:.2f} s)"


def exit_code(found: Sequence[Outcome]) -> int:
    """0 all are there, 4 a proof was not found, 5 the checker refuses one."""
    return 5 if any(each.refused for each in found) else 0 if all(each.file for each in found) else 4


def prove(patterns: Sequence[str], budget: Budget, *, as_json: bool, **request: Any) -> int:
    """Make certificates and show what became of them; ``request`` as for :func:`mapgap.evidence.prove.prove_all`."""
    with Lines(quiet=as_json) as display:
        found = prove_all(patterns, budget, tell=display, **request)
    if as_json:
        told = [each.to_json() for each in found]
        print_json(told[0] if len(told) == 1 else {"instances": told})
    elif len(found) > 1:
        kept, made = (sum(each.file is not None and each.kept is old for each in found) for old in (True, False))
        spent = sum(each.prove_s + each.check_s for each in found)
        say(f"{made} proven, {kept} kept, {len(found) - kept - made} without a proof, in {spent:.1f} s")
    return exit_code(found)


def verify(patterns: Sequence[str], *, ledger: Path | None, expand: bool, as_json: bool) -> int:
    """Check certificates and show what they are worth; the exit code."""
    began = time.perf_counter()
    with Lines(quiet=as_json) as display:
        found = verify_all(patterns, ledger=ledger, expand=expand, tell=display)
    held, seconds = sum(each.holds for each in found), time.perf_counter() - began
    if as_json:
        told = [each.to_json() for each in found]
        print_json({"certificates": told, "hold": held, "refused": len(found) - held, "seconds": round(seconds, 3)})
    else:
        optima = sum(each.holds and each.grade == "optimum" for each in found)
        say(f"{held} of {len(found)} hold, {optima} of them optima; {seconds:.1f} s")
    return 0 if held == len(found) else 5
