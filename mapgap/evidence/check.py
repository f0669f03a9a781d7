"""Check a certificate: no plan of this instance is better than the bound that it states.

    python check.py CERTIFICATE…          the instance is part of the file
    python check.py CERTIFICATE -i FILE   and must be the one in this file (expanded form, JSON)
    python check.py CERTIFICATE --seconds 60     at most so many seconds of work for each

A bound of ``null`` says that the instance has no plan: none of an objective below 2^62 (above -1 where more is better).
What is printed names the instance by the SHA-256 of its content, and says whether the library of this checkout has it.

Standard library only, integers only, no solver; nothing of mapgap is imported. What has to be believed is this file and
the *writer* of the problem, the folder ``problems/<problem>/certificate``, which is read from beside this file. There
are three kinds of writers:

- ``program(instance, bound, Program)`` writes an integer program that has a point for every plan better than the bound.
  The proof is a tree that refutes it (:func:`refuted`).
- ``cases(instance, bound, Program, names)`` writes several, as pairs of a name and a program, which together have a
  point for every such plan. The proof has a tree for each name; which names it has may choose between programs. In the
  place of a program there can be a function, which recomputes an argument from its part of the proof, like ``check``.
- ``check(instance, bound, proof)`` recomputes the argument itself and returns why it fails, or nothing.

A writer's argument covers the instances of its ``SHAPE`` (fields, and the words that a field may hold); others, which
may have rules that it does not know, are refused. So is what its ``fault`` objects to, and numbers that are negative
(below its ``LEAST`` of a field) or not whole.

The program is always written anew from the instance and the bound. A file that was altered can therefore at most fail.

Proof of a refutation, a list of steps; it visits boxes (bounds of all variables) depth first:

- ``["p", i, y, …]`` adds up rows ``i`` with multipliers ``y >= 1``. The sum is valid. If its least activity in the
  box exceeds its right-hand side, the box is empty; else it tightens every bound that it implies.
- ``["q", i, …]`` does so with every single row ``i``, one after the other.
- ``["h", k]`` appends the secant of product ``k`` over the box to the rows of the box.
- ``["w", k, begin]`` appends what machine ``k`` does from ``begin`` to its end at least, by the bounds of the box;
  ``["w", k, begin, end]`` what it does until ``end``.
- ``["m", k, time]`` appends what store ``k`` holds at a time at least.
- ``["s", j, v]`` splits the box at ``x[j] <= v`` and ``x[j] >= v + 1``; the first half comes next.

The proof holds if its steps leave no box.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import importlib.util
import json
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

Terms = dict[int, int]
Task = tuple[int, int, int, int, list[int]]
Store = tuple[int, list[tuple[int, int]], list[tuple[int, int, int, int, list[int]]]]
SCHEMA = 1
NONE = {"min": 1 << 62, "max": -1}  # what no plan at all is better than
GARBAGE = 1_000_000  # objects after which they are collected, between cases
SIZE_LIMIT = 1 << 28  # bytes of an unpacked certificate


class Refused(Exception):
    """The certificate proves nothing."""


class Program:
    """Integer variables within bounds, rows ``sum of a x <= b``, products ``x[e] x[l] <= v`` of variables >= 0.

    ``cutoff`` is the row that says "better than the bound"; provers minimise its left-hand side.

    A machine, a pair of the variable of its end and its tasks, does one task after the other. Of a task ``(start, load,
    place, least, after)`` it begins at ``x[start]`` and is over after ``x[load]``, without a break, and before any of
    ``x[after]`` and its end; that is ``least`` at least if ``x[place]`` is 1, and 0 (it does nothing) if that is 0.

    A store, ``(room, always, held)``, has room for all that it holds at a time: always ``a x[j]`` of every ``(j, a)``,
    and of every ``(start, place, size, last, loads)`` the ``size`` if ``x[place]`` is 1, from ``x[start]`` until all of
    ``x[loads]`` have passed since ``x[last]``.
    """

    def __init__(self) -> None:
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.rows: list[tuple[Terms, int]] = []
        self.products: list[tuple[int, int, int]] = []
        self.machines: list[tuple[int, list[Task]]] = []
        self.stores: list[Store] = []
        self.cutoff = -1

    def variable(self, lower: int, upper: int) -> int:
        """The number of a new variable."""
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def at_most(self, terms: Iterable[tuple[int, int]], bound: int) -> int:
        """Add ``sum of coefficient * variable <= bound`` for pairs ``(variable, coefficient)``; the row's number."""
        listed = [*terms]
        row = dict(listed)
        if len(row) < len(listed):  # a variable comes twice
            row = dict.fromkeys(row, 0)
            for j, a in listed:
                row[j] += a
        self.rows.append((row if all(row.values()) else {j: a for j, a in row.items() if a}, bound))
        return len(self.rows) - 1

    def equal(self, terms: Iterable[tuple[int, int]], value: int) -> None:
        """Add an equation, as two rows."""
        listed = list(terms)
        self.at_most(listed, value)
        self.at_most([(j, -a) for j, a in listed], -value)


