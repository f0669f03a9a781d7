"""Language models by their ``config.json``: published numbers of parameters, sizes by hand, and what is refused."""

import json
import math

import foreign
import pytest

from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.assemble import assemble, work_layers
from mapgap.importing.cluster import Board, Cluster
from mapgap.importing.estimate import Speed, roofline
from mapgap.importing.formats.hugging_face import EMBEDDING, HEAD, MEASURED, over_roofline
from mapgap.importing.language_model import described
from mapgap.importing.recognise import read
from mapgap.importing.source import Source
from mapgap.instances.hybrid_pipeline.importing import build

FOLDER = foreign.FOLDER / "hugging_face"
# Presets of keras-team/keras-hub 71453d0 (keras_hub/src/models/*/*_presets.py, "params"); Qwen2.5-7B is half of
# the 15,231,233,024 bytes of its model.safetensors.index.json, TinyLlama as in its safetensors.
# Keras counts the shared table of Llama 3.2 twice.
PUBLISHED = {
    "llama_2_7b": 6_738_415_616,
    "llama_3_1_8b": 8_030_261_248,
    "llama_3_2_3b": 3_606_752_256 - 128_256 * 3_072,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x7b": 46_702_792_704,
    "phi_3_mini": 3_821_079_552,
    "qwen2_5_3b": 3_085_938_688,
    "qwen2_5_7b": 7_615_616_512,
    "qwen2_5_32b": 32_763_876_352,
    "qwen3_8b": 8_190_735_360,
    "qwen3_30b_a3b": 30_532_122_624,
    "tinyllama_1_1b": 1_100_048_384,
}
SMALL = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 10,
    "max_position_embeddings": 64,
    "torch_dtype": "float16",
}
# A head has 2 numbers. Projections: 2 * 8 * 2 * (4 + 2) = 192 weights, gate, up and down 3 * 8 * 12 = 288, norms 16.
BLOCK = 192 + 288 + 16


def graph(tmp_path, given=(), **changes):
    path = foreign.write_json(tmp_path / "small.json", {**SMALL, **changes})
    return read([path], Settings(dict(given)))


def refused(tmp_path, given=(), **changes):
    with pytest.raises(InputError) as caught:
        graph(tmp_path, given, **changes)
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_that_are_published(name):
    model = described(Source.open(FOLDER / f"{name}.json").root)
    assert model.parameters == PUBLISHED[name]
    layers = read([FOLDER / f"{name}.json"], Settings({"bits": 8}))
    held = sum(layers.layer(each).weight_bytes for each in layers.graph)
    assert held == PUBLISHED[name] + (model.table if model.tied else 0)  # on two boards the table is there twice


def test_every_file_of_the_library_is_read_and_all_but_two_have_a_published_count():
    names = {path.stem for path in FOLDER.glob("*.json")}
    assert names - set(PUBLISHED) == {"llama_2_13b", "llama_3_1_70b"}
    for name in names:
        assert len(read([FOLDER / f"{name}.json"], Settings()).graph) > 20


def test_sizes_of_a_small_model_by_hand(tmp_path):
    found = graph(tmp_path, {"context": 16})
    assert found.order() == [EMBEDDING, "block1", "block2", HEAD]
    first, block, last = (found.layer(name) for name in (EMBEDDING, "block1", HEAD))
    assert (first.weight_bytes, first.macs, first.output_bytes, first.stored_bytes) == (160, 0, 16, 0)
    assert (block.weight_bytes, block.output_bytes) == (2 * BLOCK, 16)
    assert block.macs == 480 + 2 * 4 * 2 * 16  # scores and sums of four heads, over sixteen tokens
    assert block.stored_bytes == 2 * 2 * 2 * 16 * 2  # keys and values, two heads of two numbers, two bytes each
    assert (last.weight_bytes, last.macs, last.stored_bytes) == (2 * (80 + 8), 80, 0)
    assert found.training is False
    layers = work_layers(found, found.order())
    # Bytes: a row of the table; all weights of a block and its cache; the head. In and out 4 or 16.
    moved = roofline(layers, found.input_bytes, Speed(1e9, 1.0, 0.0), 1)
    assert moved == [16 + 4 + 16, 2 * BLOCK + 256 + 32, 2 * BLOCK + 256 + 32, 176 + 16 + 4]
    assert roofline(layers, found.input_bytes, Speed(1e9, 1.0, 0.0), 2)[1] == 2 * BLOCK + 2 * (256 + 32)


