"""``mapgap audit``."""

from __future__ import annotations

from pathlib import Path

from mapgap.cli import output
from mapgap.cli.progress import Spinner
from mapgap.execution.progress import Event
from mapgap.reporting.committed import Audited, Checkout


class AuditLines(Spinner):
    """A line per file, and below it what does not hold there."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self.quiet = quiet

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, Audited) and not self.quiet:
            output.say(f"{'ok' if not event.faults else 'WRONG':9}{event.place}")
            for fault in event.faults:
                output.say(f"         {fault.kind}: {fault}")


def audit(root: Path, *, fill: bool, as_json: bool) -> int:
    """Audit a checkout; the exit code: 5 if anything does not hold."""
    checkout = Checkout(root)
    with AuditLines(quiet=as_json) as lines:
        for page in checkout.fill() if fill else ():
            lines.line(f"figures of {page} written")
        found = checkout.audit(tell=lines)
    if as_json:
        output.print_json({"faults": [fault.to_json() for fault in found]})
    else:
        output.say("nothing is wrong" if not found else f"{len(found)} claim(s) do not hold")
    return 5 if found else 0
