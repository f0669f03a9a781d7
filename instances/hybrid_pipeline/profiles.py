"""Time tables where no measurement exists: a saturating roofline, scaled to Table 1.

Layer l takes, for ``beta`` samples on a device of peak ``F``, memory bandwidth ``W`` and launch time ``t0``,

    t_f(beta) = t0 + k max(2 macs beta / F, 4 (beta (read + out) + params) / W),

and as long backwards, or twice as long where the layer has parameters: it computes the gradients of its input and of
its weights. Launch and weights are paid however
few samples there are: small shares use a device badly, as Fig. 6 shows. ``k >= 1`` (time over roofline) is one number
per network and device, such that a training epoch takes what Table 1 prints. Nothing else is fitted.

Interpretation
--------------
* Table 1 does not state its batch size. It is read at 16, the largest power of two with which all three networks can
  be trained on a Jetson Nano. (Alternatives: 1, which makes everything launch; 32, almost the same tables.)
* Jetson NX is not in Table 1; its epochs are TX2's times 25/51, the ratio of the profiling times of Table 8.
* BERT-small is not in Table 1; it has the ``k`` of ResNet-50, the other network of dense products.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from mapgap.core import Finding, InputError
from mapgap.instances.facts import load_devices, unknown
from mapgap.instances.hybrid_pipeline.network import WORD, operators

DEVICES = "asteroid"
TABLE_1_BATCH = 16
IMAGES = 50_000
"""Images of an epoch: CIFAR-10; assumed for Mini-ImageNet."""
STAND_IN = {"bert_small": "resnet50"}
"""Networks without an entry in Table 1 and whose ``k`` they take."""
Times = npt.NDArray[np.float64]


def _number(device: str, item: str) -> float:
    return float(load_devices(DEVICES).of(device)[item].value)


def boards() -> list[str]:
    """Boards by their short names."""
    return [name for name in load_devices(DEVICES).names() if not name.startswith("Jetson")]


def memory_bytes(device: str) -> int:
    """u_d: memory less what the system takes."""
    return round((_number(device, "mem") - _number(device, "mem_reserved")) * 10**9)


def _roofline(network: str, device: str, shares: Times) -> tuple[Times, Times]:
    """Nanoseconds ``[layer][share]`` of both directions at k = 1, without launches."""
    layers = operators(network)
    flops = np.array([[2.0 * layer.macs] for layer in layers]) * shares
    traffic = np.array([[float(layer.read + layer.out)] for layer in layers]) * shares
    traffic = WORD * (traffic + np.array([[float(layer.params)] for layer in layers]))
    forward = np.maximum(flops / _number(device, "fp32_peak"), traffic / _number(device, "mem_bw"))
    return forward, forward * _passes(network)


def _passes(network: str) -> Times:
    """Backward passes per layer: gradients of the input and, with parameters, of the weights."""
    return np.array([[2.0 if layer.params else 1.0] for layer in operators(network)])


def _launches(network: str, device: str) -> tuple[Times, Times]:
    """Nanoseconds ``[layer][1]`` of starting both directions."""
    passes = _passes(network)
    ns = 1000 * _number(device, "launch")
    return np.full_like(passes, ns), ns * passes


@cache
def over_roofline(network: str, device: str) -> float:
    """k of the module docstring.

    Raises
    ------
    InputError
        Neither Table 1 nor a stand-in covers the network, or the board is unknown.
    """
    if device not in load_devices(DEVICES).names():
        raise unknown("devices", device, boards())
    network = STAND_IN.get(network, network)
    facts = load_devices(DEVICES).of(device)
    if f"epoch_{network}" not in facts:
        known = sorted(item.removeprefix("epoch_") for item in facts if item.startswith("epoch_"))
        text = f"expected one with a profile, {', '.join([*known, *STAND_IN])}; found {network!r}"
        raise InputError(Finding(text, ("network",)))
    target = 1e9 * float(facts[f"epoch_{network}"].value) / IMAGES * TABLE_1_BATCH
    ideal = sum(float(part.sum()) for part in _roofline(network, device, np.array([float(TABLE_1_BATCH)])))
    launches = sum(float(part.sum()) for part in _launches(network, device))
    return (target - launches) / ideal


@cache
def nanoseconds(network: str, device: str, batch: int) -> tuple[Times, Times]:
    """t_f and t_b in nanoseconds, ``[layer][k]`` for ``k + 1`` samples.

    Raises
    ------
    InputError
        As :func:`over_roofline`.
    """
    k = over_roofline(network, device)
    forward, backward = _roofline(network, device, np.arange(1.0, batch + 1.0))
    start_f, start_b = _launches(network, device)
    return start_f + k * forward, start_b + k * backward


def table(times: Times, tick_ns: int) -> tuple[tuple[int, ...], ...]:
    """Whole ticks, rounded up, never falling with more samples."""
    ticks = np.maximum.accumulate(np.ceil(times / tick_ns).astype(np.int64), axis=1)
    return tuple(tuple(row) for row in ticks.tolist())