def test_a_prompt_takes_the_work_of_its_tokens_and_pairs(tmp_path):
    found = graph(tmp_path, {"context": 16, "prompt": 5, "phase": "prefill"})
    block = found.layer("block1")
    assert block.macs == 5 * 480 + 2 * 4 * 2 * (1 + 2 + 3 + 4 + 5)
    assert block.output_bytes == 5 * 16
    assert block.stored_bytes == 256  # the cache has room for all of the context
    assert found.layer(HEAD).macs == 80  # of the last token only


def test_llama_2_has_two_gibibytes_of_cache_for_4096_tokens():
    found = read([FOLDER / "llama_2_7b.json"], Settings({"context": 4096}))
    assert sum(found.layer(name).stored_bytes for name in found.graph) == 2 * 2**30


def test_bits_of_weights_are_those_of_the_file_unless_told(tmp_path):
    def weights(given=(), **changes):
        return graph(tmp_path, given, **changes).layer("block1").weight_bytes

    assert weights() == 2 * BLOCK
    assert weights(torch_dtype="float32") == 4 * BLOCK
    assert weights(quantization_config={"bits": 4}) == BLOCK / 2
    assert weights({"bits": 4.5}) == math.ceil(4.5 * BLOCK / 8)
    assert weights({"bits": 8}) == BLOCK


def test_biases_norms_and_tables_of_other_types(tmp_path):
    def block(**changes):
        return graph(tmp_path, {"bits": 8}, **changes).layer("block1").weight_bytes

    assert block(model_type="qwen2") == BLOCK + (4 + 2 * 2) * 2
    assert block(model_type="qwen3", head_dim=2) == BLOCK + 2 * 2
    assert block(attention_bias=True) == BLOCK + (4 + 2 * 2) * 2 + 8
    assert block(mlp_bias=True) == BLOCK + 2 * 12 + 8
    tied = graph(tmp_path, tie_word_embeddings=True)
    assert "share a table" in str(tied.origins[0])
    assert sum(tied.layer(name).weight_bytes for name in tied.graph) == 2 * (2 * BLOCK + 2 * 80 + 8)


def test_all_experts_are_held_and_those_of_the_tokens_are_read(tmp_path):
    changes = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 1}
    found = graph(tmp_path, {"context": 1}, **changes)
    block = found.layer("block1")
    resident = 192 + 32 + 16  # the router has a weight per expert and number
    assert block.weight_bytes == 2 * (resident + 4 * 288)
    assert block.macs == 192 + 288 + 32 + 16
    layers = work_layers(found, found.order())
    for samples, experts in ((1, 1), (3, 3), (4, 4), (9, 4)):
        moved = roofline(layers, 0, Speed(1e9, 1.0, 0.0), samples)[1]
        assert moved == 2 * (resident + experts * 288) + samples * (16 + 32)


def test_sequences_in_flight_are_held_by_every_board(tmp_path):
    path = foreign.write_json(tmp_path / "small.json", SMALL)
    made = {}
    for name, given in {"one": {}, "four": {"mini_batch": 4}, "pairs": {"micro_batch": 2, "mini_batch": 4}}.items():
        settings = Settings({"context": 64, "cache_bits": 1024 * 8, **given})
        cluster = Cluster(
            schema=1,
            form="cluster",
            boards={"board": Board(count=2, memory_gb=1, gflops=1, memory_gbps=1)},
            link_mbps=1,
        )
        made[name] = build(assemble(read([path], settings), cluster, settings).workload, settings)
    cache = 8 * 64  # KiB of a sequence and a block
    assert [made[name].layers[1].activation_memory for name in made] == [cache, 4 * cache, 2 * cache]
    assert [made[name].mini_batch for name in made] == [1, 4, 4]
    assert made["one"].execution.replication is False
    assert made["one"].execution.training is False


