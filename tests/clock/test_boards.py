"""Boards and who speaks to them: killed and silent ones, wrong tokens, and messages that nobody should believe."""

import contextlib
import json
import os
import pickle
import secrets
import signal
import socket
import struct
import threading
import time

import numpy as np
import psutil
import pytest

from mapgap.clock import wire
from mapgap.clock.board import Listener, described, restored
from mapgap.clock.run import Host, execute
from mapgap.clock.wire import BoardError, greet, receive, send
from mapgap.contract.seeds import seeds
from mapgap.core import InputError, Move, Script, Task

TOKEN = secrets.token_hex(16)


def long_script(boards=3, seconds=0.05, count=200):
    """Boards that compute in turns and send each other bytes, for longer than any test waits."""
    names, tasks, before = [f"board{k}" for k in range(boards)], [], ()
    for k in range(count):
        here, there = names[k % boards], names[(k + 1) % boards]
        tasks.append(Task(f"c{k}", here, "FP", seconds, here, None, before))
        tasks.append(Task(f"m{k}", f"{here} to {there}", "FP", seconds, "", Move(here, there, 100_000), (f"c{k}",)))
        before = (f"m{k}",)
    return Script(tuple(tasks), ((before),), 2 * seconds * count), {name: Host() for name in names}


def gone(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.in_turn
@pytest.mark.parametrize("turn", seeds(3, 100))
def test_a_board_killed_at_any_moment_is_named_and_no_process_stays(turn):
    script, hosts = long_script()
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    victim, moment = f"board{rng.integers(3)}", float(rng.uniform(0, 0.4))
    known = {}

    def begun(pids):
        known.update(pids)
        threading.Timer(moment, os.kill, (pids[victim], signal.SIGKILL)).start()

    with pytest.raises(BoardError, match=f"^board {victim}: expected it to stay until the end") as caught:
        execute(script, hosts, begun=begun)
    assert "\n" not in str(caught.value)
    assert "-9" in str(caught.value), seed
    assert len(known) == 3
    assert all(map(gone, known.values())), seed


@pytest.mark.in_turn
def test_a_board_that_says_nothing_any_more_is_lost(monkeypatch):
    script, hosts = long_script()
    known = {}

    def begun(pids):
        known.update(pids)
        os.kill(pids["board1"], signal.SIGSTOP)

    with pytest.raises(BoardError, match=r"^board board1: expected it to stay .* found nothing for 3 seconds"):
        execute(script, hosts, begun=begun)
    assert all(map(gone, known.values()))


def test_a_board_without_its_coordinator_ends(monkeypatch):
    script, hosts = long_script()
    known = {}

    class Enough(Exception):
        pass

    def begun(pids):
        known.update(pids)
        raise Enough

    with pytest.raises(Enough):
        execute(script, hosts, begun=begun)
    assert all(map(gone, known.values()))


@pytest.fixture
def listener():
    board = Listener("127.0.0.1", 0, TOKEN)
    threading.Thread(target=board.serve, daemon=True).start()
    yield board
    board.sock.close()


def test_boards_that_listen_run_a_plan_and_then_listen_for_the_next_one():
    boards = {f"board{k}": Listener("127.0.0.1", 0, TOKEN) for k in range(3)}
    for board in boards.values():
        threading.Thread(target=board.serve, daemon=True).start()
    script, _ = long_script(seconds=0.01, count=6)
    hosts = {name: Host(board.address) for name, board in boards.items()}
    try:
        for _ in range(2):
            records = execute(script, hosts, token=TOKEN)
            assert [each["task"] for each in records] == [task.name for task in script.tasks]  # each after the other
            assert sum(each.get("bytes", 0) for each in records) == 600_000
            until = time.monotonic() + 10
            while any(board.session for board in boards.values()) and time.monotonic() < until:
                time.sleep(0.01)
        with pytest.raises(BoardError, match=r"^board board0: .* token: expected the one"):
            execute(script, hosts, token=secrets.token_hex(16))
    finally:
        for board in boards.values():
            board.sock.close()


class Cable:
    """A port that passes on what comes, both ways, until it is cut; then every connection through it breaks."""

    def __init__(self, address):
        self.ends, self.whole, self.address = [], True, address
        self.sock = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while self.whole:
                near, _ = self.sock.accept()
                far = socket.create_connection(self.address)
                self.ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.whole = False
        self.sock.close()
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.in_turn
@pytest.mark.parametrize("turn", seeds(1, 100))
def test_a_cut_link_ends_the_run_with_one_error_and_boards_listen_again(turn):
    boards = {f"board{k}": Listener("127.0.0.1", 0, TOKEN) for k in range(3)}
    for board in boards.values():
        threading.Thread(target=board.serve, daemon=True).start()
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    victim = f"board{rng.integers(3)}"
    cables = {name: Cable(board.address) for name, board in boards.items()}
    script, _ = long_script()
    threading.Timer(float(rng.uniform(0.3, 0.9)), cables[victim].cut).start()
    try:
        with pytest.raises(BoardError) as caught:
            execute(
                script, {name: Host(("127.0.0.1", c.sock.getsockname()[1])) for name, c in cables.items()}, token=TOKEN
            )
        assert "\n" not in str(caught.value), seed
        assert "board" in str(caught.value), seed
        until = time.monotonic() + 20
        while any(board.session for board in boards.values()) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(board.session for board in boards.values()), seed
        whole, _ = long_script(seconds=0.01, count=3)
        assert len(execute(whole, {name: Host(board.address) for name, board in boards.items()}, token=TOKEN)) == 6
    finally:
        for board in boards.values():
            board.sock.close()
        for cable in cables.values():
            cable.cut()


@pytest.mark.nightly
def test_a_hundred_wrong_tokens_are_refused(listener):
    rng = np.random.default_rng(secrets.randbits(32))
    for _ in range(100):
        wrong = (
            TOKEN[: int(rng.integers(len(TOKEN)))]
            if rng.random() < 0.3
            else secrets.token_hex(int(rng.integers(8, 40)))
        )
        with pytest.raises(BoardError, match="token: expected the one that the board was started with"):
            greet(listener.address, wrong, role="control", session="key")
        assert listener.session is None
    controlled(listener).close()


def controlled(listener, **said):
    return greet(listener.address, TOKEN, role="control", session="key", **said)


def raw(listener):
    """A connection of somebody who has read the greeting and proves nothing."""
    sock = socket.create_connection(listener.address, 5)
    hello, _ = receive(sock)
    return sock, hello


def ended(sock):
    """Whether the other side says nothing more than an error, and closes."""
    sock.settimeout(8)
    try:
        while True:
            header, _ = receive(sock)
            assert set(header) == {"error"}
    except (ConnectionError, struct.error):
        return True


def test_a_board_listens_on_loopback_and_wants_a_token():
    for token in ("", "short"):
        with pytest.raises(InputError, match="expected a token of at least 16 characters"):
            Listener("127.0.0.1", 0, token)
    with pytest.raises(InputError, match="MAPGAP_TOKEN: expected a token"):
        execute(long_script()[0], {f"board{k}": Host(("127.0.0.1", 1)) for k in range(3)})


def test_a_wrong_token_is_refused_on_both_sides(listener):
    with pytest.raises(BoardError, match="token: expected the one that the board was started with"):
        greet(listener.address, secrets.token_hex(16), role="control", session="key")
    assert listener.session is None
    sock = controlled(listener)  # and the next one who knows it is welcome
    sock.close()
    # Whoever listens and does not know the token cannot pass for a board.
    fake = socket.create_server(("127.0.0.1", 0))

    def lie():
        sock, _ = fake.accept()
        send(sock, {"mapgap": 1, "number": "1"})
        receive(sock)
        send(sock, {"proof": "0" * 64})

    threading.Thread(target=lie, daemon=True).start()
    with pytest.raises(BoardError, match="found one that does not"):
        greet(fake.getsockname(), TOKEN, role="control", session="key")
    fake.close()


def test_a_proof_seen_once_is_worth_nothing_later(listener):
    sock, hello = raw(listener)
    shown = {"proof": wire.proof(TOKEN, hello["number"], "client"), "number": "7", "role": "control", "session": "a"}
    sock.close()
    sock, _ = raw(listener)
    send(sock, shown)
    assert ended(sock)


FORGED = {
    "header too long": struct.pack(">IQ", wire.MOST_GREETING + 1, 0) + b"{" * (wire.MOST_GREETING + 1),
    "header of gigabytes": struct.pack(">IQ", 2**32 - 1, 0),
    "bytes behind it": struct.pack(">IQ", 2, 2**40) + b"{}",
    "no JSON": struct.pack(">IQ", 3, 0) + b"\xff\xfe\x00",
    "a list": struct.pack(">IQ", 2, 0) + b"[]",
    "deep": struct.pack(">IQ", 4000, 0) + b"[" * 4000,
    "a pickle": struct.pack(">IQ", len(pickle.dumps({"proof": 1})), 0) + pickle.dumps({"proof": 1}),
    "no proof": struct.pack(">IQ", 2, 0) + b"{}",
    "half a message": b"\0\0",
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_greetings_end_the_connection_and_nothing_else(listener, name):
    sock, _ = raw(listener)
    sock.sendall(FORGED[name])
    if name == "half a message":
        sock.shutdown(socket.SHUT_WR)
    assert ended(sock)
    assert listener.session is None
    controlled(listener).close()


def test_a_second_coordinator_and_a_stranger_to_the_session_are_refused(listener):
    sock = controlled(listener)
    with pytest.raises(BoardError, match="nobody else's session"):
        controlled(listener)
    with pytest.raises(BoardError, match="session: expected the one that is under way"):
        greet(listener.address, TOKEN, role="data", session="other")
    with pytest.raises(BoardError, match="expected a role"):
        greet(listener.address, TOKEN, role="root", session="key")
    send(sock, {"do": "end"})
    assert ended_of_session(sock)
    until = time.monotonic() + 10
    while listener.session is not None and time.monotonic() < until:
        time.sleep(0.01)
    controlled(listener).close()  # there is a next one


def ended_of_session(sock):
    sock.settimeout(8)
    try:
        while True:
            receive(sock)
    except (OSError, struct.error):
        return True


def answer(sock):
    sock.settimeout(8)
    while True:
        header, _ = receive(sock)
        if header.get("do") != "beat":
            return header


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"do": "import os"}, "expected a command, found 'import os'"),
        ({"do": None}, "expected a command"),
        ({"do": "run", "part": 0, "batch": 0, "reads": [], "makes": []}, "KeyError"),
        ({"do": "bytes", "to": "nobody", "bytes": 1, "rate": None}, "found 'nobody'"),
        ({"do": "wait", "seconds": "long"}, "ValueError"),
        ({"do": "part", "part": 0}, "ModelRequires|InvalidProtobuf|Fail|InvalidGraph|ModuleNotFound|InvalidArgument"),
        ({"do": "feed", "batch": 0, "name": "x", "kind": "object", "shape": [1]}, "expected a tensor of numbers"),
    ],
)
def test_commands_that_make_no_sense_are_answered_with_an_error(listener, command, words):
    sock = controlled(listener)
    send(sock, {"task": 5, **command}, b"12345678" if command["do"] in ("part", "feed") else b"")
    found = answer(sock)
    assert found["task"] == 5
    assert any(word in found["error"] for word in words.split("|")), found
    send(sock, {"task": 6, "do": "wait", "seconds": 0})
    assert answer(sock)["task"] == 6  # and the board goes on
    sock.close()


