"""A language model by its Hugging Face ``config.json``: one layer per transformer block, an embedding and a head.

A file of sizes, without weights and without times. A sample is a sequence, and a pass of the model over it is one of
two phases: ``decode`` makes one token of a sequence whose cache is full, ``prefill`` reads a prompt into an empty one.
A ``request`` is both: a prompt, then so many tokens, with the same layers on the same boards.

Settings
--------
phase
    ``decode`` (default), ``prefill`` or ``request``.
tokens
    Tokens that a request makes, 256. Its time is that of the prompt and of so many tokens; a cut is crossed by one
    message for each of them and one for the prompt.
context
    Tokens for which a sequence has a cache of keys and values, 4096 at most unless told; decoding attends to them all.
prompt
    Tokens that prefill reads, 512.
bits, cache_bits, activation_bits
    Of a weight (else those of the file), of a number of the cache (16), and of one between layers (16).
micro_batch, mini_batch
    Sequences that pass together (1), and those in flight (as many), whose caches all boards hold at once.

With ``h`` the width, ``a`` heads and ``g`` of keys and values, of ``d`` numbers each, and ``f`` the inner width, a
block has ``2 h d (a + g) + 3 h f`` weights beside biases and norms. A token takes as many multiply-accumulates, and
``2 a d`` for every token that it attends to. Of a mixture of experts all are held, those of a token are worked, and as
many are read as the tokens of a pass ask for at most.

Boards without a profile have a roofline times what llama.cpp took over its own for an 8-billion-parameter Llama 3 in
16 bits, on five devices (:data:`MEASURED`), one factor for each phase.

Sources: ``transformers/models/{llama,mistral,mixtral,qwen2,qwen3,qwen3_moe,phi3,gemma}`` of huggingface/transformers,
whose defaults hold where a file says nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Layer, LayerGraph, Total, origin
from mapgap.importing.language_model import LARGEST, Model, bits_of, described
from mapgap.importing.source import Source, Value

NAME, TITLE = "hugging_face", "Hugging Face config.json of a language model"
PHASES = ("decode", "prefill", "request")
EMBEDDING, HEAD = "embedding", "head"
TOKEN_BYTES = 4
"""What names a token."""
MEASURED = {
    "RTX 4080": (97480.0, 716.8, 40.29, 6758.90),
    "RTX 3090": (71200.0, 936.0, 46.51, 4239.64),
    "RTX 4090": (165160.0, 1008.0, 54.34, 9056.26),
    "M1 Max": (10600.0, 400.0, 18.43, 418.77),
    "M2 Ultra": (26980.0, 800.0, 36.25, 1202.74),
}
"""Device to peak GFLOP/s, memory GB/s, and tokens per second that llama.cpp makes and reads, 1024 in a sequence.

