"""The sizes of a language model: what its ``config.json`` says, and what its type has where the file does not say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mapgap.importing.source import Value

LARGEST = 10**7
"""No width, count or length of a model is beyond it."""
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Kind:
    """What a model type has where its file does not say.

    Attributes
    ----------
    tied : bool
        Embedding and head share their table.
    biased : bool
        Queries, keys and values have biases.
    normed : bool
        Queries and keys are normed, head by head.
    heads : bool
        As many heads of keys and values as of queries.
    width : int
        Of a head; 0: the width of the model over its heads.
    """

    tied: bool = False
    biased: bool = False
    normed: bool = False
    heads: bool = False
    width: int = 0


KINDS = {
    "llama": Kind(heads=True),
    "mistral": Kind(),
    "mixtral": Kind(),
    "qwen2": Kind(biased=True),
    "qwen3": Kind(normed=True, width=128),
    "qwen3_moe": Kind(normed=True),
    "phi3": Kind(heads=True),
    "gemma": Kind(tied=True, width=256),
}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}


@dataclass(frozen=True)
class Model:
    """The sizes of a model, all counts of numbers.

    Attributes
    ----------
    blocks, hidden, heads, groups, width, inner, vocabulary : int
        ``groups`` are the heads of keys and values, ``width`` is that of a head.
    experts, active : int
        Of a block, 1 where it is no mixture; those that work for a token.
    biases, norms : int
        Of a block.
    tied : bool
    """

    blocks: int
    hidden: int
    heads: int
    groups: int
    width: int
    inner: int
    vocabulary: int
    experts: int
    active: int
    biases: int
    norms: int
    tied: bool

    @property
    def table(self) -> int:
        """Of the embedding, and of the head."""
        return self.vocabulary * self.hidden

    @property
    def attention(self) -> int:
        """Weights of the four projections."""
        return 2 * self.hidden * self.width * (self.heads + self.groups)

    @property
    def expert(self) -> int:
        """Weights of gate, up and down."""
        return 3 * self.hidden * self.inner

    @property
    def router(self) -> int:
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def block(self) -> int:
        """Weights of one block."""
        return self.attention + self.experts * self.expert + self.router + self.biases + self.norms

    @property
    def products(self) -> int:
        """Multiply-accumulates of a token in a block, beside attention."""
        return self.attention + self.active * self.expert + self.router

    @property
    def parameters(self) -> int:
        """As they are published: a shared table counts once."""
        tables = 1 if self.tied else 2
        return tables * self.table + self.blocks * self.block + self.hidden

    @property
    def cached(self) -> int:
        """Numbers that the cache of a block has for a token."""
        return 2 * self.groups * self.width


def described(root: Value) -> Model:
    """The sizes that a file tells.

    Raises
    ------
    InputError
    """
    name = root["model_type"].text()
    if name not in KINDS:
        root["model_type"].wrong(f"one of {', '.join(KINDS)}")
    kind = KINDS[name]

    def size(field: str, default: int = 0) -> int:
        if not root.has(field) or root.data[field] is None:
            return default or root[field].whole(1, LARGEST)
        return root[field].whole(1, LARGEST)

    def flag(field: str, default: bool) -> bool:
        value = root.data.get(field, default)
        if not isinstance(value, bool):
            root[field].wrong("true or false")
        return value

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    groups = size("num_key_value_heads", heads if kind.heads else 0)
    if heads % groups:
        root["num_key_value_heads"].wrong(f"a divisor of {heads} heads")
    if not (root.has("head_dim") and root.data["head_dim"] is not None) and not kind.width and hidden % heads:
        root["hidden_size"].wrong(f"a multiple of {heads} heads, or head_dim")
    width = size("head_dim", kind.width or hidden // heads)
    blocks = size("num_hidden_layers")
    if blocks > MOST_LAYERS:
        root["num_hidden_layers"].wrong(f"at most {MOST_LAYERS:,} layers")
    experts, active, inner = _experts(root, name, size)
    biases = (heads + 2 * groups) * width if kind.biased else 0
    if not kind.biased and flag("attention_bias", False):
        biases += (heads + 2 * groups) * width + hidden
    if flag("mlp_bias", False):
        biases += 2 * inner + hidden
    norms = 2 * hidden + (2 * width if kind.normed else 0)
    tied = flag("tie_word_embeddings", kind.tied)
    vocabulary = size("vocab_size")
    return Model(blocks, hidden, heads, groups, width, inner, vocabulary, experts, active, biases, norms, tied)


def _experts(root: Value, name: str, size: Callable[..., int]) -> tuple[int, int, int]:
    """Experts of a block, those of a token, and the inner width of one."""
    if name == "mixtral":
        experts, inner = size("num_local_experts"), size("intermediate_size")
    elif name == "qwen3_moe":
        experts, inner = size("num_experts"), size("moe_intermediate_size")
        for field, plain in (("decoder_sparse_step", 1), ("mlp_only_layers", [])):
            if root.data.get(field, plain) != plain:
                root[field].wrong(f"{plain}: experts in every block")
    else:
        return 1, 1, size("intermediate_size")
    active = size("num_experts_per_tok")
    if active > experts:
        root["num_experts_per_tok"].wrong(f"at most {experts}")
    return experts, active, inner


def bits_of(root: Value) -> float:
    """Bits of a weight; 0 where the file does not say."""
    for field in ("quantization_config", "quantization"):
        if root.has(field) and root[field].has("bits"):
            return root[field]["bits"].number(64)
    for field in ("torch_dtype", "dtype"):
        if root.has(field) and root.data[field] is not None:
            name = root[field].text()
            if name not in BYTES:
                root[field].wrong(f"one of {', '.join(BYTES)}, or --set bits=…")
            return 8.0 * BYTES[name]
    return 0.0
