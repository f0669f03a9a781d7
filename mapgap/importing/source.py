"""Files as bytes, text and data; every value of JSON and YAML data knows where it stands."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from mapgap.catalogue import registry
from mapgap.catalogue.document import read as read_document
from mapgap.catalogue.document import shown
from mapgap.core import Finding, InputError, Location
from mapgap.core.storage import kind_of, read_bytes

LARGEST = 1e15
"""No time, size or count of a profile is beyond it."""
LARGEST_FILE = 2**30
#: The escape of one half of a surrogate pair without the other one; or the same after an escaped backslash.
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def _has_halves(data: Any) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def located(path: Path) -> Path:
    """The path, or the file of the library's foreign files that carries this name (``pipedream/vgg16.graph.txt``)."""
    shipped = registry.folder("instances") / "foreign" / path
    return shipped if not path.exists() and not path.is_absolute() and shipped.exists() else path


@dataclass(frozen=True)
class Source:
    """A file, or a folder of JSON files.

    Attributes
    ----------
    path : Path
    data : bytes
        Of a folder: empty.
    """

    path: Path
    data: bytes

    @classmethod
    def open(cls, path: Path) -> Source:
        """Read a file.

        Raises
        ------
        InputError
            It is missing, empty, unreadable, no regular file or larger than 1 GiB.
        """
        path = located(path)
        if kind_of(path) == "a folder":
            return cls(path, b"")
        data = read_bytes(path, limit=LARGEST_FILE)
        if not data.strip():
            raise InputError(f"{path}: expected a model or a profile, found an empty file")
        return cls(path, data)

    @cached_property
    def sha256(self) -> str:
        """Of the file; of a folder, of its JSON files one after the other."""
        if not self.path.is_dir():
            return hashlib.sha256(self.data).hexdigest()
        return hashlib.sha256(b"".join(read_bytes(path) for path in sorted(self.path.glob("*.json")))).hexdigest()

    @cached_property
    def text(self) -> str | None:
        """The file as text; ``None`` if it is none."""
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text

    @cached_property
    def json(self) -> Any:
        """The file as JSON data; ``None`` if it is none.

        Raises
        ------
        InputError
            A text of it has half a character, which no file can hold.
        """
        if self.text is None or self.text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            data = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        half = _HALF.search(self.text) if "\\u" in self.text else None
        if half and _has_halves(data):
            line = self.text.count("\n", 0, half.start()) + 1
            column = half.start() - self.text.rfind("\n", 0, half.start())
            found = f"expected whole characters, found one half of a pair: {half[0]}"
            raise InputError(Finding(found, place=f"{self.path}:{line}:{column}"))
        return data

    @cached_property
    def yaml(self) -> Any:
        """The file as YAML data, parsed with the care of instance files; ``None`` if it is none."""
        if self.text is None:
            return None
        try:
            document = read_document(self.path)
            document.raise_findings()
        except (InputError, RecursionError, ValueError):
            return None
        return document.data

    def broken(self) -> Finding | None:
        """What is wrong with a file that looks like JSON and is none."""
        if self.text is None or self.text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            json.loads(self.text)
        except json.JSONDecodeError as error:
            place = f"{self.path}:{error.lineno}:{error.colno}"
            return Finding(f"expected valid JSON, found: {error.msg}", place=place)
        except (ValueError, RecursionError) as error:
            return Finding(f"expected JSON of numbers, texts, lists and mappings, found: {error}", place=str(self.path))
        return None

    @property
    def root(self) -> Value:
        """JSON or YAML data with places."""
        return Value(self.json if self.json is not None else self.yaml, str(self.path))


@dataclass(frozen=True)
class Value:
    """A value of a file; what is wrong with it is said with its place."""

    data: Any
    file: str
    location: Location = ()
    name: str = ""

    def wrong(self, expected: str) -> NoReturn:
        """Raise that something else was expected.

        Raises
        ------
        InputError
        """
        text = f"expected {expected}, found {shown(self.data)}"
        raise InputError(Finding(text, self.location, self.name, self.file))

    def has(self, key: str) -> bool:
        return isinstance(self.data, dict) and key in self.data

    def __getitem__(self, key: str) -> Value:
        """A field that must exist."""
        mapping = self.mapping()
        if key not in mapping:
            known = ", ".join(list(mapping)[:8])
            text = f"expected the field {key!r}, found {known or 'none'}"
            raise InputError(Finding(text, self.location, self.name, self.file))
        return self._inner(mapping[key], key)

    def _inner(self, data: Any, part: str | int) -> Value:
        return Value(data, self.file, (*self.location, part), self.name)

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.data, dict):
            self.wrong("a mapping")
        return self.data

    def fields(self) -> Iterator[tuple[str, Value]]:
        """Keys and values of a mapping."""
        for key, data in self.mapping().items():
            yield str(key), self._inner(data, str(key))

    def items(self) -> list[Value]:
        """Values of a list."""
        if not isinstance(self.data, list):
            self.wrong("a list")
        return [self._inner(data, k) for k, data in enumerate(self.data)]

    def called(self, name: str) -> Value:
        """The same value, with what people call it."""
        return Value(self.data, self.file, self.location, name)

    def number(self, most: float = LARGEST) -> float:
        """A finite number from 0 on; text that is one counts."""
        value = self.data
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                self.wrong("a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong("a number")
        if not (math.isfinite(value) and 0 <= value <= most):
            self.wrong(f"a number from 0 to {most:g}")
        return float(value)

    def whole(self, least: int = 0, most: float = LARGEST) -> int:
        """A whole number."""
        value = self.number(most)
        if value != int(value) or value < least:
            self.wrong(f"a whole number from {least} on")
        return int(value)

    def text(self) -> str:
        if not isinstance(self.data, str) or not self.data:
            self.wrong("text")
        return str(self.data)
