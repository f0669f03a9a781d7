"""Everything on one accelerator, in an order that its DRAM allows.

One operation follows the other, so the makespan is the same in every order, but what is held at once is not. Held is
what the operations that began have made and no WU has released: it follows from which operations are done, so a search
over these sets finds an order, or that there is none. An operation that fits and leaves no more behind than there was
is done at once: whatever comes after it has as much room as before. One that takes no time holds nothing at any moment.
"""

from __future__ import annotations

import numpy as np

from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered

MOST_SETS = 20_000  #: of operations that are done; where an order needs more, none is found


def fitting_order(lowered: Lowered, accelerator: int) -> Array | None:
    """An order of all operations in which one accelerator holds them; ``None`` if there is none (or see above)."""
    storage, every = lowered.storage, range(lowered.n)
    room = int(storage.capacity[accelerator] - storage.weight_units[np.unique(storage.layer)].sum())
    made, freed = (
        np.bincount(ends, weights=storage.item_units, minlength=lowered.n).astype(np.int64).tolist()
        for ends in (storage.item_owner, storage.item_release)
    )
    before = [sum(1 << p for p in {*lowered.predecessors(o).tolist()}) for o in every]
    lasts = (lowered.timing.compute[:, accelerator] > 0).tolist()
    listed, full = lowered.topological.tolist(), (1 << lowered.n) - 1
    held: dict[int, int] = {0: 0}
    last: dict[int, int] = {}
    waiting = [0] if room >= 0 else []
    while waiting and len(held) <= MOST_SETS:
        done = waiting.pop()
        if done == full:
            order = []
            while done:
                order.append(last[done])
                done ^= 1 << last[done]
            return np.array(order[::-1], np.int64)
        ready = [o for o in listed if not done >> o & 1 and before[o] & done == before[o]]
        fits = [o for o in ready if held[done] + made[o] <= room or not lasts[o]]
        harmless = [o for o in fits if made[o] <= freed[o]][:1]
        for o in (harmless or fits)[::-1]:
            after = done | 1 << o
            if after not in held:
                held[after], last[after] = held[done] + made[o] - freed[o], o
                waiting.append(after)
    return None
