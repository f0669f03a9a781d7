"""A second writer of multi-model splitting, made from the rules apart from the first; standard library only.

Variables bear names that say what they stand for; :func:`tasks` and :func:`needs` say what that costs, and a row of a
unit or a memory goes through *all* names. The first writer sums up while it makes its variables.

    ("segment", p, i, j, d)     layers i to j - 1 of pipeline p are a segment on device d
    ("first", p, s, d)          it is sensed on s, and its first segment is on d
    ("final", p, d, t)          its last segment is on d, and its target is t
    ("late", p, k, d, e)        boundary k goes from segment to segment, from d to e, later than to others
    ("sensing", p, s)           an earlier pipeline of the signal has sensed on s: not paid again
    ("sending", p, 0, s, d)     and has sent the input from s to d
    ("same", p, q, k)           up to boundary k pipeline p has the segments of its twin q, cut at k
    ("equal", p, q, i, j, d)    this segment is one of both, and the same task
    ("moving", p, q, k, d, e)   so is the transfer of boundary k
    ("again", p, i, j, d)       the segment is the same task in some twin: not paid again
    ("sending", p, k, d, e)     so is the transfer
    ("cycle",)                  the cycle time
"""

from itertools import combinations, permutations, product

UNITS = ("sensor", "mcu", "accelerator", "radio")
REFUNDS = ("sensing", "sending", "again")


