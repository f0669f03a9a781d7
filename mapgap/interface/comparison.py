"""Several results side by side: what :func:`mapgap.compare` returns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mapgap.core import InputError, InstanceBase, MapgapError
from mapgap.evidence.contradictions import contradictions
from mapgap.interface.display import percent, table_html, table_text, write_text
from mapgap.interface.results import Result
from mapgap.records.files import packed
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs

if TYPE_CHECKING:
    from pandas import DataFrame


class Comparison(Sequence[Result]):
    """Results of several methods on one or several instances, each with its gap to the best bound of them all.

    Parameters
    ----------
    results : iterable of (RunRecord, InstanceBase)
        In the order they were run.
    references : iterable of RunRecord
        What was known before: the entries of the ledger.
    """

    def __init__(self, results: Iterable[tuple[RunRecord, InstanceBase]], references: Iterable[RunRecord] = ()) -> None:
        self._pairs = tuple(results)
        self._references = tuple(references)
        records = [*(record for record, _ in self._pairs), *self._references]
        known = Runs(records).facts
        found = contradictions(records)
        self.contradictions: tuple[str, ...] = tuple(map(str, found))
        against = {each.claim.instance_hash for each in found}
        told = {key: tuple(str(each) for each in found if each.claim.instance_hash == key) for key in against}
        self._results = tuple(
            Result(record, instance, known[record.instance_hash], told.get(record.instance_hash, ()))
            for record, instance in self._pairs
        )

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @property
    def instances(self) -> tuple[str, ...]:
        """Names of the instances."""
        return tuple(dict.fromkeys(result.instance.name for result in self))

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(dict.fromkeys(result.method for result in self))

    def of(self, method: str) -> tuple[Result, ...]:
        """The results of one method.

        Raises
        ------
        InputError
            It was not run.
        """
        if method not in self.methods:
            raise InputError(f"method: expected one of {', '.join(self.methods)}; found {method!r}")
        return tuple(result for result in self if result.method == method)

    def on(self, instance: str) -> Comparison:
        """The comparison on one of its instances.

        Raises
        ------
        InputError
            It has no instance of that name.
        """
        if instance not in self.instances:
            raise InputError(f"instance: expected one of {', '.join(self.instances)}; found {instance!r}")
        pairs = [pair for pair in self._pairs if pair[1].name == instance]
        hashes = {record.instance_hash for record, _ in pairs}
        return Comparison(pairs, [each for each in self._references if each.instance_hash in hashes])

    def _single(self, what: str) -> None:
        if len(self.instances) != 1:
            raise InputError(f"{what}: expected a comparison on one instance; take .on(NAME) of {len(self.instances)}")

    @property
    def best(self) -> Result | None:
        """The result with the best plan, on one instance; the first one among equals.

        Raises
        ------
        InputError
            There are several instances: use :meth:`on`.
        """
        self._single("best")
        with_plan = [result for result in self if result.objective is not None]
        return min(with_plan, key=lambda result: result.record.sign * (result.objective or 0), default=None)

    @property
    def bound(self) -> int | None:
        """The best bound that any method known here has proven on the one instance.

        Raises
        ------
        InputError
            There are several instances: use :meth:`on`.
        """
        self._single("bound")
        return self[0].best_bound

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per run: what :meth:`to_frame` shows."""
        return [
            {
                "instance": result.instance.name,
                "problem": result.problem,
                "method": result.method,
                "kind": result.record.kind,
                "status": str(result.status),
                "stop": str(result.stop),
                "objective": result.objective,
                "bound": result.bound,
                "unit": result.unit,
                "best_bound": result.best_bound,
                "gap": result.gap,
                "best_plan": result.best_plan,
                "gap_to_best": result.gap_to_best,
                "seconds": result.seconds,
                "peak_mb": result.record.peak_mb,
                "seed": result.record.seed,
                "workers": result.record.workers,
                "time_limit": result.record.time_limit_s,
                "error": result.error,
            }
            for result in self
        ]

    def to_frame(self) -> DataFrame:
        """The runs as a pandas table; a missing objective or bound is ``<NA>`` (integers stay integers).

        Raises
        ------
        MapgapError
            pandas is not installed.
        """
        try:
            import pandas  # an extra
        except ImportError as error:
            raise MapgapError("to_frame() needs pandas: pip install 'mapgap[frames]'") from error
        whole = dict.fromkeys(("objective", "bound", "best_bound", "best_plan"), "Int64")
        shares = dict.fromkeys(("gap", "gap_to_best", "seconds", "peak_mb"), "float64")
        return pandas.DataFrame(self.rows()).astype({**whole, **shares})

    def save(self, path: Path | str) -> Path:
        """Write the runs as a run file, which ``mapgap report`` reads; a file that is there is replaced.

        Raises
        ------
        InputError
            The suffix is not ``.jsonl``, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".jsonl":
            raise InputError(f"{path}: expected a file name in .jsonl")
        written = write_text(path, "".join(json.dumps(record.to_json()) + "\n" for record, _ in self._pairs))
        packed(path).unlink(missing_ok=True)
        return written

    def _cells(self) -> tuple[list[str], list[list[Any]]]:
        """Headings and cells of the table for people."""
        several = len(self.instances) > 1
        columns = [*(["instance"] if several else []), "method", "kind", "status", "objective", "bound", "gap"]
        cells = [
            [
                *([result.instance.name] if several else []),
                result.method,
                result.record.kind,
                f"{result.status} (failed)" if result.error else str(result.status),
                result.objective,
                result.bound,
                percent(result.gap),
                percent(result.gap_to_best),
                None if result.seconds is None else f"{result.seconds:.3f}",
            ]
            for result in self
        ]
        return [*columns, "to best plan", "time (s)"], cells

    def _title(self) -> str:
        units = ", ".join(dict.fromkeys(result.unit for result in self))
        where = self.instances[0] if len(self.instances) == 1 else f"{len(self.instances)} instances"
        return f"{where}, objective in {units}" if units else where

    def __repr__(self) -> str:
        columns, cells = self._cells()
        wrong = [f"CONTRADICTION: {text}" for text in self.contradictions]
        return "\n".join([*wrong, self._title(), *table_text(columns, cells)])

    def _repr_html_(self) -> str:
        columns, cells = self._cells()
        best = [result.objective is not None and result.objective == result.best_plan for result in self]
        return table_html(columns, cells, self._title(), self.contradictions, best)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or the stop button of a notebook.

    Attributes
    ----------
    result : Result or Comparison
        What was found until then, the incumbent of the run that was stopped included. In a notebook, where nothing
        caught the exception, it is ``sys.last_value.result``.
    """

    def __init__(self, result: Result | Comparison) -> None:
        super().__init__(f"what was found is in .result (sys.last_value.result where nobody caught this):\n{result!r}")
        self.result = result
