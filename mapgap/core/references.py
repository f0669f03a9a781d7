"""References: declarations name what they need, and it is imported when it is used."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

Reference = str
"""``package.module:name``: an object that is imported when it is needed, and not before."""


@cache
def _imported(reference: Reference) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def resolve(thing: Any) -> Any:
    """The object that a :data:`Reference` names; anything else as it is.

    Raises
    ------
    ImportError, AttributeError
        The reference names nothing.
    """
    return _imported(thing) if isinstance(thing, str) else thing


T = TypeVar("T")


class Referred(Generic[T]):
    """A field of a declaration that is given as a :data:`Reference` or as the object itself, and read as the object."""

    def __init__(self, *default: T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> T:
        if instance is None:  # the dataclass asks for the default
            if not self.default:
                raise AttributeError(self.name)
            return self.default[0]
        found: T = resolve(vars(instance)[self.name])
        return found

    def __set__(self, instance: object, value: Reference | T) -> None:
        vars(instance)[self.name] = value


def lazily(package: str, *modules: str) -> Callable[[str], Any]:
    """``__getattr__`` of a package that re-exports names of its modules: they are imported when a name is asked for.

    So a package can be the contents page of its room and still cost nothing to those who only read the page.
    """

    def find(name: str) -> Any:
        for module in () if name.startswith("_") else modules:
            home = importlib.import_module(f"{package}.{module}")
            if hasattr(home, name):
                return getattr(home, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


class CallablePackage(types.ModuleType):
    """A package that is also the function of the public interface which lists what it holds.

    ``mapgap.problems`` is the home of all problems; ``mapgap.problems()`` names them.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return resolve(f"mapgap.interface.functions:{self.__name__.rpartition('.')[2]}")(*arguments, **named)