def latency(instance, p, k, d, e=None):
    """Ticks of a message beside its bytes (rule 14); without a receiver the least. No bytes are no message."""
    table = instance.get("latency_ns") or []
    if not table or not instance["pipelines"][p]["boundaries"][k]["bytes"]:
        return 0
    own = {other: (ns + instance["tick_ns"] - 1) // instance["tick_ns"] for other, ns in enumerate(table[d])}
    own.pop(d)
    return min(own.values(), default=0) if e is None else own[e]


def sends(instance, p, k, d, e=None):
    """Ticks of a transmission, rule 14 included."""
    return instance["pipelines"][p]["boundaries"][k]["transmit"][d] + latency(instance, p, k, d, e)


def tasks(instance, name):
    """What a name makes a pipeline do, as ``(device, unit, ticks)``: the table of the six tasks, rules 2 and 3."""
    kind, p, *place = name
    pipeline = instance["pipelines"][p]
    cuts, last = pipeline["boundaries"], len(pipeline["layers"])
    found = []
    moves = []
    if kind in ("segment", "again"):
        i, j, d = place
        found.append((d, "mcu", cuts[i]["load"][d] + cuts[j]["unload"][d]))
        found.append((d, "accelerator", sum(layer["inference"][d] for layer in pipeline["layers"][i:j])))
        if kind == "segment":  # its transfers are refunded by themselves
            found += [(d, "radio", cuts[i]["receive"][d])] * (i > 0)
            found += [(d, "radio", sends(instance, p, j, d))] * (j < last)
    elif kind in ("first", "sensing"):
        found.append((place[0], "sensor", pipeline["sensing"][place[0]]))
        moves += [(0, *place)] * (kind == "first")
    elif kind == "final":
        moves.append((last, *place))
    elif kind == "sending":
        moves.append(place)
    elif kind == "late":
        found.append((place[1], "radio", beyond(instance, p, *place)))
    for k, d, e in moves:
        if d != e:
            found += [(d, "radio", sends(instance, p, k, d, e)), (e, "radio", cuts[k]["receive"][e])]
    return found


def beyond(instance, p, k, d, e):
    return latency(instance, p, k, d, e) - latency(instance, p, k, d)


def transmitted(instance, name):
    """Ticks that a name makes a pipeline transmit, which one medium is taken for (rule 13)."""
    kind, p, *place = name
    last = len(instance["pipelines"][p]["layers"])
    if kind == "segment":
        return sends(instance, p, place[1], place[2]) if place[1] < last else 0
    if kind == "late":
        return beyond(instance, p, *place)
    moves = {"first": [0, *place], "final": [last, *place], "sending": place}
    k, d, e = moves.get(kind, [0, 0, 0])
    return sends(instance, p, k, d, e) if d != e else 0


def needs(instance, name, resource):
    """What the layers of a segment, or of a refunded one, take of the memory of their device (rule 7)."""
    _, p, i, j, _ = name
    return sum(1 if resource == "layers" else layer[resource] for layer in instance["pipelines"][p]["layers"][i:j])


def permitted(instance, p, role):
    """Devices that satisfy a requirement (rule 8)."""
    wanted = instance["pipelines"][p][role]
    offers = "sensors" if role == "source" else "interfaces"
    return [
        d
        for d, device in enumerate(instance["devices"])
        if (wanted["device"] in (None, device["name"]))
        and (wanted["device"] is not None or wanted["type"] is None or wanted["type"] in device[offers])
    ]


def worthwhile(instance, name, most):
    """May the segment be part of a plan of at most this objective, by itself?"""
    device = instance["devices"][name[-1]]
    if any(needs(instance, name, resource) > device[resource] for resource in ("weights", "bias", "layers")):
        return False
    spent = dict.fromkeys(UNITS, 0)
    for _, unit, ticks in tasks(instance, name):
        spent[unit] += ticks
    return (max if instance["objective"] == "throughput" else sum)(spent.values()) <= most


def program(instance, bound):
    """``variables`` (name: bounds, in the order of the first writer), ``rows``, ``products`` and ``cutoff``."""
    devices, count = range(len(instance["devices"])), len(instance["pipelines"])
    names, rows = [], set()

    def row(terms, most):
        rows.add((frozenset(terms.items()), most))

    def equation(terms, value):
        row(terms, value)
        row({name: -a for name, a in terms.items()}, -value)

    def having(kind, p, **fixed):
        """All names of a kind of a pipeline at given places."""
        keys = {"segment": "ijd", "first": "sd", "final": "dt"}[kind]
        return [n for n in names if n[:2] == (kind, p) and all(n[2 + keys.index(k)] == v for k, v in fixed.items())]

    def minus(*groups):
        """The first group of names against the others."""
        return {name: 1 if g == 0 else -1 for g, group in enumerate(groups) for name in group}

    def only_if(name, *groups):
        names.append(name)
        for group in groups:
            row(minus([name], group), 0)

    # The way of every pipeline over the devices (rule 1).
    for p, pipeline in enumerate(instance["pipelines"]):
        last = len(pipeline["layers"])
        segments = [("segment", p, i, j, d) for d in devices for i, j in combinations(range(last + 1), 2)]
        names += [name for name in segments if worthwhile(instance, name, bound - 1)]
        names += [("first", p, s, d) for s, d in product(permitted(instance, p, "source"), devices)]
        names += [("final", p, d, t) for d, t in product(devices, permitted(instance, p, "target"))]
        for d in devices:
            row(minus(having("segment", p, d=d)), 1)
            equation(minus(having("first", p, d=d), having("segment", p, i=0, d=d)), 0)
            equation(minus(having("final", p, d=d), having("segment", p, j=last, d=d)), 0)
        equation(minus(having("segment", p, i=0)), 1)
        for k in range(1, last):
            equation(minus(having("segment", p, j=k), having("segment", p, i=k)), 0)
        for k, (d, e) in product(range(1, last), permutations(devices, 2)):
            sides = having("segment", p, j=k, d=d), having("segment", p, i=k, d=e)
            if all(sides) and beyond(instance, p, k, d, e):
                names.append(("late", p, k, d, e))
                row(minus([name for side in sides for name in side], [names[-1]]), 1)

    # What an earlier pipeline has done already (rule 9).
    def arrives(p, k, d):
        last = len(instance["pipelines"][p]["layers"])
        return having("final", p, t=d) if k == last else having("segment", p, i=k, d=d)

    for p in range(count) if instance["sharing"] else ():
        pipeline = instance["pipelines"][p]
        earlier = [
            q for q in range(p) if pipeline["signal"] and instance["pipelines"][q]["signal"] == pipeline["signal"]
        ]
        sources, last = permitted(instance, p, "source"), len(pipeline["layers"])
        if not earlier:
            continue
        for s in sources:
            only_if(
                ("sensing", p, s), having("first", p, s=s), [name for q in earlier for name in having("first", q, s=s)]
            )
        for s, d in product(sources, devices):
            if s != d:
                sent = [name for q in earlier for name in having("first", q, s=s, d=d)]
                only_if(("sending", p, 0, s, d), [("first", p, s, d)], sent)
        twins = [q for q in earlier if instance["pipelines"][q]["model"] == pipeline["model"]]
        for q in twins:
            names += [("same", p, q, k) for k in range(last + 1)]
            for s in sources:
                row({("same", p, q, 0): 1} | minus(having("first", p, s=s), having("first", q, s=s)), 1)
            for name in having("segment", p):
                other = ("segment", q, *name[2:])
                only_if(("equal", p, q, *name[2:]), [name], [other], [("same", p, q, name[2])])
            for k in range(1, last + 1):
                ended = [name for name in names if name[:3] == ("equal", p, q) and name[4] == k]
                row(minus([("same", p, q, k)], ended), 0)
                for d, e in permutations(devices, 2):
                    sides = [side for r in (p, q) for side in (having("segment", r, j=k, d=d), arrives(r, k, e))]
                    if all(sides):
                        only_if(("moving", p, q, k, d, e), [("same", p, q, k)], *sides)
        for name in having("segment", p) if twins else ():
            only_if(("again", p, *name[2:]), [name], [("equal", p, q, *name[2:]) for q in twins])
        moving = [name for name in names if name[:2] == ("moving", p)]
        for place in dict.fromkeys(name[3:] for name in moving):  # as they appear, twin after twin
            only_if(("sending", p, *place), [name for name in moving if name[3:] == place])

    # Memories (rule 7), units (rule 4) and the objective (rules 5 and 6).
    for d, resource in product(devices, ("weights", "bias", "layers")):
        held = {n: needs(instance, n, resource) for n in names if n[0] in ("segment", "again") and n[-1] == d}
        row({n: -a if n[0] == "again" else a for n, a in held.items() if a}, instance["devices"][d][resource])
    loads = {place: {} for place in product(devices, UNITS)}
    total = {}
    for name in names:
        for d, unit, ticks in tasks(instance, name):
            sign = -1 if name[0] in REFUNDS else 1
            load = loads[d, unit]
            load[name] = load.get(name, 0) + sign * ticks
            if sign > 0:  # a merged task counts in the latency of each pipeline (rule 9)
                total[name] = total.get(name, 0) + ticks
    if instance.get("medium") == "shared":
        loads["medium"] = {name: (-1 if name[0] in REFUNDS else 1) * transmitted(instance, name) for name in names}
    variables = dict.fromkeys(names, (0, 1))
    if instance["objective"] == "throughput":
        reached = max(sum(a for a in load.values() if a > 0) for load in loads.values())
        variables["cycle",] = (0, min(bound - 1, reached))
        for load in loads.values():
            row({n: a for n, a in load.items() if a} | {("cycle",): -1}, 0)
        cutoff = (frozenset({("cycle",): 1}.items()), min(bound - 1, reached))
    else:
        total = {n: a for n, a in total.items() if a}
        cutoff = (frozenset(total.items()), min(bound - 1, sum(total.values())))
    rows.add(cutoff)
    return {"variables": variables, "rows": rows, "products": [], "cutoff": cutoff}
