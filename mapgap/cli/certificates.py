"""``mapgap certify`` and ``verify``: certificates are made, and checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from mapgap.cli import completion, flags
from mapgap.cli.evidence import agreed
from mapgap.cli.flags import argument, option
from mapgap.cli.output import cell, print_json, say
from mapgap.cli.progress import Spinner
from mapgap.core import Budget, InputError
from mapgap.evidence.prove import Checking, Outcome, Searching, prove_all
from mapgap.evidence.verify import Verdict, verify_all
from mapgap.execution.progress import Event


def statement(found: Outcome | Verdict) -> str:
    """``no plan is below 36 in ticks of 1000 ns``."""
    if found.infeasible:
        return "there is no plan"
    return f"no plan is {'below' if found.sense == 'min' else 'above'} {cell(found.bound)} in {found.unit}"


def searched(event: Searching) -> str:
    """What is looked for."""
    if event.best:
        return f"{event.instance}: looking for the best bound that can be proven, up to {cell(event.bound)}"
    what = "that there is no plan" if event.bound is None else f"of {cell(event.bound)}"
    return f"{event.instance}: looking for a proof {what}"


def checking(event: Checking) -> str:
    """What was found, and is followed."""
    return f"{event.found.instance}: checking the proof that {statement(event.found)}"


LOOKING: dict[type[Event], Callable[[Any], str]] = {Searching: searched, Checking: checking}


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


def certify(
    instances: Annotated[list[str], argument("Instances: paths, names, or globs of either", completion.instances)],
    objective: flags.Objective = None,
    bound: Annotated[int | None, option("What to prove (default: the ledger's, or as much as can be).")] = None,
    infeasible: Annotated[bool, option("What to prove: that there is no plan.", "--infeasible")] = False,
    share: Annotated[float, option("So much of an open entry's bound, or nothing.", min=0.01, max=1.0)] = 1.0,
    time_limit: Annotated[float, flags.seconds("Seconds per instance.")] = 60.0,
    agree: Annotated[
        bool, option("No file: solve by exact methods of two engines, and by a case split.", "--agree")
    ] = False,
    workers: Annotated[int, option("With --agree: threads a solver may use.", min=1, max=4096)] = 1,
    seed: Annotated[int, option("With --agree: the only source of randomness.", min=0, max=2**31 - 1)] = 0,
    update_ledger: Annotated[bool, option("Enter what was proven.", "--update-ledger")] = False,
    ledger: flags.Ledger = None,
    output: Annotated[Path | None, flags.output("File or folder (default: beside the ledger's plans).")] = None,
    as_json: flags.Json = False,
) -> int:
    """Make certificates and show what became of them.

    Raises
    ------
    InputError
        Options that exclude each other.
    """
    names = instances if objective is None else [f"{name}@{objective}" for name in instances]
    if agree and (bound is not None or infeasible or output is not None):
        raise InputError("--agree: expected no --bound, --infeasible or -o beside it; it writes no file")
    if bound is not None and infeasible:
        raise InputError("--bound, --infeasible: expected one of them, found both")
    if agree:
        budget = Budget(time_limit, workers=workers, seed=seed)
        return agreed(names, budget, ledger=ledger, update=update_ledger, as_json=as_json)
    with Spinner(LOOKING, None if as_json else {Outcome: proved}) as display:
        found = prove_all(
            names,
            Budget(time_limit),
            bound=bound,
            infeasible=infeasible,
            share=share,
            output=output,
            ledger=ledger,
            update=update_ledger,
            tell=display,
        )
    if as_json:
        told = [each.to_json() for each in found]
        print_json(told[0] if len(told) == 1 else {"instances": told})
    elif len(found) > 1:
        kept, made = (sum(each.file is not None and each.kept is old for each in found) for old in (True, False))
        spent = sum(each.prove_s + each.check_s for each in found)
        say(f"{made} proven, {kept} kept, {len(found) - kept - made} without a proof, in {spent:.1f} s")
    return exit_code(found)


def verify(
    certificates: Annotated[
        list[str] | None, argument("Files, names of instances, or globs of either (default: all of the library)")
    ] = None,
    ledger: flags.Ledger = None,
    expand: Annotated[bool, option("Compare with the library's instances, expanded anew.", "--expand")] = False,
    pure: Annotated[
        bool, option("By the standard library alone, as check.py does: takes many times as long.", "--pure")
    ] = False,
    as_json: flags.Json = False,
) -> int:
    """Check certificates and show what they are worth."""
    began = time.perf_counter()
    with Spinner(results=None if as_json else {Verdict: verified}) as display:
        found = verify_all(certificates or (), ledger=ledger, expand=expand, pure=pure, tell=display)
    held, seconds = sum(each.holds for each in found), time.perf_counter() - began
    if as_json:
        told = [each.to_json() for each in found]
        print_json({"certificates": told, "hold": held, "refused": len(found) - held, "seconds": round(seconds, 3)})
    else:
        optima = sum(each.holds and each.grade == "optimum" for each in found)
        say(f"{held} of {len(found)} hold, {optima} of them optima; {seconds:.1f} s")
    return 0 if held == len(found) else 5