class Box:
    """Bounds of all variables, and the rows that hold within them beside those of the program."""

    def __init__(self, lower: list[int], upper: list[int], rows: list[tuple[Terms, int]]) -> None:
        self.lower, self.upper, self.rows = lower, upper, rows

    def halves(self, j: int, v: int) -> tuple[Box, Box]:
        below, above = (Box(self.lower[:], self.upper[:], self.rows[:]) for _ in range(2))
        below.upper[j] = min(below.upper[j], v)
        above.lower[j] = max(above.lower[j], v + 1)
        return below, above

    def tighten(self, row: Terms, bound: int) -> bool:
        """Tighten all bounds by a valid row; ``False`` if no point of the box satisfies it."""
        lower, upper = self.lower, self.upper
        slack = bound - sum(a * (lower[j] if a > 0 else upper[j]) for j, a in row.items())
        if slack < 0:
            return False
        for j, a in row.items():
            if a > 0:
                upper[j] = min(upper[j], lower[j] + slack // a)
            else:
                lower[j] = max(lower[j], upper[j] - slack // -a)
        return True

    def secant(self, product: tuple[int, int, int]) -> tuple[Terms, int]:
        """``l h E + v L <= v (l + h)`` for ``E L <= v`` and L in ``[l, h]``: the chord over the hyperbola ``v / L``."""
        e, length, v = product
        low, high = self.lower[length], self.upper[length]
        terms = {e: low * high, length: v}
        return {j: a for j, a in terms.items() if a}, v * (low + high)

    def window(self, machine: tuple[int, list[Task]], begin: int, end: int | None = None) -> tuple[Terms, int]:
        """What a machine does from ``begin`` on fits there: all of a task that lies between, of others the least part
        that does, wherever they start."""
        last, tasks = machine
        if begin > (self.lower[last] if end is None else end):
            raise Refused("a window that may begin after its end")
        terms = {last: -1} if end is None else {}
        for start, load, place, least, after in tasks:
            first, final = self.lower[start], self.upper[start] + self.upper[load]
            final = min(final, *(self.upper[j] for j in (last, *after)))
            if begin <= first and (end is None or final <= end):
                terms[load] = 1
                continue
            part = min(least, first + least - begin)
            if end is not None:
                part = min(part, end - final + least, end - begin)
            if part > 0:
                terms[place] = part
        return terms, -begin if end is None else end - begin

    def moment(self, store: Store, time: int) -> tuple[Terms, int]:
        """What a store holds at a time fits: what is there always, or comes by then and goes later wherever it does."""
        room, always, held = store
        terms = dict(always)
        for start, place, size, last, loads in held:
            if self.upper[start] <= time < self.lower[last] + sum(self.lower[j] for j in loads):
                terms[place] = terms.get(place, 0) + size
        return terms, room


def refuted(program: Program, proof: Sequence[Sequence[Any]]) -> None:
    """Follow a proof; Refused where a step is none, or a box stays open."""
    if any(program.lower[x] < 0 for e, length, _ in program.products for x in (e, length)):
        raise Refused("a product of a variable that may be negative")
    steps = iter(proof)
    open_boxes = [Box(program.lower[:], program.upper[:], [])]
    while open_boxes:
        box = open_boxes.pop()
        while True:
            step = next(steps, None)
            if step is None:
                raise Refused("the proof ends with a box that is not empty")
            kind, numbers = step[0], step[1:]
            if not all(type(n) is int for n in numbers):
                raise Refused("a step with something else than integers")
            if kind == "s":
                open_boxes += reversed(box.halves(*numbers))
                break
            if kind == "h":
                box.rows.append(box.secant(program.products[numbers[0]]))
            elif kind == "w":
                box.rows.append(box.window(program.machines[numbers[0]], *numbers[1:]))
            elif kind == "m":
                box.rows.append(box.moment(program.stores[numbers[0]], *numbers[1:]))
            elif kind == "p":
                if not box.tighten(*combined(program.rows + box.rows, numbers)):
                    break
            elif kind == "q":
                if not all(box.tighten(*program.rows[i]) for i in numbers if i >= 0):
                    break
            else:
                raise Refused(f"an unknown step {kind!r}")
    if next(steps, None) is not None:
        raise Refused("steps are left when every box is empty")


def combined(rows: Sequence[tuple[Terms, int]], numbers: Sequence[int]) -> tuple[Terms, int]:
    """The sum of rows with multipliers ``[i, y, i, y, …]``."""
    total: Terms = {}
    bound = 0
    for i, y in zip(numbers[::2], numbers[1::2], strict=True):
        if y < 1 or i < 0:
            raise Refused("a multiplier below 1")
        row, b = rows[i]
        bound += y * b
        for j, a in row.items():
            total[j] = total.get(j, 0) + y * a
    return {j: a for j, a in total.items() if a}, bound


def beside(name: str) -> Path | None:
    """A file of mapgap; in a checkout the wings lie beside the package."""
    files = [Path(__file__).resolve().parents[k] / name for k in (1, 2)]
    return next((file for file in files if file.is_file()), None)


def writer_of(problem: str) -> ModuleType:
    """The writer of a problem, read from its folder beside this file; its modules import nothing but each other."""
    path = beside(f"problems/{problem}/certificate/__init__.py")
    if not problem.isidentifier() or path is None:
        raise Refused(f"expected a problem with a writer, found {problem!r}")
    inside = [str(path.parent)]
    spec = importlib.util.spec_from_file_location(f"certificate_{problem}", path, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def strange(data: Any, shape: Any, least: Mapping[str, int], where: str = "instance") -> str | None:
    """What is not as a shape says: ``{field: shape}``, ``[shape of items]``, ``(words,)``, ``None`` for anything; or a
    number that no argument covers."""
    if isinstance(shape, tuple) and data not in shape:
        return f"{where}: expected one of {', '.join(map(str, shape))}, found {data!r}"
    if isinstance(shape, list | dict) and not isinstance(data, type(shape)):
        return f"{where}: expected a {type(shape).__name__}, found {data!r}"
    if isinstance(shape, dict) and (unknown := sorted(data.keys() - shape.keys())):
        return f"{where}: a field that the argument does not know: {unknown[0]}"
    if isinstance(data, float) or (type(data) is int and data < least.get(where.rpartition(".")[2], 0)):
        return f"{where}: a number that is negative or not whole: {data}"
    if isinstance(data, dict):
        parts = [(data[key], shape[key] if shape else None, f"{where}.{key}") for key in data]
    else:
        parts = [(item, shape[0] if shape else None, where) for item in (data if isinstance(data, list) else ())]
    return next((found for item, part, place in parts if (found := strange(item, part, least, place))), None)


def digest(instance: Mapping[str, Any]) -> str:
    """SHA-256 of everything an optimiser can see: name, source and tags left out."""
    seen = {key: value for key, value in instance.items() if key not in ("name", "source", "tags")}
    return hashlib.sha256(json.dumps(seen, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def instance_hash(instance: Mapping[str, Any]) -> str:
    return digest(instance)[:16]  # by which the rest of mapgap names an instance


def known(instance: Mapping[str, Any]) -> str:
    """Whether it is an instance of the library, by the list of these that lies beside the certificates."""
    path = beside("instances/best_known.sha256")
    names = dict(line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()) if path else {}
    return f"the library's {names[key]}" if (key := digest(instance)) in names else "not of the library"


def check(certificate: Mapping[str, Any], instance: Mapping[str, Any] | None = None, cases: Any = None) -> str:
    """What a certificate (as read from its file) proves, in words; Refused if nothing, or about another instance.

    Whoever gives other ``cases`` than those of the writer has to believe them as well.
    """
    collecting = gc.isenabled()
    gc.disable()  # a case has millions of tuples, which are looked through again and again
    try:
        own, bound, proof = certificate["instance"], certificate["bound"], certificate["proof"]
        if type(schema := certificate["schema"]) is not int or schema != SCHEMA or type(bound) not in (int, NoneType):
            raise Refused("expected schema 1 and a bound that is an integer or null")
        if instance is not None and instance_hash(instance) != instance_hash(own):
            raise Refused(f"about instance {instance_hash(own)}, not {instance_hash(instance)}")
        writer = writer_of(own["problem"])
        reason = strange(own, getattr(writer, "SHAPE", None), getattr(writer, "LEAST", {}))
        if reason := reason or getattr(writer, "fault", lambda _: None)(own):
            raise Refused(reason)
        limit = NONE[writer.SENSE] if bound is None else bound
        if hasattr(writer, "program"):
            refuted(writer.program(own, limit, Program), proof)
        elif hasattr(writer, "cases"):
            for name, case in (cases or writer.cases)(own, limit, Program, tuple(proof)):
                if not callable(case):
                    refuted(case, proof[name])
                elif (reason := case(proof[name])) is not None:
                    raise Refused(f"{name}: {reason}")
                del case
                if gc.get_count()[0] > GARBAGE:
                    gc.collect()
        elif (reason := writer.check(own, limit, proof)) is not None:
            raise Refused(reason)
        better = f"{'below' if writer.SENSE == 'min' else 'above'} {bound}"
        proven = "there is no plan" if bound is None else f"no plan has an objective {better}"
        return f"{own['name']} ({instance_hash(own)}): {proven}"
    except Exception as error:  # of whatever kind: the argument could not be followed
        raise error if isinstance(error, Refused) else Refused(f"malformed: {type(error).__name__}: {error}") from error
    finally:
        if collecting:
            gc.enable()


def read(path: Path) -> Any:
    """A JSON file, packed by gzip or not; Refused if it cannot be read, or is larger than any certificate."""
    try:
        if not path.is_file():  # a fifo would wait for a writer
            raise Refused("cannot be read: expected a regular file")
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise Refused(f"larger than {SIZE_LIMIT} bytes")
        return json.loads(data)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise Refused(f"cannot be read: {error}") from error


def late(*_: Any) -> None:
    raise Refused("not checked within --seconds of work")


def main() -> int:
    parser = argparse.ArgumentParser(description="Check certificates; standard library only.")
    parser.add_argument("certificates", nargs="+", type=Path)
    parser.add_argument("-i", "--instance", type=Path, help="expanded instance (JSON) that they must be about")
    parser.add_argument("-s", "--seconds", type=float, default=0.0, help="most seconds of work for each (default: any)")
    flags, failed = parser.parse_args(), 0
    signal.signal(signal.SIGPROF, late)
    for path in flags.certificates:
        try:
            signal.setitimer(signal.ITIMER_PROF, flags.seconds)
            found = read(path)
            proven = check(found, None if flags.instance is None else read(flags.instance))
            print(f"{path}: ok: {proven} [sha256 {digest(found['instance'])}, {known(found['instance'])}]")
        except Refused as reason:
            print(f"{path}: REFUSED: {reason}")
            failed = 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return failed


if __name__ == "__main__":
    sys.exit(main())
