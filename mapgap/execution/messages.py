"""What a run may tell, as models: whoever wrote the line, it is believed only so far as it is one of these.

A line is JSON with the key ``event``: ``start`` when the clock starts, ``compiling`` while kernels are compiled,
``report`` for a better plan or bound, ``end`` for the last word. Used by mapgap.execution.limits and
mapgap.execution.watch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError

from mapgap.core import Status, Stop, short

#: Bytes of one line, and of all lines of one run.
LINE_LIMIT, TOTAL_LIMIT = 32 * 2**20, 2**30
#: Characters of an error or a reason that are kept.
TEXT_LIMIT = 20_000

Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Seconds = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=TEXT_LIMIT)]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Start(_Message):
    """The clock starts."""

    event: Literal["start"]


class Compiling(_Message):
    """Kernels are compiled; ``obstacle`` says why no cache keeps them, if none does."""

    event: Literal["compiling"]
    obstacle: str = ""


class Report(_Message):
    """A better plan or a better bound, ``time_s`` after the start; ``by`` which part of the method."""

    event: Literal["report"]
    time_s: Seconds
    plan: dict[str, Any] | None
    bound: Integer | None
    by: Annotated[str, Field(max_length=100)] = ""


class Result(_Message):
    """A :class:`~mapgap.core.SolveResult` as JSON."""

    status: Status
    stop: Stop
    plan: dict[str, Any] | None
    bound: Integer | None
    claimed: Integer | None
    enumerated: bool
    reason: Text
    notes: dict[str, Any]


class End(_Message):
    """The last word: a result, an error, or that the run was interrupted."""

    event: Literal["end"]
    wall_s: Seconds | None = None
    peak_mb: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    result: Result | None = None
    error: Text | None = None
    memory: bool = False
    interrupted: bool = False


Message = Start | Compiling | Report | End
_ADAPTER: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Discriminator("event")])


class BadMessage(Exception):
    """A line that is no message, or one that cannot be true; the text says why."""


def decoded(line: bytes) -> Message:
    """The message of a line.

    Raises
    ------
    BadMessage
    """
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadMessage(short(f"{where}: {first['msg']}" if where else str(first["msg"]), 400)) from error


def encoded(data: Mapping[str, Any]) -> bytes:
    """Plain data as one line, whatever characters it holds."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def of(data: Mapping[str, Any]) -> Message:
    """The message of plain data, which has not gone through a pipe.

    Raises
    ------
    BadMessage
    """
    return decoded(encoded(data))
