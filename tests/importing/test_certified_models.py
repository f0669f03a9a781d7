"""Real networks under one command: both optima of inference are proven."""

import pytest

from mapgap.studies.hybrid_pipeline.certified_models import certified, packaged

pytest.importorskip("onnx")
MODELS = {path.parent.name if path.stem == "model" else path.stem: path for path in packaged()}


def proven(name, folder):
    found = certified(MODELS[name], folder)
    assert set(found["optima"]) == {"latency", "bottleneck"}
    # One sample at a time is over when its last step is, and its longest step is no longer than all of them.
    assert 0 < found["optima"]["bottleneck"] <= found["optima"]["latency"]


@pytest.mark.in_turn
def test_a_real_network_is_certified(tmp_path):
    proven("light_zfnet512", tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_every_real_network_at_hand_is_certified(name, tmp_path):
    proven(name, tmp_path)
