"""Instances with parts changed, left out or in another order: what cases, smaller instances and relations share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mapgap.core import Case, Frozen, InstanceBase, Relation

Item = TypeVar("Item")
Part = TypeVar("Part", bound=Frozen)


def edited(part: Part, **changes: Any) -> Part:
    """A part with other values of some fields; the instance around it is what gets checked."""
    return part.model_copy(update=changes)


def each(parts: Iterable[Part], change: Callable[[Part], Mapping[str, Any]]) -> tuple[Part, ...]:
    """All parts, each with the values that ``change`` has for it."""
    return tuple(part.model_copy(update=change(part)) for part in parts)


def replaced(items: Sequence[Item], index: int, new: Item) -> tuple[Item, ...]:
    """The items with another one at a place."""
    return (*items[:index], new, *items[index + 1 :])


def without(items: Sequence[Item], index: int) -> tuple[Item, ...]:
    """The items but one."""
    return (*items[:index], *items[index + 1 :])


def ordered(items: Sequence[Item], order: Iterable[int]) -> tuple[Item, ...]:
    """The items with these indices, in this order."""
    return tuple(items[i] for i in order)


def square(matrix: Sequence[Sequence[Item]], order: Sequence[int]) -> tuple[tuple[Item, ...], ...]:
    """Rows and columns with these indices, in this order."""
    return tuple(ordered(matrix[i], order) for i in order)


def mapped(rows: Iterable[Iterable[Item]], change: Callable[[Item], Item]) -> tuple[tuple[Item, ...], ...]:
    """A table with every entry changed."""
    return tuple(tuple(map(change, row)) for row in rows)


def case(instance: InstanceBase, label: str, **changes: Any) -> Case:
    """One side of a case split.

    Raises
    ------
    pydantic.ValidationError
    """
    return Case(label, instance.changed(name=f"{instance.name}, {label}", **changes))


def related(
    instance: InstanceBase, label: str, factor: int = 1, *, equal: bool = True, **changes: Any
) -> Iterator[Relation]:
    """The relation to the changed instance, unless that is none (its sums may leave the safe range)."""
    for changed in instance.if_valid(name=f"{instance.name}, {label}", **changes):
        yield Relation(label, changed, factor, equal)
