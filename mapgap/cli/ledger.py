"""``mapgap ledger`` and ``mapgap submit``: what is best known, who found it, and what follows from it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mapgap.cli.output import cell, facts, percent, print_json, say, table
from mapgap.cli.progress import Spinner
from mapgap.core import InputError, suggest
from mapgap.evidence import closing
from mapgap.evidence.entry import Entry
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.submit import submit as hand_in
from mapgap.execution.progress import Event


class CloseLines(Spinner):
    """A line per improvement on standard output (unless that is for machines), the instance in motion."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self.quiet = quiet

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, closing.Comparing):
            self.spin(event.instance)
        elif isinstance(event, closing.Step) and not self.quiet:
            say(f"{event.instance}: {event.what} {cell(event.before)} -> {cell(event.after)} (from {event.source})")


def show(name: str, *, path: Path | None, as_json: bool) -> None:
    """What is known of one instance, and how it came about."""
    entry = _entry(Ledger.load(path), name)
    if as_json:
        print_json({**entry.model_dump(mode="json"), "gap": entry.gap, "history": _story(entry)})
        return
    rows: dict[str, Any] = {"instance": f"{entry.instance} ({entry.instance_hash})", "problem": entry.problem}
    for what, found in (("plan", entry.plan), ("bound", entry.bound)):
        if found is not None:
            rows[what] = f"{found.value:,} {entry.unit} ({found.method}, {found.started[:10]})"
    grade = "none" if entry.certificate is None else str(entry.certificate)
    facts({**rows, "gap": percent(entry.gap), "certificate": grade, "checked bound": entry.checked_bound})
    say()
    _table(f"history of {entry.instance}", [entry])


def history(pattern: str, *, path: Path | None, as_json: bool) -> None:
    """Who improved what, of all instances that match."""
    book = Ledger.load(path)
    entries = [entry for name, entry in book.entries.items() if fnmatchcase(name, pattern)]
    if not entries:
        raise InputError(f"{pattern}: expected an instance of the ledger{suggest(pattern, book.entries)}")
    if as_json:
        print_json({"instances": {entry.instance: _story(entry) for entry in entries}})
        return
    _table("history", entries)


def close(*, path: Path | None, check: bool, as_json: bool) -> int:
    """Pass on what entries say of each other; with ``check``, 5 if something could improve."""
    with CloseLines(quiet=as_json) as display:
        steps = closing.close(path, check=check, tell=display)
    if as_json:
        print_json({"steps": [step.to_json() for step in steps], "written": bool(steps) and not check})
    else:
        done = "could improve" if check else "improved"
        say(f"{len({step.instance for step in steps})} entries {done}, in {len(steps)} steps")
    return 5 if check and steps else 0


def submit(file: Path, *, dry_run: bool, as_json: bool, **request: Any) -> None:
    """Enter somebody else's plan or certificate; ``request`` as for :func:`mapgap.evidence.submit.submit`."""
    found = hand_in(file, dry_run=dry_run, **request)
    if as_json:
        print_json({**vars(found), "written": not dry_run})
        return
    say("\n".join(found.changes))
    if dry_run:
        say("holds; nothing was written")


def _entry(book: Ledger, name: str) -> Entry:
    if name not in book.entries:
        raise InputError(f"{name}: expected an instance of the ledger{suggest(name, book.entries)}")
    return book.entries[name]


def _story(entry: Entry) -> list[dict[str, Any]]:
    return [step.model_dump(mode="json") for step in entry.story()]


def _table(title: str, entries: list[Entry]) -> None:
    rows = [
        [entry.instance, step.date, step.what, step.value, step.by, step.source, step.revision or step.version]
        for entry in entries
        for step in entry.story()
    ]
    columns = ["instance", "date", "what", "value", "by", "file", "revision"]
    table(title, columns, rows, right=("value",))
