"""Compiled: the nodes of the label search and their Pareto sets, in one pool of labels.

The memory of labels that others drove out is used again.
"""

from __future__ import annotations

from mapgap.formulations.hybrid_pipeline.label.tables import Array, Store
from mapgap.kernels import kernel

#: Columns of the pool of labels: three criteria, the label behind, position, group, next label of the node, and the
#: fourth criterion, what is taken of one medium.
D, A, G, BEHIND, POSITION, GROUP, NEXT, W = range(8)

#: In place of a node or a label: the list ends; the pipeline ends, nothing is behind; the position has its turn.
END, NOTHING, FRESH = -1, -2, -3

#: Where the search is and what it holds, by place: position, node, move; labels and nodes in the store, first label
#: free again and how many are; upper bound, its label; stages priced, labels made; of the node at work its first label,
#: least D and D + A, number of labels.
R, NODE, MOVE, USED, NODES, FREE, FREED, UPPER, BEST, PRICED, MADE, LABEL, LEAST_D, LEAST_DA, HELD = range(15)

#: Why a call ended.
DONE, PAUSED, FULL = 0, 1, 2


@kernel("i8(Store,i8[::1],i8,i8)", Store)
def node_of(store: Store, at: Array, key: int, position: int) -> int:
    """The node with a key, made if there is none; open addressing."""
    mask = len(store.table) - 1
    k = (key * 0x9E3779B97F4A7C1 >> 20) & mask
    while store.table[k] >= 0:
        known: int = store.table[k]
        if store.key[known] == key:
            return known
        k = (k + 1) & mask
    node: int = at[NODES]
    at[NODES] += 1
    store.table[k], store.key[node], store.head[node] = node, key, END
    store.following[node], store.first[position] = store.first[position], node
    return node


@kernel("void(Store)", Store)
def index(store: Store) -> None:
    """Enter all nodes into an empty table."""
    mask = len(store.table) - 1
    for position in range(len(store.first)):
        node = store.first[position]
        while node != END:
            k = (store.key[node] * 0x9E3779B97F4A7C1 >> 20) & mask
            while store.table[k] >= 0:
                k = (k + 1) & mask
            store.table[k] = node
            node = store.following[node]


@kernel("void(i4[:,::1],i8[::1],i8)")
def release(pool: Array, at: Array, label: int) -> None:
    """The row of a label may be used again."""
    pool[label, NEXT] = at[FREE]
    at[FREE] = label
    at[FREED] += 1


@kernel("i8(i4[:,::1],i8[::1])")
def row_for(pool: Array, at: Array) -> int:
    """A row for a new label."""
    at[MADE] += 1
    if at[FREED] > 0:
        again: int = at[FREE]
        at[FREE] = pool[again, NEXT]
        at[FREED] -= 1
        return again
    new: int = at[USED]
    at[USED] += 1
    return new


@kernel("b1(i4[:,::1],i8[::1],i8[::1],i8,i8,i8,i8,i8,i8)")
def admit(pool: Array, head: Array, at: Array, node: int, d: int, a: int, g: int, w: int, relaxed: int) -> bool:
    """Drop the labels of a node that (d, a, g, w) dominates; False if one of them dominates it.

    With ``relaxed`` the second criterion is D + A.
    """
    a += relaxed * d
    previous, label = END, head[node]
    while label >= 0:
        following, other = pool[label, NEXT], pool[label, A] + relaxed * pool[label, D]
        if pool[label, D] <= d and other <= a and pool[label, G] <= g and pool[label, W] <= w:
            return False
        if d <= pool[label, D] and a <= other and g <= pool[label, G] and w <= pool[label, W]:
            if previous < 0:
                head[node] = following
            else:
                pool[previous, NEXT] = following
            release(pool, at, label)
        else:
            previous = label
        label = following
    return True