Measured: XiongjieDai/GPU-Benchmarks-on-LLM-Inference 00dd2bd, README.md, "8B F16". Peaks: exo-explore/exo 0060cd3,
``exo/topology/device_capabilities.py``, in 16 bits, of Apple's in 32, as by the measurements 16 are no faster there.
Memory: CYBIRD-D/How-to-Choose-your-LLM-Model-for-translation 5237707; of Apple's, macrumors.com of 2022-10-24 (M1 Max)
and propakistani.pk of 2023-06-06 (M2 Ultra).
"""
LENGTH = 1024


LLAMA_3_8B = Model(32, 4096, 32, 8, 128, 14336, 128256, 1, 1, 0, 2 * 4096, tied=False)


def over_roofline(phase: str) -> dict[str, float]:
    """Device to time over roofline of what was measured: of each phase with the term that is the larger one there."""
    model, width = LLAMA_3_8B, 2
    read = model.parameters - model.table + model.blocks * model.cached * LENGTH // 2
    products = LENGTH * model.products + model.heads * model.width * LENGTH * (LENGTH + 1)
    work = 2 * (model.blocks * products + model.table)
    if phase == "decode":
        return {name: 1e9 * memory / (width * read * made) for name, (_, memory, made, _) in MEASURED.items()}
    return {name: 1e9 * peak * LENGTH / (work * took) for name, (peak, _, _, took) in MEASURED.items()}


def looks_like(source: Source) -> bool:
    """The fields ``model_type`` and ``num_hidden_layers``, or ``architectures``."""
    data = source.json
    return isinstance(data, dict) and "model_type" in data and bool({"num_hidden_layers", "architectures"} & set(data))


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """A chain: embedding, blocks, head.

    Raises
    ------
    InputError
        A type of model that is not known, a size that is missing, or training.
    """
    source = sources[0]
    root = source.root
    model = described(root)
    if len(sources) > 1:
        raise InputError(Finding("expected one config.json, found several", place=str(source.path)))
    if settings.get("training"):
        text = "expected --inference: what decoding or prefill takes says nothing about training; found --training"
        raise InputError(Finding(text, place=str(source.path)))
    longest = root["max_position_embeddings"].whole(1, LARGEST) if root.has("max_position_embeddings") else LARGEST
    phase = settings.text("phase", f"one of {', '.join(PHASES)}", PHASES[0], PHASES)
    context = settings.whole(
        "context", "tokens of which a sequence has a cache", min(4096, longest), least=1, most=LARGEST
    )
    prompt = settings.whole("prompt", "tokens that prefill reads", min(512, context), least=1, most=LARGEST)
    made = (
        settings.whole("tokens", "tokens that a request makes", 256, least=1, most=LARGEST) if phase == "request" else 0
    )
    own = bits_of(root)
    assumed = [] if own or settings.get("bits") is not None else ["weights have 16 bits, as the file does not say"]
    weight = settings.number("bits", "bits of a weight", own or 16.0) / 8
    cache = settings.number("cache_bits", "bits of a number of the cache", 16.0) / 8
    between = settings.number("activation_bits", "bits of a number between layers", 16.0) / 8
    together = settings.whole("micro_batch", "sequences that pass together", 1, least=1, most=LARGEST)
    flying = settings.whole("mini_batch", "sequences in flight", together, least=together, most=LARGEST)
    if prompt + made > context:
        words = f"{prompt} tokens" + (f" and {made} more" if made else "")
        settings.wrong.append(
            f"--set prompt={prompt}: expected no more than the context of {context} tokens, found {words}"
        )
    if made and flying > together:
        settings.wrong.append(f"--set mini_batch={flying}: expected {together}: a stage passes no request as a whole")
    settings.check()
    for name, value in {"micro_batch": together, "mini_batch": flying, "replication": False}.items():
        settings.preset.setdefault(name, value)
    settings.preset["messages"] = 1 + made
    sizes = Sizes(model, context, prompt, weight, cache, between, -(-flying // together))
    name = f"{_name(root, source)}_{phase}"
    if phase == "request":
        parts = [(sizes.graph(f"{name}_prefill", "prefill"), 1), (sizes.graph(f"{name}_decode", "decode"), made)]
        graph = _one_after_the_other(name, parts)
        does = f"a prompt of {prompt}, then {made} tokens, each after {context}"
    else:
        graph = sizes.graph(name, phase)
        does = f"one token after {context}" if phase == "decode" else f"a prompt of {prompt}"
    if model.tied:
        assumed.append("embedding and head share a table, of which both hold a copy")
    if model.experts > 1:
        assumed.append(
            f"a token works with {model.active} of {model.experts} experts, no two tokens of a pass with the same"
        )
    if root.has("sliding_window") and root.data["sliding_window"] and root.data.get("use_sliding_window") is not False:
        assumed.append("every token attends to all before it, whatever sliding_window says")
    assumed += [
        f"{8 * weight:g} bits per weight, {8 * cache:g} in the cache, {8 * between:g} between layers",
        f"{flying} sequence(s) in flight with caches of {context} tokens",
        "only the last token of a pass goes through the head",
        "what a pass needs beside weights and caches takes no memory",
    ]
    told = f"{model.blocks} blocks, {model.parameters:,} parameters, {phase}: {does}"
    graph.origins.append(origin(source, NAME, told, assumed))
    return graph


@dataclass(frozen=True)
class Sizes:
    """A model as it is run: tokens of the caches and of a prompt, bytes of a number of three kinds.

    Attributes
    ----------
    rounds : int
        Micro-batches whose caches a board holds at once.
    """

    model: Model
    context: int
    prompt: int
    weight: float
    cache: float
    between: float
    rounds: int

    def graph(self, name: str, phase: str) -> LayerGraph:
        """One pass in a phase."""
        model, weight = self.model, self.weight
        decodes = phase == "decode"
        tokens, attended = (1, self.context) if decodes else (self.prompt, self.prompt * (self.prompt + 1) // 2)

        def size(numbers: int, width: float) -> int:
            return math.ceil(numbers * width)

        graph = LayerGraph(name, input_bytes=tokens * TOKEN_BYTES, training=False)
        handed = size(tokens * model.hidden, self.between)
        reads = {"reads_once": 0, "reads_each": size(tokens * model.hidden, weight)}
        graph.add(EMBEDDING, Layer("embedding", handed, size(model.table, weight), 0, 0, reads))
        graph.readers.add(EMBEDDING)
        experts = size(tokens * model.active * model.expert, weight) if model.experts > 1 else 0
        resident = model.block - (model.experts * model.expert if model.experts > 1 else 0)
        products = tokens * model.products + 2 * model.heads * model.width * attended
        block = Layer(
            "transformer",
            handed,
            size(model.block, weight),
            products,
            self.rounds * size(self.context * model.cached, self.cache),
            {
                "reads_once": size(resident, weight),
                "reads_each": experts,
                "cache_bytes": size((self.context if decodes else 2 * self.prompt) * model.cached, self.cache),
            },
        )
        before = EMBEDDING
        for k in range(1, model.blocks + 1):
            graph.add(f"block{k}", block, [before])
            before = f"block{k}"
        head = Layer("head", TOKEN_BYTES, size(model.table + model.hidden, weight), model.table, 0)
        graph.add(HEAD, head, [before])
        graph.over_roofline = over_roofline(phase)
        shared = model.table if model.tied else 0
        graph.totals = [
            Total("weights", (model.parameters + shared) * weight),
            Total("products", model.blocks * products + model.table),
        ]
        return graph


def _one_after_the_other(name: str, parts: list[tuple[LayerGraph, int]]) -> LayerGraph:
    """Passes over one model as one: what is worked and moved adds up, what is held does not."""
    first = parts[0][0]
    graph = LayerGraph(name, training=False, readers=first.readers, passes=parts)
    graph.input_bytes = sum(count * part.input_bytes for part, count in parts)
    for layer in first.order():
        each = [(part.layer(layer), count) for part, count in parts]
        handed, macs = (
            sum(count * (getattr(one, key) or 0) for one, count in each) for key in ("output_bytes", "macs")
        )
        graph.add(
            layer, replace(first.layer(layer), output_bytes=handed, macs=macs, attributes={}), first.inputs(layer)
        )
    weights = first.totals[0]
    graph.totals = [weights, Total("products", sum(count * part.totals[1].amount for part, count in parts))]
    return graph


def _name(root: Value, source: Source) -> str:
    """The last part of ``_name_or_path``, else the name of the file, or of its folder if that is config.json."""
    given = root.data.get("_name_or_path")
    path = source.path
    name = given if isinstance(given, str) and given.strip("/ ") else path.stem
    if name == "config":
        name = path.absolute().parent.name
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name.rstrip("/").rpartition("/")[2]).strip("_").lower() or "model"
