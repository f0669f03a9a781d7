"""Bases of instances and plans: typed, immutable, with a content hash."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mapgap.core.errors import Finding

#: Sums of all durations (and of all memory demands) of an instance stay below this, so that every row of a
#: model stays below 2^31 in absolute activity. ``ortools`` 9.15 was measured to return wrong "OPTIMAL" answers
#: beyond it (google/or-tools issue 5293).
ACTIVITY_LIMIT = 2**30


#: Largest integer of an instance: a floating-point number holds it exactly, and a thousand of them fit into 64 bits.
LARGEST = 2**53 - 1
#: Of a compact instance: samples of a batch, and devices, for which tables are made before anything can be checked.
MOST_SAMPLES, MOST_DEVICES = 1024, 64
#: Sums and products stay below this where methods form them in 64 bits.
SUM_LIMIT = 2**62


BACKWARD_ASSUMED = "backward_assumed"
ASSUMED = {BACKWARD_ASSUMED: "backward times were not measured: they are multiples of the forward times (see source)"}
"""Tags that say of an instance what was assumed of its data, with the words for every output."""


def latency_findings(late: tuple[tuple[int, ...], ...], n: int) -> list[Finding]:
    """What is wrong with a field ``latency_ns``, nanoseconds from every one of ``n`` boards to every other."""
    if not late:
        return []
    if len(late) != n or any(len(row) != n for row in late):
        found = f"found rows of {[len(row) for row in late]}"
        return [Finding(f"expected {n} rows of {n} entries, one per board; {found}", ("latency_ns",))]
    return [
        Finding(f"expected 0 to {LARGEST} nanoseconds, found {ns}", ("latency_ns", i, j))
        for i, row in enumerate(late)
        for j, ns in enumerate(row)
        if not 0 <= ns <= LARGEST
    ]


class Frozen(BaseModel):
    """Base of every instance and plan: immutable, typed strictly, unknown keys refused, JSON round-trip."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, populate_by_name=True, defer_build=True, allow_inf_nan=False
    )

    def to_json(self) -> dict[str, Any]:
        """Return the value as plain JSON data (tuples as lists)."""
        data: dict[str, Any] = self.model_dump(mode="json", by_alias=True)
        return data


class InstanceBase(Frozen):
    """What every expanded instance carries, whatever its problem.

    Attributes
    ----------
    problem : str
        Name of the problem, a folder name of the ``problems`` wing.
    name : str
        Human name; not part of the content hash.
    source : str
        Where the data come from and which values are published, derived, measured or assumed;
        not part of the content hash.
    tags : tuple of str
        Free labels for selection in sweeps; not part of the content hash.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    form: Literal["expanded"] = "expanded"
    problem: str
    name: str
    source: str = ""
    tags: tuple[str, ...] = ()

    @cached_property
    def content_hash(self) -> str:
        """First 16 hex digits of the SHA-256 of everything an optimiser can see (name, source, tags excluded)."""
        data = self.to_json()
        for key in ("name", "source", "tags"):
            data.pop(key)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced; what was derived from the old fields is forgotten."""
        copied = super().model_copy(update=update, deep=deep)
        for name in vars(copied).keys() - type(self).model_fields.keys():
            del vars(copied)[name]
        return copied

    def restricted(self, known: Collection[str] = ()) -> tuple[InstanceBase, Callable[[Any], Any]] | None:
        """For methods that do not know all that this instance says, of what some know these fields: a simpler one, and
        what its results say of this."""
        return None

    def coarser(self, factor: int) -> Self | None:
        """The instance in ticks so many times as long, times rounded up, as its source then says; not validated.
        ``None``: the problem does not offer it."""
        return None

    @property
    def assumed(self) -> list[str]:
        """What was assumed and not measured, in words; from the tags of :data:`ASSUMED`."""
        return [words for tag, words in ASSUMED.items() if tag in self.tags]

    def changed(self, **changes: Any) -> Self:
        """The instance with other values of some fields, validated as a whole.

        Raises
        ------
        pydantic.ValidationError
        """
        return type(self).model_validate(self.model_copy(update=changes).model_dump())

    def if_valid(self, **changes: Any) -> Iterator[Self]:
        """The changed instance, if it is one; else nothing."""
        with contextlib.suppress(ValidationError):
            yield self.changed(**changes)


class CompactBase(Frozen):
    """What every compact instance file carries; it names library data and parameters and expands to an instance."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    form: Literal["compact"] = "compact"
    problem: str
    name: str
    source: str = ""
    tags: tuple[str, ...] = ()


class PlanBase(Frozen):
    """Decisions only; never a cached objective."""


@dataclass(frozen=True)
class Case:
    """One side of a case split, as an instance of its own."""

    label: str
    instance: InstanceBase
