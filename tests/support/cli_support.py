"""What the tests of the harness and the command line share: a small instance, and ways to write and to run it."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from mapgap.catalogue import registry
from mapgap.cli import main
from mapgap.problems.suboperation_mapping import Accelerator, Edge, Instance, Layer

PLUGIN = Path(__file__).parent / "rogue_plugin.py"
BATCH = 4


def ticks(factor):
    """``[accelerator][share - 1]``: accelerator 1 is half as fast as accelerator 0."""
    return tuple(tuple(factor * (a + 1) * (k + 1) for k in range(BATCH)) for a in range(2))


def tiny(memory=100, **changes):
    """conv, BN, fc on two accelerators.

    Alone on A: FP 2*4 + 3 + 3*4, BP (BN, fc) 3 + 12, WU (conv, fc) 8 + 12: together 58 ticks.
    On B every conv and fc takes twice as long and BN 5 and 5: 114.
    """
    one = ((3,), (5,))
    conv = Layer(
        name="conv",
        kind="split",
        network_input_bytes=1000,
        output_bytes=2000,
        weight_bytes=3000,
        fp=ticks(2),
        wu=ticks(2),
    )
    bn = Layer(
        name="bn",
        kind="fused",
        inputs=(Edge(source=0, bytes=2000),),
        output_bytes=2000,
        weight_bytes=10,
        fp=one,
        bp=one,
    )
    fc = Layer(
        name="fc",
        kind="split",
        inputs=(Edge(source=1, bytes=2000),),
        output_bytes=100,
        weight_bytes=5000,
        fp=ticks(3),
        bp=ticks(3),
        wu=ticks(3),
    )
    values = {
        "name": "tiny_cnn",
        "batch": BATCH,
        "tick_ns": 1000,
        "memory_unit_bytes": 1024,
        "flops": 10**6,
        "accelerators": tuple(Accelerator(name=n, memory=memory, pes=p) for n, p in (("A", 2), ("B", 1))),
        "bandwidth": ((1, 10**9), (10**9, 1)),
        "layers": (conv, bn, fc),
        "tags": ("small",),
    }
    return Instance(**{**values, **changes})


def inside(*arguments):
    """Run the command line in this process (quick); the same attributes as :func:`mapgap`."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    argv = sys.argv
    code, out, err = 0, io.StringIO(), io.StringIO()
    sys.argv = ["mapgap", *map(str, arguments)]
    try:
        with registry.plugins_of_this_run(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
        for number, handler in before.items():
            signal.signal(number, handler)
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def wide(*arguments):
    """The same on a terminal as wide and as plain as that of :func:`mapgap`."""
    with patch.dict(os.environ, COLUMNS="200", NO_COLOR="1"):
        return inside(*arguments)


def mapgap(*arguments, cwd=None, **more):
    """Run the command line in a process; ``completed.stdout`` and ``.stderr`` are text."""
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "mapgap", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=env, check=False, timeout=120, **more)
