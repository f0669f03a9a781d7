"""What the tests of certificates share: asking the checker, and damaging proofs and instances."""

import copy
import json

from mapgap.evidence import check


def accepted(instance, bound, proof):
    """Does the checker believe that no plan is better than the bound?"""
    try:
        check.check({"schema": 1, "instance": instance, "bound": bound, "proof": proof})
    except check.Refused:
        return False
    return True


def numbers(value, path=()):
    """Paths of all integers of nested lists and dictionaries."""
    if type(value) is int:
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, (*path, key))
    elif isinstance(value, (list, tuple)):
        for k, part in enumerate(value):
            yield from numbers(part, (*path, k))


def lists(value, path=()):
    """Paths of all lists that are not empty."""
    if isinstance(value, list) and value:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from lists(part, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def damaged(rng, value):
    """A copy with one integer changed, or one entry of a list gone, doubled or exchanged for another one."""
    value = json.loads(json.dumps(value))
    places, rows = list(numbers(value)), list(lists(value))
    if places and (not rows or rng.random() < 0.7):
        *front, last = rng.choice(places)
        number = at(value, front)[last]
        at(value, front)[last] = rng.choice(
            [number + 1, number - 1, 2 * number, number // 2, 0, -number, number + rng.randint(-9, 9)]
        )
    elif rows:
        row = at(value, rng.choice(rows))
        k, other = rng.randrange(len(row)), rng.randrange(len(row))
        change = rng.choice(["drop", "double", "swap"])
        if change == "drop":
            del row[k]
        elif change == "double":
            row.insert(other, copy.deepcopy(row[k]))
        else:
            row[k], row[other] = row[other], row[k]
    return value
