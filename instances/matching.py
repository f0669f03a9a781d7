"""A place of its own for each of several things: how the devices of one instance are found among those of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def matching(allowed: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """A different place for each item, among those that it allows; ``None`` if there is none.

    Augmenting paths (Kuhn 1955). Places that an item names first are tried first.

    Parameters
    ----------
    allowed : sequence of sequence of int
        Places of every item.
    """
    holder: dict[int, int] = {}

    def place(item: int, seen: set[int]) -> bool:
        for where in allowed[item]:
            if where not in seen:
                seen.add(where)
                if where not in holder or place(holder[where], seen):
                    holder[where] = item
                    return True
        return False

    if not all(place(item, set()) for item in range(len(allowed))):
        return None
    found = {item: where for where, item in holder.items()}
    return tuple(found[item] for item in range(len(allowed)))


def placed(names: Sequence[str], offered: Sequence[str], fits: Callable[[int, int], bool]) -> tuple[int, ...] | None:
    """A different place for each named item where ``fits(item, place)``, of the same name if it can be.

    Parameters
    ----------
    names, offered : sequence of str
        Names of the items and of the places.
    """

    def places(name: str) -> list[int]:
        return sorted(range(len(offered)), key=lambda place: offered[place] != name)

    return matching([[place for place in places(name) if fits(item, place)] for item, name in enumerate(names)])
