"""Methods that misbehave, one way each; loaded with ``--plugin`` by the tests of the harness."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapgap.core import Budget, Method, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Instance, Plan, operation_name
from mapgap.problems.suboperation_mapping.evaluate import evaluate, operations


def alone(instance: Instance, accelerator: int = 0) -> Plan:
    """The whole batch on one accelerator, in the order FP, BP by falling layer, WU: always feasible here."""
    n = len(instance.accelerators)
    ratio = (instance.batch, *(0 for _ in range(n - 1)))
    found = operations(instance, ratio)
    backward = [o for o in found if o[0] == "BP"][::-1]
    order = [o for o in found if o[0] == "FP"] + backward + [o for o in found if o[0] == "WU"]
    names = tuple(operation_name(instance, o) for o in order)
    return Plan(ratio=ratio, order=tuple(names if a == accelerator else () for a in range(n)))


def value(instance: Instance, plan: Plan) -> int:
    objective = evaluate(instance, plan).objective
    assert objective is not None
    return objective


def good(instance: Instance, budget: Budget, factor: int = 1, fast: bool = True, name: str = "x") -> SolveResult:
    """The better single accelerator, announced one after the other."""
    plans = sorted((alone(instance, a) for a in (0, 1)), key=lambda p: -value(instance, p))
    for plan in plans:
        budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plans[-1], notes={"factor": factor, "fast": fast, "name": name})


def sleeping(instance: Instance, budget: Budget) -> SolveResult:
    """Announces a plan and a bound, then hangs and ignores its limit."""
    budget.report(plan=alone(instance, 1))
    budget.report(plan=alone(instance, 0), bound=1)
    if "ROGUE_MARK" in os.environ:  # tells a test that the plan has been announced
        Path(os.environ["ROGUE_MARK"]).touch()
    while True:
        time.sleep(0.05)


def silent(instance: Instance, budget: Budget) -> SolveResult:
    """Hangs and announces nothing."""
    while True:
        time.sleep(0.05)


def raising(instance: Instance, budget: Budget) -> SolveResult:
    budget.report(plan=alone(instance))
    raise RuntimeError("the roof is on fire")


def exiting(instance: Instance, budget: Budget) -> SolveResult:
    budget.report(plan=alone(instance))
    os._exit(7)


def crashing(instance: Instance, budget: Budget) -> SolveResult:
    os.abort()


def quitting(instance: Instance, budget: Budget) -> SolveResult:
    sys.exit(0)


def babbling(instance: Instance, budget: Budget) -> SolveResult:
    """Prints megabytes of rubbish, some of it looking like messages, to standard output and error."""
    for _ in range(20_000):
        print('{"event": "end", "result": null}' * 3)
        sys.stderr.write("\x00\xff garbage")
    os.write(1, b"\xff\xfe\n")
    return good(instance, budget)


def breeding(instance: Instance, budget: Budget) -> SolveResult:
    """Leaves behind a forked child, and one in a session of its own."""
    marker = os.environ["MAPGAP_TEST_MARKER"]
    command = [sys.executable, "-c", f"import time; time.sleep(600)  # {marker}"]
    subprocess.Popen(command)
    subprocess.Popen(command, start_new_session=True)
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    return good(instance, budget)


def hiding(instance: Instance, budget: Budget) -> SolveResult:
    """Leaves behind a daemon: a grandchild in a session of its own, whose parent has gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(os.environ["ROGUE_MARK"]).write_text(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not Path(os.environ["ROGUE_MARK"]).exists():
        time.sleep(0.01)
    return good(instance, budget)


RUNS: list[int] = []


def counting(instance: Instance, budget: Budget) -> SolveResult:
    """Notes how many runs this process has seen, what random numbers it draws, and which process it came from."""
    RUNS.append(1)
    plan = alone(instance)
    notes = {"runs": len(RUNS), "drawn": random.random(), "pid": os.getpid(), "parent": os.getppid()}
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, notes=notes)


