"""A place of its own for each of several things: how the devices of one instance are found among those of another."""

from __future__ import annotations

from collections.abc import Sequence


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


def same_first(name: str, names: Sequence[str]) -> list[int]:
    """All places, those of that name first."""
    return sorted(range(len(names)), key=lambda place: names[place] != name)
