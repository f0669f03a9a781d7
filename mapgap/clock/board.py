"""A board: it listens, and does what one coordinator at a time tells it: wait, send bytes, run parts of a model.

``python -m mapgap.clock.board`` is a board of one session on loopback, which ends with it; the token is in the
environment.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import os
import socket
import struct
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mapgap.clock.wire import (
    GREETING_S,
    MOST_PAYLOAD,
    BoardError,
    Bucket,
    Channel,
    Header,
    check_token,
    greet,
    proof,
    receive,
    send,
    welcome,
)

LOOPBACK = "127.0.0.1"
KINDS = ("bool", "float16", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))
MOST_GUESTS = 64
"""Connections at a time."""
FIRST_S = 30.0
"""Seconds in which a board of one session wants to be asked."""
Batch = int


class Session:
    """What a board does for one coordinator."""

    def __init__(self, sock: socket.socket, token: str, key: str) -> None:
        self.channel, self.token, self.key = Channel(sock), token, key
        self.peers: dict[str, tuple[socket.socket, threading.Lock]] = {}
        self.guests: list[socket.socket] = []
        self.parts: dict[int, Any] = {}
        self.tensors: dict[tuple[Batch, str], Any] = {}
        self.missing: dict[tuple[Batch, str], int] = {}
        self.stored, self.slower, self.threads = 0, 1.0, 1
        self._lock, self._storing = threading.Lock(), threading.Lock()
        self._pool = ThreadPoolExecutor(64)

    def run(self) -> None:
        """Until the coordinator ends it or is gone."""
        try:
            while True:
                header, payload = receive(self.channel.sock)
                if header.get("do") == "end":
                    return
                if header.get("do") in ("setup", "part", "feed"):  # before anything that needs them
                    self._answered(header, payload)
                elif header.get("do") != "beat":
                    self._pool.submit(self._answered, header, payload)
        except (OSError, BoardError, struct.error):
            return
        finally:
            self.close()

    def close(self) -> None:
        for sock in [*self.guests, *(sock for sock, _ in self.peers.values())]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self.channel.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, header: Header, payload: bytearray) -> None:
        """Do it, and say that it is done and how long it took, or what went wrong."""
        answer: Header = {"task": header.get("task")}
        do = {"setup": self._setup, "part": self._part, "feed": self._store, "wait": self._wait, "run": self._run,
              "bytes": self._bytes, "pass": self._pass, "fetch": self._fetch}.get(str(header.get("do")))  # fmt: skip
        try:
            if do is None:
                raise BoardError(f"expected a command, found {str(header.get('do'))[:40]!r}")
            answer |= do(header, payload) or {}
        except Exception as error:  # whatever it is, the coordinator has to know; ONNX Runtime has errors of its own
            first = next(iter(str(error).strip().splitlines()), "")
            answer["error"] = first if isinstance(error, BoardError) else f"{type(error).__name__}: {first}"
        with contextlib.suppress(OSError):
            self.channel.send(answer)

    def _setup(self, header: Header, _: bytearray) -> None:
        self.slower, self.threads = float(header["slower"]), int(header["threads"])
        for name, (host, port) in header["peers"].items():
            self.peers[name] = greet((host, port), self.token, role="data", session=self.key), threading.Lock()

    def _part(self, header: Header, payload: bytearray) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.log_severity_level = 4
        self.parts[int(header["part"])] = ort.InferenceSession(
            bytes(payload), options, providers=["CPUExecutionProvider"]
        )

    def _wait(self, header: Header, _: bytearray) -> Header:
        start = _since(header)
        return _over(start, start + float(header["seconds"]), start)

    def _run(self, header: Header, _: bytearray) -> Header:
        """A part; one that is slowed runs twice, and the second time counts: a board of its own would be warm."""
        batch, part = int(header["batch"]), self.parts[int(header["part"])]
        feed = {name: self.tensors[batch, name] for name in header["reads"]}
        start, makes = _since(header), list(header["makes"])
        if self.slower > 1:
            part.run(makes, feed)
        # One thread that is slowed: its own seconds, for nobody else computes on the board that it stands for.
        clock = time.thread_time if self.slower > 1 and self.threads == 1 and os.name == "posix" else time.perf_counter
        began = clock()
        found = part.run(makes, feed)
        seconds, done = self.slower * (clock() - began), time.perf_counter()
        spent = _over(start, start + seconds, done) | {"seconds": seconds}
        for name, value in zip(makes, found, strict=True):
            self._keep(batch, name, np.ascontiguousarray(value))
        if header["forget"]:
            self._forget(batch, ())
        return spent

    def _keep(self, batch: Batch, name: str, value: Any) -> None:
        with self._lock:
            self.stored += value.nbytes
            if self.stored > MOST_PAYLOAD:
                raise BoardError(f"expected tensors of at most {MOST_PAYLOAD:,} bytes in all, found more")
            self.tensors[batch, name] = value

    def _peer(self, name: str) -> tuple[socket.socket, threading.Lock]:
        if name not in self.peers:
            raise BoardError(f"expected a board that is connected, found {name!r}")
        return self.peers[name]

    def _acknowledged(self, sock: socket.socket, since: float | None) -> float:
        """When the other board had it all: by its own clock, if that is ours."""
        answer, _ = receive(sock, most_payload=0)
        if answer.get("error"):
            raise BoardError(str(answer["error"]))
        return time.perf_counter() if since is None else float(answer["at"])

    def _bytes(self, header: Header, _: bytearray) -> Header:
        """So many zeros to another board, at a rate; done when it has them all."""
        sock, lock = self._peer(header["to"])
        with lock:
            start, bucket = _since(header), Bucket(header["rate"], header.get("since"))
            send(sock, {"discard": True}, size=int(header["bytes"]), bucket=bucket)
            done = self._acknowledged(sock, header.get("since"))
        return _over(start, bucket.over, done)

    def _pass(self, header: Header, _: bytearray) -> Header:
        """Tensors of a micro-batch, or some of their rows, to other boards, at a rate; then they are forgotten."""
        batch, start, done = int(header["batch"]), _since(header), 0.0
        bucket = Bucket(header["rate"], header.get("since"))
        for to, tensors in header["to"]:
            sock, lock = self._peer(to)
            with lock:
                for name, rows, place, count in tensors:
                    value = self.tensors[batch, name]
                    value = value if rows is None else value[rows[0] : rows[1]]
                    said = {"batch": batch, **described(name, value), "place": place, "count": count}
                    send(sock, said, _flat(value), bucket=bucket)
                    done = self._acknowledged(sock, header.get("since"))
        spent = _over(start, bucket.over, done)
        self._forget(batch, header["keep"])
        return spent

    def _forget(self, batch: Batch, keep: Sequence[str]) -> None:
        with self._lock:
            for key in [key for key in self.tensors if key[0] == batch and key[1] not in keep]:
                self.stored -= self.tensors.pop(key).nbytes

    def _fetch(self, header: Header, _: bytearray) -> None:
        """Results to the coordinator; then the micro-batch is forgotten."""
        batch = int(header["batch"])
        for name in header["names"]:
            value = self.tensors[batch, name]
            self.channel.send({"result": batch, **described(name, value)}, _flat(value))
        self._forget(batch, ())

    def _store(self, header: Header, payload: bytearray) -> None:
        """A tensor, or rows of one, from the coordinator or from another board."""
        value, batch, name = restored(header, payload), int(header["batch"]), str(header["name"])
        if header.get("count") is None:
            self._keep(batch, name, value)
            return
        count, place = int(header["count"]), int(header["place"])
        if not 0 <= place <= place + len(value) <= count:
            raise BoardError(f"{name}: expected rows of {count}, found {place} to {place + len(value)}")
        if (batch, name) not in self.missing:
            self.missing[batch, name] = count
            if count * value[:1].nbytes > MOST_PAYLOAD:
                raise BoardError(f"{name}: expected at most {MOST_PAYLOAD:,} bytes, found more")
            self._keep(batch, name, np.empty((count, *value.shape[1:]), value.dtype))
        self.tensors[batch, name][place : place + len(value)] = value
        self.missing[batch, name] -= len(value)
        if not self.missing[batch, name]:
            del self.missing[batch, name]

    def guest(self, sock: socket.socket) -> None:
        """What another board sends, until it closes."""
        self.guests.append(sock)
        with contextlib.suppress(OSError, struct.error):
            while True:
                try:
                    header, payload = receive(sock)
                    with self._storing:
                        if not header.get("discard"):
                            self._store(header, payload)
                    send(sock, {"at": time.perf_counter()})
                except BoardError as error:
                    send(sock, {"error": str(error)})
                    return
                except (KeyError, TypeError, ValueError):
                    send(sock, {"error": "expected a tensor with name, kind, shape and batch, found something else"})
                    return


def _since(header: Header) -> float:
    """When a task began: when it was told of, or, of a process on the coordinator's machine, when it was due."""
    now = time.perf_counter()
    return now if header.get("since") is None else min(now, float(header["since"]))


