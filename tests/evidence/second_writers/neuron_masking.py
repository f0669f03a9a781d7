"""A second checker of neuron masking, made from the rules apart from the first; standard library only.

It reads the same proofs, and computes otherwise. The first finds the maximum of the Lagrangian over a box by envelopes
of lines; here it is found by halving: the more neurons a layer keeps, the dearer are those of the layer before, so the
best count before falls (weakly), and the best one of a count in the middle parts the search on both sides of it. Masks
are listed from the first layer to the last, and each is priced by Eqs. (1) to (5) as they stand.
"""

from itertools import accumulate

HOUR = 3_600_000
"""Milliseconds."""
SHARE = 10_000


class Device:
    """One device under one cycle time."""

    def __init__(self, instance, device, cycle):
        self.instance, self.own, self.cycle = instance, instance["devices"][device], cycle
        self.layers = instance["layers"]
        own, time = self.own, self.own["time_limit"][cycle] - self.own["overhead"]
        move, spill = own["transfer"], own["spill"]
        # Eq. (5) as rows a W + b M <= c, without what Eqs. (3) and (4) round up.
        self.rows = [(1, 0, own["work_limit"][cycle]), (move["per"], move["ticks"], move["per"] * time)]
        if instance["memory_mode"] == "hard":
            self.rows.append((0, 1, own["memory_limit"]))
        else:  # S >= M - b_M
            both = move["per"] * spill["per"]
            extra = spill["ticks"] * move["per"]
            most = both * time + extra * own["memory_limit"]
            self.rows.append((both, move["ticks"] * spill["per"] + extra, most))
        if instance["objective"] == "neurons":
            self.worth = [range(layer["neurons"] + 1) for layer in self.layers]
        else:
            self.worth = [list(accumulate(sorted(row, reverse=True), initial=0)) for row in own["contributions"]]

    def fits(self, kept):
        """Eqs. (1) to (5)."""
        pairs = [b * a for b, a in zip((self.instance["inputs"], *kept), kept, strict=False)]
        work = sum(layer["work"] * pair for layer, pair in zip(self.layers, pairs, strict=True))
        facts = zip(self.layers, pairs, kept, strict=True)
        memory = sum(layer["weights"] * pair + layer["features"] * n for layer, pair, n in facts)
        own, room = self.own, self.own["memory_limit"]
        over = max(0, memory - room) if self.instance["memory_mode"] == "spill" else 0
        rates = ((own["transfer"], memory), (own["spill"], over))
        ticks = work + own["overhead"] + sum(-(-rate["ticks"] * units // rate["per"]) for rate, units in rates)
        in_time = ticks <= own["time_limit"][self.cycle] and work <= own["work_limit"][self.cycle]
        return in_time and (self.instance["memory_mode"] == "spill" or memory <= room)

    def reaches(self, share):
        """Is there a mask that keeps at least this share of every layer?"""
        least = [max(layer["least"], -(-share * layer["neurons"] // SHARE)) for layer in self.layers]
        return all(n <= layer["neurons"] for n, layer in zip(least, self.layers, strict=True)) and self.fits(least)

    def bounded(self, limit, steps):
        """Do the steps show that no mask is worth more than the limit?"""
        left = iter(steps)
        return self.empty([range(y["least"], y["neurons"] + 1) for y in self.layers], limit, left) and not [*left]

    def empty(self, box, limit, steps):
        """Do the next steps show that no mask of the box is worth more than the limit?"""
        if not all(box) or not self.fits([counts[0] for counts in box]):
            return True
        kind, *numbers = next(steps)
        assert all(type(number) is int for number in numbers)
        if kind == "s":
            i, v = numbers
            assert 0 <= i < len(box)
            parts = [[n for n in box[i] if n <= v], [n for n in box[i] if n > v]]
            return all(self.empty([*box[:i], part, *box[i + 1 :]], limit, steps) for part in parts)
        assert kind in ("m", "e")
        priced = Priced(self, box, *numbers)
        if kind == "e":
            masks = priced.reaching(limit + 1)
            return not any(self.fits(mask) and self.value(mask) > limit for mask in masks)
        spans = [
            [n for n, most in zip(c, mosts, strict=True) if most >= priced.scale * (limit + 1)]
            for c, mosts in zip(box, priced.most(), strict=True)
        ]
        return self.empty([range(s[0], s[-1] + 1) if s else [] for s in spans], limit, steps)

    def value(self, mask):
        return sum(worth[n] for worth, n in zip(self.worth, mask, strict=True))


class Priced:
    """``scale value + sum of y (c - a W - b M)`` over a box: what each count adds, less a price of each pair."""

    def __init__(self, device, box, scale, *multipliers):
        assert scale > 0
        assert min(multipliers) >= 0
        rows = list(zip(multipliers, device.rows, strict=True))
        work, memory, self.free = (sum(y * row[k] for y, row in rows) for k in range(3))
        self.box, self.scale = box, scale
        self.price = [work * layer["work"] + memory * layer["weights"] for layer in device.layers]
        facts = zip(box, device.layers, device.worth, strict=True)
        self.alone = [
            [scale * worth[n] - memory * layer["features"] * n for n in counts] for counts, layer, worth in facts
        ]
        entrance = self.price[0] * device.instance["inputs"]
        self.alone[0] = [gain - entrance * n for gain, n in zip(self.alone[0], box[0], strict=True)]

    def before(self):
        """Per layer and count: the most of this and all earlier layers."""
        tables = [self.alone[0]]
        for i in range(1, len(self.box)):
            best = best_partners(self.box[i], self.box[i - 1], tables[-1], self.price[i])
            tables.append([a + b for a, b in zip(self.alone[i], best, strict=True)])
        return tables

    def behind(self):
        """Per layer and count: the most of all later layers."""
        tables = [[0] * len(self.box[-1])]
        for i in reversed(range(1, len(self.box))):
            gains = [a + b for a, b in zip(self.alone[i], tables[0], strict=True)]
            tables.insert(0, best_partners(self.box[i - 1], self.box[i], gains, self.price[i]))
        return tables

    def most(self):
        """Per layer and count: the most of all masks with this count."""
        both = zip(self.before(), self.behind(), strict=True)
        return [[self.free + a + b for a, b in zip(first, second, strict=True)] for first, second in both]

    def reaching(self, value):
        """All masks of the box whose Lagrangian is at least that of this value."""
        behind = self.behind()
        found = [(self.free, ())]
        for i, counts in enumerate(self.box):
            facts = list(zip(counts, self.alone[i], behind[i], strict=True))
            longer = []
            for so_far, mask in found:
                toll = self.price[i] * mask[-1] if mask else 0
                floor = self.scale * value - so_far
                longer += [(so_far + a - toll * n, (*mask, n)) for n, a, b in facts if a - toll * n + b >= floor]
            found = longer
        return [mask for _, mask in found]


def best_partners(counts, partners, gains, price):
    """For every count n the largest ``gain - price n m`` of a partner m; both rise, so the best m falls."""
    best = [0] * len(counts)
    stack = [(0, len(counts), 0, len(partners))]
    while stack:
        low, high, first, last = stack.pop()
        if low < high:
            middle = (low + high) // 2
            toll = price * counts[middle]
            reached = [g - toll * m for g, m in zip(gains[first:last], partners[first:last], strict=True)]
            best[middle] = max(reached)
            place = first + reached.index(best[middle])
            stack += [(low, middle, place, last), (middle + 1, high, first, place + 1)]
    return best


def holds(instance, bound, proof):
    """Does the proof show that no plan has an objective above the bound?"""
    shown = {}
    for cycle in reversed(range(len(instance["cycle_ms"]))):
        devices = [Device(instance, d, cycle) for d in range(len(instance["devices"]))]
        if instance["objective"] == "smallest_share":
            if all(device.reaches(bound + 1) for device in devices):
                return False
            continue
        if not all(device.fits([layer["least"] for layer in instance["layers"]]) for device in devices):
            continue
        entry = proof[cycle]
        if type(entry) is int:  # a later cycle time serves
            limits = [own[key] for own in instance["devices"] for key in ("time_limit", "work_limit")]
            if any(limit[entry] < limit[cycle] for limit in limits):
                return False
            shown[cycle] = shown[entry]
        else:
            shown[cycle] = sum(limit for limit, _ in entry)
        value = HOUR * shown[cycle] // instance["cycle_ms"][cycle] if instance["objective"] == "rate" else shown[cycle]
        if value > bound:
            return False
        if type(entry) is not int and not all(d.bounded(*part) for d, part in zip(devices, entry, strict=True)):
            return False
    return True
