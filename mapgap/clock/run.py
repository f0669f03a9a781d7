"""The coordinator: it tells every board what to do next, and writes down when it was done.

Lanes take the task that was ready first, as the script says. All times are those of the coordinator's clock, so that no
two clocks have to agree; a board is told of a task when all before it have ended. Processes of our own share a clock:
there a task begins when it could have begun, whoever hears of it later, and waits for a moment, not for a time. So it
ends when its time is over and what it really does (bytes, kernels) is done: that a process wakes late, or is told late,
is made up for as long as there is anything to wait for, and adds up nowhere.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import platform
import queue
import secrets
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mapgap.clock.board import LOOPBACK, described, restored
from mapgap.clock.wire import SILENCE_S, BoardError, Channel, Header, check_token, greet, receive
from mapgap.core import Script, Task
from mapgap.core.machine import machine_load

START_S = 60.0
"""Seconds in which a board of our own begins to listen, and in which one loads its parts."""
LONGEST_S = 120.0
"""Seconds that a task may take beyond ten times what the model says."""


@dataclass(frozen=True)
class Host:
    """Where a board is.

    Attributes
    ----------
    address : (str, int), optional
        ``None``: a process of our own on loopback.
    slower : float
        Its computations take so many times as long, by waiting.
    """

    address: tuple[str, int] | None = None
    slower: float = 1.0


@dataclass
class Parts:
    """A model in parts, for a run that computes.

    Attributes
    ----------
    stages : list of dict
        As in the manifest of :mod:`mapgap.importing.onnx_files.cut`.
    files : list of bytes
        The model of every stage.
    inputs : callable
        Number of a micro-batch to its inputs by name.
    rates : callable
        Bytes per second between two boards, by name; ``None``: as fast as the network.
    threads : int
        Of a board.
    results : dict
        Micro-batch to outputs by name.
    """

    stages: list[Any]
    files: list[bytes]
    inputs: Callable[[int], Mapping[str, Any]]
    rates: Callable[[str, str], float | None]
    threads: int = 1
    results: dict[int, dict[str, Any]] = field(default_factory=dict)


class _Board:
    """What the coordinator knows of one board."""

    def __init__(self, name: str, process: subprocess.Popen[bytes] | None, address: tuple[str, int]) -> None:
        self.name, self.process, self.address = name, process, address
        self.channel: Channel | None = None


Event = tuple[str, Header, bytearray]


class _Run:
    """One run: boards, tasks that wait, lanes that are busy."""

    def __init__(self, script: Script, hosts: Mapping[str, Host], token: str | None, scale: float, parts: Parts | None):
        self.script, self.scale, self.parts, self.hosts = script, scale, parts, hosts
        self.own = own = all(host.address is None for host in hosts.values())
        self.token = secrets.token_hex(16) if own else check_token(token)
        self.key = secrets.token_hex(16)
        self.boards: dict[str, _Board] = {}
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.under_way: dict[str, float] = {}
        self.micro_batches = 1 + max((int(task.about.get("micro_batch", 0)) for task in script.tasks), default=0)

    # Boards

    def open(self) -> None:
        """All boards, with what they have to know."""
        for name, host in self.hosts.items():
            self.boards[name] = self._started(name) if host.address is None else _Board(name, None, host.address)
        for board in self.boards.values():
            if board.process is not None:
                board.address = (LOOPBACK, self._port(board))
            try:
                board.channel = Channel(greet(board.address, self.token, role="control", session=self.key))
            except BoardError as error:
                raise BoardError(f"board {board.name}: {error}") from error
            threading.Thread(target=self._listen, args=(board,), daemon=True).start()
        commands: dict[str, list[tuple[Header, Any]]] = {name: [] for name in self.boards}
        for name, host in self.hosts.items():
            peers = {other: self.boards[other].address for other in self._receivers(name)}
            threads = self.parts.threads if self.parts else 1
            commands[name].append(({"do": "setup", "peers": peers, "slower": host.slower, "threads": threads}, b""))
        if self.parts is not None:
            for p, stage in enumerate(self.parts.stages):
                for each in stage["boards"]:
                    commands[each["name"]].append(({"do": "part", "part": p}, self.parts.files[p]))
        self._all(commands)

    def _started(self, name: str) -> _Board:
        command = [sys.executable, "-m", "mapgap.clock.board"]
        environment = {**os.environ, "MAPGAP_TOKEN": self.token}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment)
        return _Board(name, process, (LOOPBACK, 0))

    def _port(self, board: _Board) -> int:
        """Where a board of our own listens."""
        assert board.process is not None
        assert board.process.stdout is not None
        late = threading.Timer(START_S, board.process.kill)
        late.start()
        line = board.process.stdout.readline()
        late.cancel()
        if not line.strip().isdigit():
            raise BoardError(f"board {board.name}: expected its process to listen, found that it has ended")
        return int(line)

    def _receivers(self, name: str) -> list[str]:
        """Boards to which a board sends."""
        found = {task.move.receiver for task in self.script.tasks if task.move and task.move.sender == name}
        if self.parts is not None:
            for here, there in zip(self.parts.stages, self.parts.stages[1:], strict=False):
                if name in [each["name"] for each in here["boards"]]:
                    found |= {each["name"] for each in there["boards"]}
        return sorted(found)

    def _listen(self, board: _Board) -> None:
        assert board.channel is not None
        try:
            while True:
                header, payload = receive(board.channel.sock)
                if header.get("do") != "beat":
                    self.events.put((board.name, header, payload))
        except TimeoutError:
            self.events.put((board.name, {"lost": f"found nothing for {SILENCE_S:g} seconds"}, bytearray()))
        except (OSError, struct.error):
            self.events.put((board.name, {"lost": "found its connection closed"}, bytearray()))
        except BoardError as error:
            self.events.put((board.name, {"lost": f"found: {error}"}, bytearray()))

    def _tell(self, name: str, header: Header, payload: Any = b"") -> None:
        board = self.boards[name]
        assert board.channel is not None
        try:
            board.channel.send(header, payload)
        except OSError:
            self._failed((name, {"lost": "found its connection closed"}, bytearray()))

    def _event(self, until: float) -> Event:
        """The next word of a board.

        Raises
        ------
        BoardError
        """
        try:
            found = self.events.get(timeout=max(0.0, until - time.perf_counter()))
        except queue.Empty:
            waiting = ", ".join(sorted(self.under_way)[:5]) or "a board's answer"
            raise BoardError(f"expected an end, found still under way: {waiting}") from None
        if "lost" in found[1] or "error" in found[1]:
            self._failed(found)
        return found

    def _failed(self, found: Event) -> None:
        """Say who failed; a board that lost its peer speaks sooner than the silence of the peer does.

        Raises
        ------
        BoardError
            Always.
        """
        until = time.perf_counter() + (0.0 if "lost" in found[1] else 0.5)
        while "lost" not in found[1]:
            try:
                other = self.events.get(timeout=max(0.0, until - time.perf_counter()))
            except queue.Empty:
                break
            if "lost" in other[1]:
                found = other
        name, header, _ = found
        if "lost" not in header:
            raise BoardError(f"board {name}: {header['error']}")
        process = self.boards[name].process
        code = None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(0.5)
        ended = "" if code is None else f" (its process ended with {code})"
        raise BoardError(f"board {name}: expected it to stay until the end of the run, {header['lost']}{ended}")

    def _all(self, commands: Mapping[str, Sequence[tuple[Header, Any]]]) -> None:
        """Tell boards something, and wait until all of it is done."""
        count = sum(map(len, commands.values()))
        for name, told in commands.items():
            for header, payload in told:
                self._tell(name, header, payload)
        until = time.perf_counter() + START_S
        for _ in range(count):
            self._event(until)

    def close(self) -> None:
        """No process stays."""
        for board in self.boards.values():
            if board.channel is not None:
                with contextlib.suppress(OSError):
                    board.channel.send({"do": "end"})
                board.channel.close()
            if board.process is not None:
                board.process.terminate()
        for board in self.boards.values():
            if board.process is not None:
                try:
                    board.process.wait(0.5)
                except subprocess.TimeoutExpired:
                    board.process.kill()
                    board.process.wait()
                if board.process.stdout is not None:
                    board.process.stdout.close()

    # Tasks

    def run(self) -> list[dict[str, Any]]:
        """All tasks; a record of each, in the order in which they ended."""
        tasks = {task.name: task for task in self.script.tasks}
        place = {name: k for k, name in enumerate(tasks)}
        missing = {task.name: len(set(task.after)) for task in tasks.values()}
        behind: dict[str, list[str]] = {}
        for task in tasks.values():
            for name in set(task.after):
                behind.setdefault(name, []).append(task.name)
        ready: dict[str, list[tuple[float, int, str]]] = {}
        due = dict.fromkeys(tasks, 0.0)
        busy: dict[str, str] = {}
        started = self.under_way
        words = dict[str, int]()
        spent, ended, free = dict[str, float](), dict[str, float](), dict[str, float]()
        records: list[dict[str, Any]] = []
        self._feed()
        start = time.perf_counter()

        def at(moment: float) -> float:
            return (moment - start) / self.scale

        def enter(name: str) -> None:
            heapq.heappush(ready.setdefault(tasks[name].lane, []), (due[name], place[name], name))

        for name in [name for name, count in missing.items() if not count]:
            enter(name)
        until = 0.0
        while len(records) < len(tasks):
            for lane, waiting in ready.items():
                if waiting and lane not in busy:
                    since, _, name = heapq.heappop(waiting)
                    since = max(since, free.get(lane, 0.0)) if self.own else at(time.perf_counter())
                    commands = list(self._commands(tasks[name]))
                    busy[lane], started[name], words[name], spent[name], ended[name] = (
                        name,
                        since,
                        len(commands),
                        0.0,
                        since,
                    )
                    longest = LONGEST_S + 10 * self.scale * tasks[name].seconds
                    until = max(until, time.perf_counter() + longest)
                    for board, command in commands:
                        command |= {"since": start + since * self.scale} if self.own else {}
                        self._tell(board, {"task": name, **command})
                    if not commands:
                        self.events.put(("", {"task": name}, bytearray()))
                        words[name] = 1
            board, header, _ = self._event(until)
            name = header["task"]
            if name not in started:
                raise BoardError(f"board {board}: expected word of a task under way, found {str(name)[:40]!r}")
            words[name] -= 1
            spent[name] = max(spent[name], float(header.get("seconds") or 0.0) / self.scale)
            now = at(time.perf_counter())
            over = started[name] + float(header.get("spent") or 0.0) / self.scale if self.own else now
            ended[name] = max(ended[name], over)
            if words[name]:
                continue
            task, end = tasks[name], ended[name]
            free[task.lane] = end
            records.append(recorded(task, started.pop(name), end, spent[name]) | {"late": max(0.0, now - end)})
            del busy[task.lane]
            for other in behind.get(name, ()):
                missing[other] -= 1
                due[other] = max(due[other], end)  # word of it may come before word of something that ended sooner
                if not missing[other]:
                    enter(other)
        self._fetch()
        return records

    def _commands(self, task: Task) -> Iterator[tuple[str, Header]]:
        """What boards are told of a task."""
        if self.parts is None:
            if task.move is None:
                yield task.board, {"do": "wait", "seconds": task.seconds * self.scale}
            elif task.move.bytes:
                size = max(1, round(task.move.bytes * min(1.0, self.scale)))  # no link is faster than in the model
                rate = size / (task.seconds * self.scale) if task.seconds else None
                yield task.move.sender, {"do": "bytes", "to": task.move.receiver, "bytes": size, "rate": rate}
            elif task.seconds:
                yield task.move.sender, {"do": "wait", "seconds": task.seconds * self.scale}
            return
        p, batch = task.about["stage"], self._batch(task)
        stage = self.parts.stages[p]
        if task.move is None:
            if task.about["share"]:
                command = {"do": "run", "part": p, "batch": batch, "reads": stage["reads"], "makes": stage["makes"]}
                yield task.board, command | {"forget": p == len(self.parts.stages) - 1 and batch < self.last}
            return
        for name, low, high in _rows(stage):
            to: list[list[Any]] = []
            for other, first, last in _rows(self.parts.stages[p + 1]):
                a, b = max(low, first), min(high, last)
                if a < b:
                    whole = (low, high) == (first, last)
                    rows = (None, None, None) if whole else ([a - low, b - low], a - first, last - first)
                    to.append([other, [[tensor, *rows] for tensor in stage["sends"]]])
            rates = [self.parts.rates(name, other) for other, _ in to]
            known = [rate for rate in rates if rate is not None]
            rate = min(known) if known else None
            keep = stage["outputs"] if batch >= self.last else ()
            yield name, {"do": "pass", "batch": batch, "to": to, "rate": rate, "keep": keep}

    @property
    def last(self) -> int:
        """The first micro-batch of the last round."""
        return (len(self.script.rounds) - 1) * self.micro_batches

    def _batch(self, task: Task) -> int:
        batch: int = task.about["round"] * self.micro_batches + task.about["micro_batch"]
        return batch

    def _feed(self) -> None:
        """The inputs of all micro-batches, which lie on the first boards before the clock starts."""
        if self.parts is None:
            return
        for batch in range(len(self.script.rounds) * self.micro_batches):
            given, members = self.parts.inputs(batch), _rows(self.parts.stages[0])
            told: dict[str, list[tuple[Header, Any]]] = {}
            for board, a, b in members:
                for name, value in given.items():
                    rows = value[a:b] if len(members) > 1 else value
                    command = {"do": "feed", "batch": batch, **described(name, rows)}
                    told.setdefault(board, []).append((command, rows.tobytes()))
            self._all(told)

    def _fetch(self) -> None:
        """The outputs of the last round, rows of several boards one below the other."""
        if self.parts is None:
            return
        found: dict[tuple[int, str], dict[str, Any]] = {}
        first = self.last
        for stage in self.parts.stages:
            names = stage["outputs"]
            for board, _, _ in _rows(stage) if names else ():
                for batch in range(first, first + self.micro_batches):
                    self._tell(board, {"do": "fetch", "batch": batch, "names": names, "task": None})
                    until = time.perf_counter() + START_S
                    while True:
                        _, header, payload = self._event(until)
                        if "result" not in header:
                            break
                        value = restored(header, payload)
                        found.setdefault((batch - first, str(header["name"])), {})[board] = value
        for (batch, name), by_board in found.items():
            values = list(by_board.values())
            self.parts.results.setdefault(batch, {})[name] = values[0] if len(values) == 1 else np.concatenate(values)


def _rows(stage: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Boards of a stage that have samples, and which rows of a micro-batch."""
    found, start = [], 0
    for each in stage["boards"]:
        if each["samples"]:
            found.append((each["name"], start, start + each["samples"]))
        start += each["samples"]
    return found


