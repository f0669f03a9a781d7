"""What boards say to each other: a JSON object, then raw bytes, both of limited length. Nothing is ever unpickled.

Who connects and who listens prove to each other that they know the token (HMAC-SHA256 of the other's random number);
the token itself is never sent. Nothing is encrypted.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

from mapgap.core import InputError, MapgapError, printable, short

VERSION = 1
MOST_HEADER, MOST_PAYLOAD = 2**20, 2**31
MOST_GREETING = 4096
"""Bytes of a header from somebody who has proved nothing yet; there is no payload."""
GREETING_S, SILENCE_S, BEAT_S = 5.0, 3.0, 1.0
"""Seconds for a greeting; without a word, after which the other side counts as lost; and between two signs of life."""
CHUNK = 2**16
AHEAD_S = 0.1
"""Seconds by which bytes between processes of one machine may be ahead of the rate of their link."""
LEAST_TOKEN = 16
_LENGTHS = struct.Struct(">IQ")
Header = dict[str, Any]


class BoardError(MapgapError):
    """A board is lost, refuses, or says what it should not."""


def check_token(token: str | None) -> str:
    """The token, if it is long enough.

    Raises
    ------
    InputError
    """
    if token is None or len(token) < LEAST_TOKEN:
        found = "none" if token is None else f"{len(token)}"
        raise InputError(f"MAPGAP_TOKEN: expected a token of at least {LEAST_TOKEN} characters, found {found}")
    return token


def exactly(sock: socket.socket, size: int) -> bytearray:
    """So many bytes.

    Raises
    ------
    ConnectionError
        The other side has closed.
    """
    data = bytearray(size)
    with memoryview(data) as view:
        done = 0
        while done < size:
            got = sock.recv_into(view[done:], min(size - done, 2**20))
            if not got:
                raise ConnectionError("closed")
            done += got
    return data


def receive(sock: socket.socket, most: int = MOST_HEADER, most_payload: int = MOST_PAYLOAD) -> tuple[Header, bytearray]:
    """A message; of one whose header says ``discard`` the bytes are read and thrown away.

    Raises
    ------
    ConnectionError, TimeoutError
    BoardError
        It is too long, or its header is no JSON object.
    """
    length, size = _LENGTHS.unpack(exactly(sock, _LENGTHS.size))
    if length > most or size > most_payload:
        text = f"at most {most:,} bytes and {most_payload:,} behind them, found {length:,} and {size:,}"
        raise BoardError(f"message: expected {text}")
    try:
        header = json.loads(exactly(sock, length))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise BoardError("message: expected a JSON object at its head, found something else")
    if not header.get("discard"):
        return header, exactly(sock, size)
    rest = bytearray(CHUNK)
    while size:
        got = sock.recv_into(rest, min(size, CHUNK))
        if not got:
            raise ConnectionError("closed")
        size -= got
    return header, bytearray()


class Bucket:
    """Bytes in chunks: so many per second since it was made, or since ``start``; without a rate as fast as they go.

    With ``start`` it holds what flows in within :data:`AHEAD_S`, so that bytes lie there in time though nobody wakes on
    time. Whoever sends waits for :attr:`over`.
    """

    def __init__(self, rate: float | None, start: float | None = None) -> None:
        self.rate, self.start, self.sent = rate, time.perf_counter() if start is None else start, 0
        self.ahead = 0.0 if start is None else AHEAD_S

    @property
    def over(self) -> float:
        """When the rate allows the last byte sent to be there."""
        return self.start + self.sent / self.rate if self.rate else self.start

    def chunks(self, size: int) -> Iterator[tuple[int, int]]:
        """Parts ``[a, b)`` as soon as they may be sent."""
        step = CHUNK if self.rate is None else max(512, min(CHUNK, int(self.rate * 0.005)))
        for a in range(0, size, step):
            b = min(size, a + step)
            self.sent += b - a
            if self.rate is not None:
                time.sleep(max(0.0, self.over - self.ahead - time.perf_counter()))
            yield a, b


def send(
    sock: socket.socket, header: Header, payload: Any = b"", size: int | None = None, bucket: Bucket | None = None
) -> None:
    """A message; with ``size`` and no payload so many zeros."""
    head = json.dumps(header).encode()
    length = len(payload) if size is None else size
    sock.sendall(_LENGTHS.pack(len(head), length) + head)
    zeros = None if size is None else bytes(CHUNK)
    for a, b in (bucket or Bucket(None)).chunks(length):
        sock.sendall(payload[a:b] if zeros is None else zeros[: b - a])


def proof(token: str, number: str, side: str) -> str:
    """That somebody knows the token."""
    return hmac.new(token.encode(), f"{side} {number}".encode(), hashlib.sha256).hexdigest()


def greet(address: tuple[str, int], token: str, **said: Any) -> socket.socket:
    """A connection to a board, both sides sure of each other.

    Raises
    ------
    BoardError
        Nobody is there, or it refuses, or it does not know the token.
    """
    place = f"{address[0]}:{address[1]}"
    try:
        sock = socket.create_connection(address, GREETING_S)
    except OSError as error:
        raise BoardError(f"{place}: expected a board that listens, found: {error.strerror or error}") from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello, _ = receive(sock, MOST_GREETING, 0)
        number = secrets.token_hex(16)
        send(sock, {"proof": proof(token, str(hello.get("number")), "client"), "number": number, **said})
        answer, _ = receive(sock, MOST_GREETING, 0)
        if "error" in answer:
            raise BoardError(f"{place}: {short(printable(str(answer['error'])))}")
        if not hmac.compare_digest(str(answer.get("proof")).encode(), proof(token, number, "board").encode()):
            raise BoardError(f"{place}: expected a board that knows the token, found one that does not")
    except (OSError, struct.error) as error:
        sock.close()
        raise BoardError(f"{place}: expected the greeting of a board, found: {error}") from error
    except BoardError:
        sock.close()
        raise
    sock.settimeout(None)
    return sock


def welcome(sock: socket.socket, token: str) -> Header:
    """What somebody says who connects and knows the token; not yet answered.

    Raises
    ------
    BoardError
        He does not, or says too much.
    ConnectionError, TimeoutError
    """
    sock.settimeout(GREETING_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = secrets.token_hex(16)
    send(sock, {"mapgap": VERSION, "number": number})
    said, _ = receive(sock, MOST_GREETING, 0)
    if not hmac.compare_digest(str(said.get("proof")).encode(), proof(token, number, "client").encode()):
        with contextlib.suppress(OSError):
            send(sock, {"error": "token: expected the one that the board was started with, found another one"})
        raise BoardError("token: refused")
    return said


class Channel:
    """A connection on which several threads may speak, with signs of life."""

    def __init__(self, sock: socket.socket, silence: float = SILENCE_S) -> None:
        self.sock, self._lock, self._closed = sock, threading.Lock(), threading.Event()
        sock.settimeout(silence)
        threading.Thread(target=self._beat, daemon=True).start()

    def send(self, header: Header, payload: Any = b"") -> None:
        with self._lock:
            send(self.sock, header, payload)

    def _beat(self) -> None:
        while not self._closed.wait(BEAT_S):
            try:
                self.send({"do": "beat"})
            except OSError:
                return

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
