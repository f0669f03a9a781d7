"""Figure 5 of MTrain as an instance in whole ticks, and a plan of it."""

from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer, Plan


def table(*rows):
    return tuple(tuple(row) for row in rows)


def figure5(memory=(1000, 1000), bandwidth=10**9):
    """Fig. 5's network: conv, BN, fc on two accelerators; batch 2; a byte takes one tick (1 ns at 1 GB/s)."""
    conv = Layer(
        name="conv",
        kind="split",
        network_input_bytes=8,
        output_bytes=5,
        weight_bytes=3,
        fp=table((10, 20), (15, 30)),
        wu=table((10, 20), (15, 30)),
    )
    bn = Layer(
        name="bn",
        kind="fused",
        inputs=(Edge(source=0, bytes=5),),
        output_bytes=5,
        weight_bytes=0,
        fp=table((4,), (6,)),
        bp=table((4,), (6,)),
    )
    fc = Layer(
        name="fc",
        kind="split",
        inputs=(Edge(source=1, bytes=5),),
        output_bytes=1,
        weight_bytes=2,
        fp=table((7, 14), (9, 18)),
        bp=table((7, 14), (9, 18)),
        wu=table((7, 14), (9, 18)),
    )
    accelerators = tuple(Accelerator(name=n, memory=m, pes=1) for n, m in zip("AB", memory, strict=True))
    return Instance(
        name="fig5",
        batch=2,
        tick_ns=1,
        memory_unit_bytes=1,
        flops=100,
        accelerators=accelerators,
        bandwidth=((1, bandwidth), (bandwidth, 1)),
        layers=(conv, bn, fc),
    )


SPLIT = Plan(
    ratio=(1, 1),
    order=(
        ("FP/conv/0", "FP/bn", "FP/fc/0", "BP/fc/0", "BP/bn", "WU/conv/0", "WU/fc/0"),
        ("FP/conv/1", "FP/fc/1", "BP/fc/1", "WU/conv/1", "WU/fc/1"),
    ),
)
