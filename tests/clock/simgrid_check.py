"""Replays of the project beside SimGrid's, which is no dependency: no test, a script to run by hand.

    .venv/bin/python tests/clock/simgrid_check.py export plans.jsonl [MICROSECONDS]
    /usr/bin/python3 tests/clock/simgrid_check.py compare plans.jsonl       (Debian: apt-get install python3-simgrid)

``export`` writes the tasks of the library's best plans with what :mod:`mapgap.clock.replay` says of them on every
medium; with so many microseconds of latency between all boards if that is given. ``compare`` has SimGrid execute them:
every lane computes on a host of its own, and every move is a transfer over links of its lane, of its ports and of the
medium, with a latency of SimGrid's. In the order that is pinned a task begins when its lane, its ports and the medium
are free; ``fluid`` has moves begin at once and share links as SimGrid has it.
"""

import json
import os
import sys
from collections import Counter

MEDIA = ("links", "ports", "shared")
MOST = 4000
"""Tasks of a plan that is exported."""
ROUNDS = 4
"""Of rounds that overlap so many times as many as overlap are exported, and two more."""
RATE = 1e9


def export(path, late_us=0):
    from mapgap.catalogue import registry
    from mapgap.catalogue.files import load_instance, load_plan
    from mapgap.clock.replay import round_s
    from mapgap.evidence.ledger import Ledger

    book = Ledger.load()
    with open(path, "w") as file:
        for name, entry in book.entries.items():
            clock = registry.problems()[entry.problem].clock
            if entry.plan is None or clock is None or "@" in name:
                continue
            instance, plan = load_instance(name), load_plan(book.plan_path(name), entry.problem)
            delayed = instance
            if late_us:
                n = len(getattr(instance, "accelerators", None) or instance.devices)
                late = tuple(tuple(1000 * int(late_us) * (i != j) for j in range(n)) for i in range(n))
                delayed = next(instance.if_valid(latency_ns=late), None)
            if delayed is None:  # sums beyond what is safe in its ticks
                continue
            script = clock.script(delayed, plan, 1)
            rounds = ROUNDS * script.in_flight + 2 if script.in_flight else 1
            script = clock.script(delayed, plan, rounds)
            if len(script.tasks) > MOST:
                continue
            sooner = {t.name: t.seconds for t in clock.script(instance, plan, rounds).tasks}
            tasks = [
                {"name": t.name, "lane": t.lane, "seconds": t.seconds, "after": sorted(set(t.after))}
                | ({"move": [t.move.sender, t.move.receiver]} if t.move and t.move.bytes and t.seconds else {})
                | {"late": t.seconds - sooner[t.name]}
                for t in script.tasks
            ]
            row = {"problem": entry.problem, "instance": name, "tasks": tasks, "rounds": script.rounds}
            row["in_flight"] = script.in_flight
            row["ours"] = {medium: round_s(script, medium) for medium in MEDIA}
            print(json.dumps(row), file=file)


def needed(task, medium):
    """What a task takes for itself, by rule 2 of the replay."""
    found = [("lane", task["lane"])]
    if "move" in task:
        sender, receiver = task["move"]
        found += {"links": [], "ports": [("out", sender), ("in", receiver)], "shared": [("medium", "")]}[medium]
    return found


