"""The cluster file: boards by name, with memory, links, and a profile or a speed.

schema: 1
form: cluster
boards:
  nx: {board: NX, profile: ort_nx.json}
  mine: {memory_gb: 4, gflops: 200, memory_gbps: 25.6, launch_us: 40, count: 2}
link_mbps: 100
links: [{between: [nx, mine], mbps: 1000}]
settings: {mini_batch: 32, micro_batch: 8}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mapgap.catalogue.files import load_model
from mapgap.core import Finding, Frozen, InputError, suggest

LARGEST = 1e9


class Board(Frozen):
    """One entry of ``boards``.

    Attributes
    ----------
    board : str, optional
        A board of the library, whose memory and speed are taken where they are not given here.
    kind : str, optional
        Kind of device in the imported file or in the profile; needed where that has several.
    profile : str, optional
        File with the board's times, beside the cluster file or in the working folder.
    count : int
        How many boards; several are numbered.
    memory_gb : float, optional
        Memory that the process may use, in 10^9 bytes.
    gflops, memory_gbps, launch_us : float, optional
        Peak speed in 10^9 operations per second, memory bandwidth in 10^9 bytes per second, and the cost of starting an
        operator in microseconds: for a board without a profile.
    slower : float
        Times of the profile are multiplied by it.
    address : str, optional
        HOST:PORT where it listens, for ``mapgap run``.
    facts : mapping
        What else a problem asks for, by name.
    """

    board: str | None = None
    kind: str | None = None
    profile: str | None = None
    count: int = Field(default=1, ge=1, le=10_000)
    memory_gb: float | None = Field(default=None, gt=0, le=LARGEST)
    gflops: float | None = Field(default=None, gt=0, le=LARGEST)
    memory_gbps: float | None = Field(default=None, gt=0, le=LARGEST)
    launch_us: float | None = Field(default=None, ge=0, le=LARGEST)
    slower: float = Field(default=1.0, gt=0, le=1e6)
    address: str | None = None
    facts: dict[str, Any] = Field(default_factory=dict)


class Link(Frozen):
    """The rate between two entries of ``boards``, in 10^6 bits per second, and what a message takes beside its bytes,
    in microseconds (that of the cluster where nothing is said)."""

    between: tuple[str, str]
    mbps: float = Field(gt=0, le=LARGEST)
    latency_us: float | None = Field(default=None, ge=0, le=LARGEST)


class Cluster(Frozen):
    """A cluster file.

    Attributes
    ----------
    boards : mapping
    link_mbps : float, optional
        Between every two boards for which ``links`` says nothing.
    latency_us : float
        Of a message between every two boards for which ``links`` says nothing.
    links : tuple of Link
    settings : mapping
        Values that a problem or a reader asks for; ``--set`` goes before them.
    """

    schema_version: Literal[1] = Field(alias="schema")
    form: Literal["cluster"]
    boards: dict[str, Board] = Field(min_length=1)
    link_mbps: float | None = Field(default=None, gt=0, le=LARGEST)
    latency_us: float = Field(default=0.0, ge=0, le=LARGEST)
    links: tuple[Link, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Cluster:
        found = []
        for k, link in enumerate(self.links):
            for j, name in enumerate(link.between):
                if name not in self.boards:
                    text = f"expected a board, found {name!r}{suggest(name, self.boards)}"
                    found.append(Finding(text, ("links", k, "between", j)))
        if found:
            raise InputError(found)
        return self

    def mbps(self, first: str, second: str) -> float | None:
        """Rate between two entries; ``None`` where nobody says."""
        for link in self.links:
            if set(link.between) == {first, second}:
                return link.mbps
        return self.link_mbps

    def late_ns(self, first: str, second: str) -> int:
        """Nanoseconds of a message between two entries beside its bytes."""
        told = [link.latency_us for link in self.links if set(link.between) == {first, second}]
        return round(1000 * (self.latency_us if not told or told[0] is None else told[0]))


def load(path: Path) -> Cluster:
    """The cluster of a file; paths of profiles are made relative to the working folder.

    Raises
    ------
    InputError
    """
    cluster = load_model(path, Cluster)
    boards = {}
    for name, board in cluster.boards.items():
        if board.profile is not None:
            file, mark, kind = board.profile.partition("#")
            beside = path.parent / file
            board = board.model_copy(update={"profile": f"{beside if beside.exists() else file}{mark}{kind}"})
        boards[name] = board
    return cluster.model_copy(update={"boards": boards})


def labels(entry: str, board: Board) -> list[str]:
    """Names of the single boards of an entry."""
    return [entry] if board.count == 1 else [f"{entry}{k}" for k in range(1, board.count + 1)]


def equal_boards(count: int, mbps: float | None, memory_gb: float | None) -> Cluster:
    """A cluster of boards on which everything runs as profiled."""
    board = Board(count=count, memory_gb=memory_gb)
    return Cluster(schema=1, form="cluster", boards={"board": board}, link_mbps=mbps)


def with_profiles(cluster: Cluster, profiles: Mapping[str, str]) -> Cluster:
    """The cluster with other profiles for some boards.

    Raises
    ------
    InputError
        A board that the cluster does not have.
    """
    boards = dict(cluster.boards)
    for name, file in profiles.items():
        if name not in boards:
            known = ", ".join(boards)
            raise InputError(
                f"--profile {name}={file}: expected a board ({known}), found {name!r}{suggest(name, boards)}"
            )
        boards[name] = boards[name].model_copy(update={"profile": file})
    return cluster.model_copy(update={"boards": boards})