def _over(start: float, due: float, done: float) -> Header:
    """Wait until a task is over: its time, and what it really did; how long it took. That it is told late, or wakes
    late, is none of that."""
    time.sleep(max(0.0, due - time.perf_counter()))
    spent = max(due, done) - start
    return {"spent": spent, "seconds": spent}


def described(name: str, value: Any) -> Header:
    """The header of a tensor."""
    return {"name": name, "kind": value.dtype.name, "shape": list(value.shape)}


def _flat(value: Any) -> memoryview:
    data: memoryview = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    return data


def restored(header: Header, payload: bytearray) -> Any:
    """The tensor of a message.

    Raises
    ------
    BoardError
        Header and bytes do not fit together.
    """
    kind, shape = header.get("kind"), header.get("shape")
    sound = kind in KINDS and isinstance(shape, list) and all(type(d) is int and d >= 0 for d in shape)
    if not sound or math.prod(shape or ()) * np.dtype(kind).itemsize != len(payload):
        raise BoardError(f"expected a tensor of numbers whose shape fits {len(payload):,} bytes, found another one")
    return np.frombuffer(payload, dtype=kind).reshape(shape)


class Listener:
    """A board that listens."""

    def __init__(self, host: str, port: int, token: str, *, once: bool = False) -> None:
        self.token, self.once = check_token(token), once
        self.sock = socket.create_server((host, port))
        self.address = self.sock.getsockname()[:2]
        self.session: Session | None = None
        self.ended = threading.Event()
        self._entering = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_GUESTS)

    def serve(self) -> None:
        """For ever; of one session, until it has ended."""
        threading.Thread(target=self._accept, daemon=True).start()
        if self.once:
            while not self.ended.wait(FIRST_S) and self.session is not None:
                pass
        else:
            self.ended.wait()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                self.ended.set()
                return
            if self._places.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()
            else:
                sock.close()

    def _serve(self, sock: socket.socket) -> None:
        late = threading.Timer(GREETING_S, sock.close)  # whoever sends a byte now and then
        late.daemon = True
        late.start()
        try:
            said = welcome(sock, self.token)
            late.cancel()
            role, key = said.get("role"), str(said.get("session"))
            with self._entering:
                session = self.session
                if role == "data" and (session is None or not hmac.compare_digest(session.key.encode(), key.encode())):
                    raise BoardError("session: expected the one that is under way, found another one")
                if role not in ("data", "control"):
                    raise BoardError("expected a role, data or control, found another one")
                if role == "control" and session is not None:
                    raise BoardError("expected nobody else's session to be under way, found one")
                if role == "control":
                    self.session = session = Session(sock, self.token, key)
            send(sock, {"proof": proof(self.token, str(said.get("number")), "board")})
            assert session is not None
            if role == "data":
                sock.settimeout(None)
                session.guest(sock)
                return
            session.run()
            self.session = None
            if self.once:
                self.ended.set()
        except BoardError as error:
            with contextlib.suppress(OSError):
                send(sock, {"error": str(error)})
        except (OSError, struct.error):
            pass
        finally:
            late.cancel()
            sock.close()
            self._places.release()


def main() -> None:
    listener = Listener(LOOPBACK, 0, os.environ.get("MAPGAP_TOKEN", ""), once=True)
    print(listener.address[1], flush=True)
    listener.serve()
    os._exit(0)  # whatever its threads still do


if __name__ == "__main__":
    main()
