"""``mapgap ledger`` and ``mapgap submit``: what is best known, who found it, and what follows from it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from mapgap.cli import flags
from mapgap.cli.flags import argument, option
from mapgap.cli.output import cell, facts, percent, print_json, say, table
from mapgap.cli.progress import Spinner
from mapgap.core import InputError, suggest
from mapgap.evidence import closing
from mapgap.evidence.entry import Entry
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.submit import submit as hand_in


def improved(step: closing.Step) -> str:
    """One line on an entry that follows from another one."""
    return f"{step.instance}: {step.what} {cell(step.before)} -> {cell(step.after)} (from {step.source})"


def show(
    name: Annotated[str, argument("Instance, or NAME@OBJECTIVE")],
    ledger: flags.Ledger = None,
    as_json: flags.Json = False,
) -> None:
    """What is known of one instance, and how it came about."""
    entry = _entry(Ledger.load(ledger), name)
    if as_json:
        print_json({**entry.model_dump(mode="json"), "gap": entry.gap, "word": entry.word, "history": _story(entry)})
        return
    rows: dict[str, Any] = {"instance": f"{entry.instance} ({entry.instance_hash})", "problem": entry.problem}
    for what, found in (("plan", entry.plan), ("bound", entry.bound)):
        if found is not None:
            rows[what] = f"{found.value:,} {entry.unit} ({found.method}, {found.started[:10]})"
    grade = "none" if entry.certificate is None else str(entry.certificate)
    facts(
        {
            **rows,
            "status": entry.word,
            "gap": percent(entry.gap),
            "certificate": grade,
            "checked bound": entry.checked_bound,
        }
    )
    say()
    _table(f"history of {entry.instance}", [entry])


def history(
    pattern: Annotated[str, argument("Instances: a name or a glob")] = "*",
    ledger: flags.Ledger = None,
    as_json: flags.Json = False,
) -> None:
    """Who improved what, of all instances that match."""
    book = Ledger.load(ledger)
    entries = [entry for name, entry in book.entries.items() if fnmatchcase(name, pattern)]
    if not entries:
        raise InputError(f"{pattern}: expected an instance of the ledger{suggest(pattern, book.entries)}")
    if as_json:
        print_json({"instances": {entry.instance: _story(entry) for entry in entries}})
        return
    _table("history", entries)


def close(
    ledger: flags.Ledger = None,
    check: Annotated[bool, option("Change nothing; exit with 5 if something could.", "--check")] = False,
    as_json: flags.Json = False,
) -> int:
    """Pass on what entries say of each other; with ``check``, 5 if something could improve."""
    with Spinner(
        {closing.Comparing: lambda event: event.instance}, None if as_json else {closing.Step: improved}
    ) as display:
        steps = closing.close(ledger, check=check, tell=display)
    if as_json:
        print_json({"steps": [step.to_json() for step in steps], "written": bool(steps) and not check})
    else:
        done = "could improve" if check else "improved"
        say(f"{len({step.instance for step in steps})} entries {done}, in {len(steps)} steps")
    return 5 if check and steps else 0


def rebuild(
    ledger: flags.Ledger = None,
    check: Annotated[bool, option("Change nothing; exit with 5 if a file is behind.", "--check")] = False,
    as_json: flags.Json = False,
) -> int:
    """Make the file and the plans anew from the journal; with ``check``, 5 if one of them is not what it says."""
    book = Ledger.load(ledger)
    behind = [str(path) for path in book.behind()]
    if not check:
        book.save()
    if as_json:
        print_json({"behind": behind, "written": not check})
    else:
        say("\n".join([*behind, f"{len(behind)} files {'are behind' if check else 'made anew'}"]))
    return 5 if check and behind else 0


def submit(
    file: Annotated[Path, argument("Plan, JSON of a run (solve --json), or certificate")],
    by: Annotated[str, option("Who found it.")] = "",
    instance: Annotated[str | None, option("Of the library (default: what the file or its name says).")] = None,
    dry_run: Annotated[bool, option("Check it and write nothing.", "--dry-run")] = False,
    ledger: flags.Ledger = None,
    as_json: flags.Json = False,
) -> None:
    """Enter somebody else's plan or certificate."""
    found = hand_in(file, by=by, instance=instance, ledger=ledger, dry_run=dry_run)
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