@pytest.mark.parametrize(
    ("given", "changes", "words"),
    [
        ({}, {"model_type": "bloom"}, "expected one of llama, mistral"),
        ({}, {"hidden_size": 0}, "expected a whole number from 1 on, found 0"),
        ({}, {"hidden_size": 9}, "expected a multiple of 4 heads"),
        ({}, {"num_key_value_heads": 3}, "expected a divisor of 4 heads"),
        ({}, {"num_hidden_layers": 10**6}, "at most 10,000 layers"),
        ({}, {"vocab_size": "many"}, "expected a number, found"),
        ({}, {"vocab_size": None}, "expected a number, found"),
        ({}, {"tie_word_embeddings": "no"}, "expected true or false"),
        ({}, {"torch_dtype": "int3"}, "or --set bits="),
        ({"phase": "training"}, {}, "--set phase=training: expected one of decode, prefill"),
        ({"context": 4, "prompt": 5}, {}, "--set prompt=5: expected no more than the context of 4 tokens"),
        ({"training": True}, {}, "expected --inference"),
        ({}, {"model_type": "qwen3_moe", "num_experts": 2, "moe_intermediate_size": 4, "decoder_sparse_step": 2,
              "num_experts_per_tok": 1}, "expected 1: experts in every block"),
        ({}, {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3}, "at most 2, found 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_clear_error(tmp_path, given, changes, words):
    assert words in refused(tmp_path, given, **changes)


def test_a_missing_size_is_named(tmp_path):
    path = foreign.write_json(tmp_path / "small.json", {k: v for k, v in SMALL.items() if k != "vocab_size"})
    with pytest.raises(InputError, match="expected the field 'vocab_size'"):
        read([path], Settings())


def test_the_name_is_that_of_the_model(tmp_path):
    folder = tmp_path / "Small-2"
    folder.mkdir()
    foreign.write_json(folder / "config.json", SMALL)
    assert read([folder / "config.json"]).name == "small_2_decode"
    assert graph(tmp_path, _name_or_path="somebody/Small-1B/").name == "small_1b_decode"
    assert graph(tmp_path, {"phase": "prefill"}).name == "small_prefill"


def estimated(name, **given):
    """Seconds of a pass on every measured device."""
    boards = {
        device.replace(" ", "_"): Board(memory_gb=1000, gflops=peak, memory_gbps=memory)
        for device, (peak, memory, _, _) in MEASURED.items()
    }
    settings = Settings(given)
    cluster = Cluster(schema=1, form="cluster", boards=boards, link_mbps=1000)
    made = assemble(read([FOLDER / f"{name}.json"], settings), cluster, settings)
    boards = zip(MEASURED, made.workload.boards, strict=True)
    return {device: 1e-9 * sum(curve[0][1] for curve in board.forward) for device, board in boards}


def test_the_model_that_was_measured_comes_out_as_measured():
    decode = estimated("llama_3_1_8b", context=512)  # half of 1024 on average
    mean = {phase: math.prod(over_roofline(phase).values()) ** 0.2 for phase in ("decode", "prefill")}
    for device, (_, _, made, _) in MEASURED.items():
        assert decode[device] * over_roofline("decode")[device] / mean["decode"] == pytest.approx(1 / made, rel=0.01)
    prefill = estimated("llama_3_1_8b", phase="prefill", prompt=1024, context=1024)
    for device, (_, _, _, took) in MEASURED.items():
        told = prefill[device] * over_roofline("prefill")[device] / mean["prefill"]
        assert told == pytest.approx(1024 / took, rel=0.02)  # one token goes through the head, bound by memory


def test_another_model_than_the_measured_one():
    # The same source, Llama 2 with 7 billion parameters in 16 bits, tokens per second.
    measured = {"RTX 4080": 44.2, "RTX 3090": 51.85, "RTX 4090": 60.78, "M2 Ultra": 40.68}
    found = estimated("llama_2_7b", context=512)
    off = {device: measured[device] * found[device] - 1 for device in measured}
    assert max(map(abs, off.values())) < 0.11


def test_a_factor_may_be_told(tmp_path):
    path = foreign.write_json(tmp_path / "small.json", SMALL)
    cluster = Cluster(schema=1, form="cluster", boards={"b": Board(memory_gb=1, gflops=1, memory_gbps=1)}, link_mbps=1)
    made = {}
    for factor in (1, 3):
        settings = Settings({"over_roofline": factor})
        found = assemble(read([path], settings), cluster, settings)
        made[factor] = [curve[0][1] for curve in found.workload.boards[0].forward]
        assert "as over_roofline says" in " ".join(found.notes)
    assert made[3] == pytest.approx([3 * each for each in made[1]])


def test_instances_keep_a_layer_graph_that_is_written_and_read_back(tmp_path):
    from mapgap.importing.formats import layer_graph

    before = graph(tmp_path)
    path = foreign.write_json(tmp_path / "graph.json", layer_graph.write(before, {}, "a note"))
    after = read([path])
    assert [after.layer(name) for name in after.order()] == [before.layer(name) for name in before.order()]
    assert json.loads(path.read_text())["layers"][1]["attributes"]["cache_bytes"] > 0


@pytest.mark.parametrize(("micro", "extra"), [(1, 37_500), (2, 18_750)])
def test_a_message_may_take_time_beside_its_bytes(tmp_path, micro, extra):
    path = foreign.write_json(tmp_path / "small.json", SMALL)
    boards = {"board": Board(count=3, memory_gb=1, gflops=1, memory_gbps=1)}
    cluster = Cluster(schema=1, form="cluster", boards=boards, link_mbps=1000)

    def made(**given):
        settings = Settings({"micro_batch": micro, **given})
        return build(assemble(read([path], settings), cluster, settings).workload, settings)

    plain, late = made(), made(message_us=300)
    assert [a.output_bytes - b.output_bytes for a, b in zip(late.layers, plain.layers, strict=True)] == [extra] * 4
    ticks = [each.transfer_ticks(micro * each.layers[1].output_bytes, 125_000_000) for each in (plain, late)]
    assert late.tick_ns == 100
    assert ticks[1] - ticks[0] == pytest.approx(3000, abs=1)
    assert "A message takes 300 us beside its bytes" in late.source
    for other in (made(message_us=300, cuts="graph"), made(message_us=300, transfers="parallel")):
        assert other.latency_ns == ((0, 300_000, 300_000), (300_000, 0, 300_000), (300_000, 300_000, 0))
        assert "up to 300 us" in other.source


def test_messages_over_links_that_differ(tmp_path):
    path = foreign.write_json(tmp_path / "small.json", SMALL)
    boards = {name: Board(memory_gb=1, gflops=1, memory_gbps=1) for name in "abc"}
    links = ({"between": ("a", "b"), "mbps": 100},)
    cluster = Cluster(schema=1, form="cluster", boards=boards, link_mbps=1000, links=links)
    settings = Settings({"message_us": 300})
    found = build(assemble(read([path], settings), cluster, settings).workload, settings)
    assert found.latency_ns == ((0, 300_000, 300_000), (300_000, 0, 300_000), (300_000, 300_000, 0))
    links = ({"between": ("a", "b"), "mbps": 1000, "latency_us": 2000},)
    cluster = Cluster(schema=1, form="cluster", boards=boards, link_mbps=1000, links=links, latency_us=100)
    found = build(assemble(read([path], settings), cluster, settings).workload, settings)
    assert found.latency_ns == ((0, 2_300_000, 400_000), (2_300_000, 0, 400_000), (400_000, 400_000, 0))
    ticks = found.transfer_ticks(found.layers[1].output_bytes, 125_000_000, 2_300_000)
    assert ticks * found.tick_ns == pytest.approx(found.layers[1].output_bytes * 8 + 2_300_000, abs=found.tick_ns)