def parricide(instance: Instance, budget: Budget) -> SolveResult:
    """Kills the process it came from, which must not be the harness."""
    os.kill(os.getppid(), signal.SIGKILL)
    return good(instance, budget)


def leaking(instance: Instance, budget: Budget) -> SolveResult:
    budget.report(plan=alone(instance))
    kept = []
    while True:
        kept.append(bytearray(8 * 2**20))
        kept[-1][::4096] = b"x" * len(kept[-1][::4096])
        time.sleep(0.01)


def exhausting(instance: Instance, budget: Budget) -> SolveResult:
    raise MemoryError


def infeasible_plan(instance: Instance, budget: Budget) -> SolveResult:
    """Forgets the last operation."""
    plan = alone(instance)
    return SolveResult(Status.FEASIBLE, Stop.DONE, Plan(ratio=plan.ratio, order=(plan.order[0][:-1], *plan.order[1:])))


def infeasible_report(instance: Instance, budget: Budget) -> SolveResult:
    """Announces a broken plan on the way; the final one is fine."""
    budget.report(plan=Plan(ratio=(1,), order=((),)))
    return good(instance, budget)


def no_plan(instance: Instance, budget: Budget) -> Any:
    return {"status": "OPTIMAL"}


def wrong_claim(instance: Instance, budget: Budget) -> SolveResult:
    plan = alone(instance)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, claimed=value(instance, plan) - 1)


def wrong_bound(instance: Instance, budget: Budget) -> SolveResult:
    plan = alone(instance)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan, bound=value(instance, plan) + 1)


def wrong_optimum(instance: Instance, budget: Budget) -> SolveResult:
    """OPTIMAL with a bound that does not meet the objective."""
    plan = alone(instance)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, bound=value(instance, plan) - 1)


def wrong_infeasible(instance: Instance, budget: Budget) -> SolveResult:
    budget.report(plan=alone(instance))
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="because")


def late_optimum(instance: Instance, budget: Budget) -> SolveResult:
    """Says OPTIMAL although its time ran out."""
    return SolveResult(Status.OPTIMAL, Stop.TIME, alone(instance))


def float_bound(instance: Instance, budget: Budget) -> SolveResult:
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=float("inf"))  # type: ignore[arg-type]


def infeasible(instance: Instance, budget: Budget) -> SolveResult:
    return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="DRAM: nothing fits")


def empty(instance: Instance, budget: Budget) -> SolveResult:
    return SolveResult(Status.UNKNOWN, Stop.TIME)


def optimal(instance: Instance, budget: Budget) -> SolveResult:
    """Pretends that the first accelerator alone is optimal, consistently: nothing here can refute it."""
    plan = alone(instance)
    objective = value(instance, plan)
    return SolveResult(Status.OPTIMAL, Stop.PROVED, plan, bound=objective, claimed=objective, notes={"build_s": 0.5})


def bounding(instance: Instance, budget: Budget) -> SolveResult:
    budget.report(bound=3)
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=5)


def unanswered(instance: Instance, budget: Budget) -> SolveResult:
    """Announces bounds, the best first, and ends on a question without an answer."""
    budget.report(bound=5)
    budget.report(bound=3)
    return SolveResult(Status.UNKNOWN, Stop.TIME)


def _method(run: Callable[..., Any], kind: Any = "baseline", **more: Any) -> Method:
    return Method(f"t_{run.__name__}", "suboperation_mapping", kind, "test", run, summary=run.__doc__ or "", **more)


METHODS = [
    _method(good, options={"factor": 1, "fast": True, "name": "x"}),
    *map(
        _method,
        (
            sleeping,
            silent,
            raising,
            exiting,
            crashing,
            quitting,
            babbling,
            breeding,
            hiding,
            counting,
            parricide,
            leaking,
            exhausting,
            infeasible_plan,
            infeasible_report,
            no_plan,
            wrong_claim,
            wrong_bound,
            wrong_optimum,
            wrong_infeasible,
            late_optimum,
            float_bound,
            infeasible,
            empty,
        ),
    ),
    _method(optimal, "exact"),
    _method(bounding, "bound"),
    _method(unanswered, "bound"),
]
