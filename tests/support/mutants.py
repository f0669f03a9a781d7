"""Files, plans and lines of run files, changed at random: what a disk, an editor or an enemy makes of them."""

import copy
import json

#: Values that break a reader which expects something else.
EVIL = (
    None, True, False, 0, -1, 1, 2, 7, 10**6, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0,
    1e308, float("inf"), float("-inf"), float("nan"), "", " ", "x", "0", "1e9", "[/b]", "$\\frac", "\u001b[31mred",
    "\x00", "\ud800", "é" * 50, "a" * 10_000, "../../x", "=cmd()", "<script>alert(1)</script>", [], [[]], [1, [2]],
    {}, {"a": 1}, [{}], [None], "2001-01-01", "1:30", "~", "NaN", "!!int", "&a *a",
)  # fmt: skip
#: Text that means something to YAML.
SNIPPETS = (
    "!!bool foo", '!!int ""', "!!python/object:os.system x", "!!binary x", "!!set {a}", "&a [*a]", "*a", "<<: *a", "? ",
    "[" * 900, "{" * 300, "]" * 5, "- " * 200, "|\n", ">\n", "%YAML 9.9\n", "---\n", "...\n", "\t", "\x00", "\x1b[2J",
    "\u2028", "0x" + "f" * 6000, "9" * 6000, "1e99999", ".inf", ".nan", "2001-13-45", "1:99:99", "0o9", "0b2", "08",
    "\ufeff", "'", '"', "#", ": ", ", ", "\\", "é", "=", "!", "&", "*", "@", "`", "null", "~", "yes",
)  # fmt: skip


def leaves(data, path=()):
    """The paths of all values, lists and mappings included."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))


def at(data, path):
    for step in path:
        data = data[step]
    return data


def replaced(data, path, value):
    """The data with another value at a path."""
    if not path:
        return value
    data = copy.deepcopy(data)
    at(data, path[:-1])[path[-1]] = value
    return data


def near(rng, value):
    """A value of the same kind: these are the changes that validation may accept."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near_by = (value + 1, value - 1, value * 2, value // 2, value * 1000, value << 20, value << 40, 0, 1, -value)
        return rng.choice(near_by)
    if isinstance(value, float):
        return rng.choice((value * 2, value / 2, value * 1e6, value / 1e6, 0.0, -value))
    if isinstance(value, str):
        return rng.choice((value[:-1], value + "x", value.upper(), value * 100))
    if isinstance(value, list):
        kept = list(value)
        if kept:
            rng.choice((kept.pop, kept.reverse, lambda: kept.append(kept[0]), lambda: rng.shuffle(kept)))()
        return kept
    return value


def changed(rng, data, times=None):
    """Data with one to three values replaced, removed, added or doubled."""
    for _ in range(times or rng.choice((1, 1, 1, 2, 3))):
        paths = list(leaves(data))
        path = rng.choice(paths[1:] or paths)
        what = rng.random()
        if what < 0.5:
            data = replaced(data, path, near(rng, at(data, path)))
        elif what < 0.8:
            data = replaced(data, path, rng.choice(EVIL))
        elif path and what < 0.9:
            data = copy.deepcopy(data)
            holder = at(data, path[:-1])
            del holder[path[-1]]
        elif path:
            data = copy.deepcopy(data)
            holder = at(data, path[:-1])
            if isinstance(holder, dict):
                holder[rng.choice(("colour", "x" * 300, "\x1b", "<<", "1", str(path[-1]) + "s"))] = rng.choice(EVIL)
            else:
                holder.insert(path[-1], rng.choice(EVIL))
    return data


def torn(rng, text):
    """Text with bytes flipped, cut, doubled or put in; as bytes, for it may be no text any more."""
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(rng.choice((1, 1, 2, 3))):
        k, j = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        what = rng.randrange(6)
        if what == 0 and data:
            k = rng.randrange(len(data))
            data = data[:k] + bytes([rng.randrange(256)]) + data[k + 1 :]
        elif what == 1:
            data = data[:k]
        elif what == 2:
            data = data[:k] + data[j:]
        elif what == 3:
            data = data[:j] + data[k : k + 300] + data[j:]
        elif what == 4:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
        else:
            data = data[:k] + rng.choice(SNIPPETS).encode("utf-8", "surrogatepass") + data[k:]
    if rng.random() < 0.02:
        data = data.decode("utf-8", "replace").encode("utf-16")
    return data


def as_text(data):
    """JSON, which is YAML as well; numbers and characters that JSON does not have are written all the same."""
    return json.dumps(data, indent=1)
