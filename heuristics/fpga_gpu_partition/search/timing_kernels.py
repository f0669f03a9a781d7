"""Latency and energy of one module, compiled: rules 1 to 12 of the problem.

Plans are judged by the evaluator alone; what is computed here guides a search.
"""

from __future__ import annotations

from typing import NamedTuple

from mapgap.kernels import Integers, Integers2, kernel
from mapgap.problems.fpga_gpu_partition.lowered.tables import (
    ENERGY,
    FPGA_TICKS,
    GPU_TICKS,
    HOME,
    JOIN,
    ON_FPGA,
    ON_GPU,
    Tables,
)

GPU, FPGA, LINK, SPENT = range(4)
"""Entries of ``State.now``: the ticks from which the queues are free, and the energy so far."""


class State(NamedTuple):
    """What changes as the jobs of a module are issued; ticks from the start of the module.

    Attributes
    ----------
    chosen : (I,)
        The option of every layer, numbered through all layers.
    ready : (I,)
        Tick from which a layer's output is at its home.
    copied : (S, 2)
        Bytes of a tensor that were moved to the other side, and since when they are there.
    now : (4,)
    """

    chosen: Integers
    ready: Integers
    copied: Integers2
    now: Integers


@kernel("i8(Tables,State,i8,i8)", Tables, State)
def move(tables: Tables, state: State, after: int, size: int) -> int:
    """Append a transfer to the link's queue; returns its end (rule 11)."""
    ticks = tables.setup_ticks - (-size * 1_000_000_000 // tables.rate)
    end: int = max(after, state.now[LINK]) + ticks
    state.now[LINK] = end
    state.now[SPENT] += tables.setup_energy - (-size * tables.energy_per_mb // 1_000_000)
    return end


@kernel("i8(Tables,State,i8,i8,i8,i8,i8)", Tables, State)
def fetch(tables: Tables, state: State, first: int, source: int, tensor: int, side: int, size: int) -> int:
    """Tick from which so many bytes of a tensor are on a side (0 the GPU's); ``first`` is the module's first layer."""
    if size == 0:
        return 0
    made: int = state.ready[source] if source >= first else 0
    home = tables.options[state.chosen[source], HOME] if source >= 0 else 0
    if home == side:
        return made
    if size > state.copied[tensor, 0]:
        state.copied[tensor, 1] = move(tables, state, made, size - state.copied[tensor, 0])
        state.copied[tensor, 0] = size
    since: int = state.copied[tensor, 1]
    return since


@kernel("void(Tables,State,i8,i8)", Tables, State)
def issue(tables: Tables, state: State, first: int, i: int) -> None:
    """All jobs of layer i, in the order of rule 2."""
    o = state.chosen[i]
    option, begin, offset, now = tables.options[o], tables.reads[i], tables.offset[o], state.now
    on_gpu = on_fpga = 0
    if option[ON_GPU]:
        for r in range(begin, tables.reads[i + 1]):
            size = tables.sizes[offset + r - begin, 0]
            on_gpu = max(on_gpu, fetch(tables, state, first, tables.source[r], tables.tensor[r], 0, size))
    if option[ON_FPGA]:
        for r in range(begin, tables.reads[i + 1]):
            size = tables.sizes[offset + r - begin, 1]
            on_fpga = max(on_fpga, fetch(tables, state, first, tables.source[r], tables.tensor[r], 1, size))
    now[SPENT] += option[ENERGY]
    end = 0
    if option[ON_GPU]:
        done = now[GPU] = max(now[GPU], on_gpu) + option[GPU_TICKS]
        if option[HOME] == 1 and option[JOIN]:
            done = move(tables, state, done, option[JOIN])
        end = max(end, done)
    if option[ON_FPGA]:
        done = now[FPGA] = max(now[FPGA], on_fpga) + option[FPGA_TICKS]
        if option[HOME] == 0 and option[JOIN]:
            done = move(tables, state, done, option[JOIN])
        end = max(end, done)
    state.ready[i] = end


@kernel("Tuple((i8,i8))(Tables,State,i8)", Tables, State)
def module_cost(tables: Tables, state: State, m: int) -> tuple[int, int]:
    """Latency and energy of a module, standby energy included (rules 1 and 12)."""
    first, last = tables.layers[m], tables.layers[m + 1]
    for r in range(tables.reads[first], tables.reads[last]):
        state.copied[tables.tensor[r], 0] = 0
    for tensor in range(tables.parts[first], tables.parts[last]):
        state.copied[tensor, 0] = 0
    state.now[:] = 0
    for i in range(first, last):
        issue(tables, state, first, i)
    for i in range(first, last):
        if tables.delivered[i]:
            for tensor in range(tables.parts[i], tables.parts[i + 1]):
                fetch(tables, state, first, i, tensor, 0, tables.bytes[tensor])
    latency = max(state.now[GPU], state.now[FPGA], state.now[LINK])
    return latency, state.now[SPENT] - (-tables.power * latency // tables.unit)