def simulated(row, medium, *, fluid):
    """Seconds of a round in SimGrid."""
    import simgrid

    tasks, scale = row["tasks"], 1e6 / max(row["ours"].values())  # a tick is far more than SimGrid's precision
    options = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "surf/precision:1e-3")
    engine = simgrid.Engine(["check", "--log=root.thres:critical", *(f"--cfg={option}" for option in options)])
    zone = simgrid.NetZone.create_full_zone("boards")
    hosts, links = {}, {}

    def host(name):
        if name not in hosts:
            hosts[name] = zone.create_host(name, RATE).seal()
        return hosts[name]

    pairs = {}

    def route_of(task):
        return (task["lane"], *task["move"], task["late"]) if "move" in task else (task["lane"],)

    for task in tasks:
        key = route_of(task)
        if key in pairs:
            continue
        pairs[key] = [host(f"{key}/{side}") for side in ("from", "to")] if "move" in task else [host(str(key))]
        if "move" in task:
            for each in needed(task, medium):
                if each not in links:
                    links[each] = zone.create_link(str(each), RATE).set_latency(0).seal()
            route = [simgrid.LinkInRoute(links[each]) for each in needed(task, medium)]
            if task["late"]:
                delay = zone.create_link(f"late {key}", 1e3 * RATE).set_latency(task["late"] * scale).seal()
                route.append(simgrid.LinkInRoute(delay))
            zone.add_route(*(each.netpoint for each in pairs[key]), None, None, route, False)
    zone.seal()
    left = {task["name"]: len(task["after"]) for task in tasks}
    behind = {}
    for k, task in enumerate(tasks):
        for name in task["after"]:
            behind.setdefault(name, []).append(k)
    waiting = [(0.0, k) for k, task in enumerate(tasks) if not task["after"]]
    busy, start, end = set(), {}, {}

    def taken(task):
        return needed(task, "links" if fluid else medium)

    def run(k):
        task, where = tasks[k], pairs[route_of(tasks[k])]
        work = (task["seconds"] - (task["late"] if "move" in task else 0)) * scale * RATE
        start[task["name"]] = engine.clock
        if "move" in task:
            simgrid.Comm.sendto(*where, int(work))
        elif work:
            simgrid.this_actor.execute(work)
        end[task["name"]] = engine.clock
        busy.difference_update(taken(task))
        for each in behind.get(task["name"], ()):
            left[tasks[each]["name"]] -= 1
            if not left[tasks[each]["name"]]:
                waiting.append((round(engine.clock, 2), each))
        for _ in range(3):  # whatever else ends at this moment
            simgrid.this_actor.yield_()
        dispatch()

    def dispatch():
        kept, begun = [], []  # no call of SimGrid before both are complete: others may run in it
        for since, k in sorted(waiting):
            if busy.isdisjoint(taken(tasks[k])):
                busy.update(taken(tasks[k]))
                begun.append(k)
            else:
                kept.append((since, k))
        waiting[:] = kept
        for k in begun:
            simgrid.Actor.create(str(k), pairs[route_of(tasks[k])][0], run, k)

    simgrid.Actor.create("begin", next(iter(hosts.values())), dispatch)
    engine.run()
    ends = [max(end[name] for name in names) for names in row["rounds"]]
    if not row["in_flight"]:
        return (ends[-1] - min(start.values())) / len(ends) / scale
    first = row["in_flight"]
    count = (len(ends) - 1 - 2 * first) // first * first
    return (ends[first + count] - ends[first]) / count / scale


def apart(*arguments, **options):
    """The same in a process of its own: an engine is one per process."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            found = simulated(*arguments, **options)
            os.write(writer, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.wait()
    return json.loads(said) if said else None


def compare(path):
    within, ratios = Counter(), {}
    with open(path) as file:
        for line in file:
            row = json.loads(line)
            for medium in MEDIA:
                for fluid in (False, True):
                    key, found = (row["problem"], medium, fluid), apart(row, medium, fluid=fluid)
                    if found is None:
                        print("failed", row["instance"], medium, fluid)
                        continue
                    ratio = found / row["ours"][medium]
                    ratios.setdefault(key, []).append(ratio)
                    within[key] += abs(ratio - 1) <= 0.005
                    if not fluid and abs(ratio - 1) > 0.005:
                        print(f"{row['instance']} {medium}: {ratio:.5f}")
    for key, found in sorted(ratios.items()):
        order = sorted(found)
        print(
            f"{key[0]:22} {key[1]:7} {'fluid ' if key[2] else 'pinned'} {within[key]:3} of {len(found):3} within 0.5 %;"
            f" SimGrid over ours: {order[0]:.4f} median {order[len(order) // 2]:.4f} {order[-1]:.4f}"
        )


if __name__ == "__main__":
    {"export": export, "compare": compare}[sys.argv[1]](*sys.argv[2:])
