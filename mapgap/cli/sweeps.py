"""``mapgap bench``, and what it shares with ``report`` and ``study``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mapgap.cli.output import complain, print_json, say
from mapgap.cli.progress import SweepBar
from mapgap.evidence.contradictions import Contradiction, contradictions
from mapgap.evidence.ledger import update_ledger
from mapgap.execution import sweep
from mapgap.records.files import read_runs


def bench(
    spec: Path,
    *,
    jobs: int,
    resume: bool,
    out: Path | None,
    plugins: tuple[Path, ...],
    dask: str | None,
    update: bool,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Run a sweep file, and enter its runs into the ledger if asked; the exit code."""
    with SweepBar() as display:
        path = sweep.bench(spec, jobs=jobs, resume=resume, out=out, plugins=plugins, dask=dask, tell=display)
    records = read_runs(path)
    contrary = contradictions(records)
    changes = update_ledger(records, ledger, str(path)) if update and not contrary else None
    show_path(path, as_json=as_json, ledger=changes)
    return refuted(contrary)


def show_path(path: Path, *, as_json: bool, ledger: list[str] | None = None) -> None:
    """What was written, and what has changed in the ledger."""
    if as_json:
        print_json({"output": str(path), **({} if ledger is None else {"ledger": ledger})})
    else:
        say("\n".join([str(path), *(ledger or ())]))


def refuted(contrary: Iterable[Contradiction]) -> int:
    """Name every contradiction; 5 if there is one, else 0."""
    words = [str(each) for each in contrary]
    complain(words)
    return 5 if words else 0
