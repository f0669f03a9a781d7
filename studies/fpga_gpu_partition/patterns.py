"""Instances whose options are those that the paper's patterns allow (Fig. 2): what is their best plan?

A layer keeps the GPU and what the pattern of its module's type says:

- a module with depthwise layers (inverted bottleneck, ShuffleNetV2 unit): 1×1 convolutions whole on the FPGA (Fig. 2a);
- any other module of several layers (Fire, residual block): larger convolutions split by input channels (Fig. 2b);
- a single layer: the GPU only, since the paper has no pattern for it.

With ``parallel`` a unit with spatial reduction has the pattern of Sec. V-B: "the same concept as the layer from
SqueezeNet, but with a DWConv3x3", its depthwise layers split by channels and its 1×1 layers on the GPU.

Which modules get their pattern, which layers of it, the share of a split and the fold stay open, so that the least
energy of such an instance bounds every rule that maps by these patterns.
"""

from __future__ import annotations

from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option


def within_patterns(instance: Instance, name: str, *, parallel: bool = False) -> Instance:
    """The instance with the options of the paper's patterns.

    Parameters
    ----------
    instance : Instance
        With ``parallel`` one whose depthwise layers may be split.
    name : str
        Of the result.
    parallel : bool
        Read units with spatial reduction as Sec. V-B describes them.
    """
    modules = tuple(_restricted(instance, module, parallel) for module in instance.modules)
    return instance.changed(name=name, modules=modules)


def _restricted(instance: Instance, module: Module, parallel: bool) -> Module:
    def kept(layer: Layer) -> Layer:
        options = tuple(option for option in layer.options if option.kind == "gpu" or allowed(layer, option))
        return layer.model_copy(update={"options": options})

    separable = any(layer.operation.startswith("depthwise") for layer in module.layers)
    halved = parallel and any(_reduces(instance, layer) for layer in module.layers)

    def allowed(layer: Layer, option: Option) -> bool:
        if len(module.layers) == 1:
            return False
        if halved:
            return layer.operation.startswith("depthwise") and option.split == "channel"
        if separable:
            return layer.operation == "conv1x1" and option.kind == "fpga"
        return layer.operation.startswith("conv") and layer.operation != "conv1x1" and option.split == "input"

    return module.model_copy(update={"layers": tuple(kept(layer) for layer in module.layers)})


def _reduces(instance: Instance, layer: Layer) -> bool:
    """A depthwise layer makes as many channels as it reads, hence less data only if there are fewer pixels."""
    read = sum(instance.read_bytes(read) for read in layer.reads)
    return layer.operation.startswith("depthwise") and sum(layer.outputs) < read