@pytest.mark.parametrize(
    ("change", "size"),
    [
        ({"kind": "object"}, 24),
        ({"kind": "V8"}, 24),
        ({"kind": None}, 24),
        ({"shape": [4]}, 24),
        ({"shape": [-3]}, 24),
        ({"shape": [2**70]}, 24),
        ({"shape": "3"}, 24),
        ({"shape": [True] * 3}, 24),
        ({}, 23),
    ],
)
def test_a_tensor_whose_header_does_not_fit_its_bytes_is_refused(change, size):
    header = {**described("x", np.arange(3.0)), **change}
    with pytest.raises(BoardError, match="expected a tensor of numbers whose shape fits"):
        restored(header, bytearray(size))


def test_a_tensor_comes_back_as_it_was():
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    for kind in ("float32", "int64", "uint8", "bool", "float16"):
        value = (rng.random((3, 0, 2) if rng.random() < 0.3 else (2, 3, 5)) * 100).astype(kind)
        found = restored(json.loads(json.dumps(described("x", value))), bytearray(value.tobytes()))
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value, err_msg=str(seed))


def test_rows_beyond_a_tensor_are_refused(listener):
    sock = controlled(listener)
    guest = greet(listener.address, TOKEN, role="data", session="key")
    value = np.ones((4, 2), np.float32)
    send(guest, {**described("x", value), "batch": 0, "place": 2, "count": 5}, value.tobytes())
    header, _ = receive(guest)
    assert "expected rows of 5, found 2 to 6" in header["error"]
    assert ended(guest)
    sock.close()
