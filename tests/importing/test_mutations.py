"""A broken foreign file is one clear error, or still a model; it is never a traceback."""

import random
import shutil
import warnings

import foreign
import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples
from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import equal_boards
from mapgap.importing.recognise import read

PROBLEMS = ("hybrid_pipeline", "multi_model_splitting", "suboperation_mapping")
GALVATRON = {"layers": 8, "output_bytes": 1000, "weight_bytes": 1000}
ROOT = foreign.FOLDER


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Format to its files and the settings that it needs."""
    folder = tmp_path_factory.mktemp("whole")
    found = {
        "pipedream": ([ROOT / "pipedream" / "alexnet.graph.txt"], {}),
        "dnn_partitioning": ([ROOT / "dnn_partitioning" / "bert24_inference.json"], {}),
        "pipeedge": (
            [ROOT / "pipeedge" / f"{name}.yml" for name in ("models", "device_types", "devices")],
            {"model": "google/vit-base-patch16-224"},
        ),
        "galvatron": (sorted((ROOT / "galvatron").glob("*all.json")), GALVATRON),
        "nnscaler": ([*sorted((ROOT / "nnscaler" / "comp").glob("*.json")), ROOT / "nnscaler" / "attention.txt"], {}),
        "ort_profile": ([foreign.write_json(folder / "ort.json", foreign.EVENTS)], ASKED),
        "tensorrt": (
            [
                foreign.write_json(folder / "layers.json", foreign.TRT_LAYERS),
                foreign.write_json(folder / "times.json", foreign.TRT_PROFILE),
            ],
            {},
        ),
    }
    model = {
        "model_type": "mixtral", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
        "vocab_size": 10, "max_position_embeddings": 64, "torch_dtype": "float16",
    }  # fmt: skip
    found["hugging_face"] = ([foreign.write_json(folder / "model.json", model)], {})
    path = folder / "dense.onnx"
    path.write_bytes(foreign.small_onnx())
    found["onnx"] = ([path], ASKED)
    return found


ASKED = {"training": True}
NAMES = (
    "pipedream",
    "dnn_partitioning",
    "pipeedge",
    "galvatron",
    "nnscaler",
    "ort_profile",
    "tensorrt",
    "onnx",
    "hugging_face",
)


def imported(paths, given, problem):
    """The instance of a problem, as the command makes it."""
    settings = Settings(given)
    graph = read(paths, settings)
    listed = any(kind.names for kind in graph.kinds.values())
    cluster = None if listed else equal_boards(2, 1000.0, 16.0)
    if not graph.times and cluster is not None:
        board = cluster.boards["board"].model_copy(update={"gflops": 100.0, "memory_gbps": 10.0})
        cluster = cluster.model_copy(update={"boards": {"board": board}})
    workload = assemble(graph, cluster, settings).workload
    if problem != "hybrid_pipeline":
        settings.given.pop("training", None)  # theirs is settled
    return registry.library(problem).imported(workload, settings)


def broken(name, cases, folder, seed):
    """The files of a format with one of them broken."""
    rng = random.Random(f"{name}-{seed}")
    paths, given = cases[name]
    copies = [folder / path.name for path in paths]
    for path, copy in zip(paths, copies, strict=True):
        shutil.copy(path, copy)
    victim = rng.choice(copies)
    victim.write_bytes(foreign.mutated(victim.read_bytes(), rng))
    return copies, given


def attempt(name, cases, folder, seed):
    """1 if the broken files were refused."""
    paths, given = broken(name, cases, folder, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            imported(paths, given, PROBLEMS[seed % len(PROBLEMS)])
        except InputError as error:
            unclear = [text for text in error.problems if "Traceback" in text or "expected" not in text]
        else:
            return 0
    assert unclear == []
    return 1


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_make_instances(name, cases):
    paths, given = cases[name]
    instance = imported(paths, given, "hybrid_pipeline")
    assert instance.layers
    assert "sha256" in instance.source


@pytest.mark.parametrize("sample", samples(12, 120))
@pytest.mark.parametrize("name", NAMES)
def test_broken_files_are_refused_or_still_a_model(name, sample, cases, tmp_path):
    assert sum(attempt(name, cases, tmp_path, seed) for seed in sample) > 0