def recorded(task: Task, start: float, end: float, spent: float) -> dict[str, Any]:
    """What a task was, and how long it took: in the model, on the clock of the coordinator, and on the board's."""
    told: dict[str, Any] = {"task": task.name, "lane": task.lane, "group": task.group, "model_s": task.seconds}
    if task.move is None:
        told |= {"board": task.board}
    else:
        told |= {"sender": task.move.sender, "receiver": task.move.receiver, "bytes": task.move.bytes}
    return told | {"start": start, "end": end, "seconds": spent, **task.about}


def execute(
    script: Script,
    hosts: Mapping[str, Host],
    *,
    token: str | None = None,
    scale: float = 1.0,
    parts: Parts | None = None,
    begun: Callable[[Mapping[str, int]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Run a script: without ``parts`` by waiting and by sending zeros, else with ONNX Runtime.

    Parameters
    ----------
    hosts : mapping
        Every board of the script.
    token : str, optional
        Needed for boards with an address.
    scale : float
        Seconds of the clock per second of the model; the records are in those of the model.
    begun : callable
        Told the process numbers of the boards that are processes of ours.

    Raises
    ------
    BoardError
        A board was lost or failed. All connections are closed, and no process of ours is left.
    """
    run = _Run(script, hosts, token, scale, parts)
    try:
        run.open()
        begun({name: board.process.pid for name, board in run.boards.items() if board.process is not None})
        return run.run()
    finally:
        run.close()


def machine() -> dict[str, Any]:
    """Where a run was made."""
    return {"system": platform.platform(), "cores": os.cpu_count(), "load": machine_load() or 0.0}
