"""Boards by name, profiles, estimates and links."""

import json

import foreign
import pytest

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.core.workload import Settings, at
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import Cluster, load, with_profiles
from mapgap.importing.estimate import library_boards
from mapgap.importing.formats import layer_graph
from mapgap.importing.graph import Layer, LayerGraph, Time
from mapgap.importing.recognise import read


def cluster(**boards):
    data = {"schema": 1, "form": "cluster", "link_mbps": 80, "boards": boards}
    return Cluster.model_validate_json(json.dumps(data))


def graph(times=None):
    """Two layers: 1000 and 2000 operations, 40 and 80 bytes out, 100 bytes of weights each."""
    made = LayerGraph("g", input_bytes=20)
    made.add("a", Layer("Gemm", 40, 100, 500))
    made.add("b", Layer("Gemm", 80, 100, 1000), ["a"])
    for kind, factor in (times or {}).items():
        made.times[kind] = {
            "a": {1: Time(factor * 10.0), 4: Time(factor * 40.0)},
            "b": {1: Time(factor * 20.0), 4: Time(factor * 80.0)},
        }
    return made


def test_equal_boards_are_numbered_and_linked():
    found = assemble(graph({"profiled": 1.0}), cluster(n={"count": 2}, fast={"slower": 0.5}), Settings()).workload
    assert [board.name for board in found.boards] == ["n1", "n2", "fast"]
    assert found.boards[0].kind == found.boards[1].kind != found.boards[2].kind
    assert at(found.boards[2].forward[1], 4) == 40
    assert found.bandwidth == ((0, 10**7, 10**7), (10**7, 0, 10**7), (10**7, 10**7, 0))
    assert found.batches == (1, 4)


def test_the_estimate_scales_the_roofline_of_the_measured_board(tmp_path):
    # nx does 100 operations and moves 10 bytes a nanosecond. At the four samples of the profile a takes max(40, 34) ns,
    # b max(80, 58); measured are 10 times as much, so k is 10.
    path = tmp_path / "nx.json"
    path.write_text(json.dumps(layer_graph.write(graph({"profiled": 10.0}), {}, "measured")))
    boards = cluster(
        nx={"profile": str(path), "gflops": 100.0, "memory_gbps": 10.0},
        x={"gflops": 50.0, "memory_gbps": 5.0, "launch_us": 0.001},
    )
    found = assemble(graph(), boards, Settings())
    nx, x = found.workload.boards
    # x is half as fast: at one sample a takes 1 + 10 * max(2 * 500 / 50, 160 / 5) = 321 ns.
    assert at(nx.forward[0], 1) == 100
    assert at(x.forward[0], 1) == pytest.approx(321)
    assert set(found.bars) == {"x"}
    low, high = found.bars["x"]
    assert low < 1 < high
    assert any("Times of x are estimated" in note and "profile of nx" in note for note in found.notes)


def test_without_any_profile_the_library_says_how_far_off_it_may_be():
    found = assemble(graph(), cluster(nx={"board": "NX", "launch_us": 0.0}), Settings())
    ratios = [value for board in library_boards().values() for value in board.over_roofline.values()]
    low, high = found.bars["nx"]
    assert high / low == pytest.approx(max(ratios) / min(ratios))
    assert found.workload.boards[0].memory_bytes == 6_800_000_000  # 8 GB less what the system takes


def test_fused_layers_of_a_profile_go_to_the_first_of_them(tmp_path):
    onnx = pytest.importorskip("onnx")
    assert onnx
    model = tmp_path / "dense.onnx"
    model.write_bytes(foreign.small_onnx())
    entries = [{"count": 9}, {"name": "first + relu", "averageMs": 0.2}, {"name": "second", "averageMs": 0.1}]
    times = foreign.write_json(tmp_path / "times.json", entries)
    boards = with_profiles(cluster(orin={}), {"orin": str(times)})
    found = assemble(read([model]), boards, Settings())
    assert [at(curve, 1) for curve in found.workload.boards[0].forward] == [200_000, 0, 100_000]
    assert any("1 layers of dense have no time of their own on orin" in note for note in found.notes)


def test_the_profile_of_another_model_is_refused(tmp_path):
    pytest.importorskip("onnx")
    model = tmp_path / "dense.onnx"
    model.write_bytes(foreign.small_onnx())
    times = foreign.write_json(tmp_path / "times.json", foreign.TRT_PROFILE)
    boards = with_profiles(cluster(orin={}), {"orin": str(times)})
    with pytest.raises(InputError, match=r"expected the layers of dense \(such as 'first'\), found 'conv1 \+ relu1'"):
        assemble(read([model]), boards, Settings())


def test_one_of_several_kinds_must_be_named():
    both = graph({"one": 1.0, "two": 2.0})
    with pytest.raises(InputError, match=r"boards.x.kind: expected one of one, two .*; found none given"):
        assemble(both, cluster(x={}), Settings())
    assert at(assemble(both, cluster(two={}), Settings()).workload.boards[0].forward[0], 1) == 20


@pytest.mark.parametrize(
    ("boards", "said"),
    [
        ({"x": {"board": "NXX"}}, "boards.x.board: expected one of .*NX.*; found 'NXX'; did you mean 'NX'"),
        ({"x": {}}, "missing: boards.x: expected a profile"),
        ({"x": {"board": "MAX78000"}}, "missing: boards.x: expected a profile"),
    ],
)
def test_what_a_board_lacks_is_named(boards, said):
    with pytest.raises(InputError, match=said):
        assemble(graph(), cluster(**boards), Settings())


def test_without_a_cluster_the_devices_of_the_file_count():
    with pytest.raises(InputError, match="missing: cluster: expected boards, by --cluster"):
        assemble(graph({"profiled": 1.0}), None, Settings())
    bert = read([foreign.FOLDER / "dnn_partitioning" / "bert24_inference.json"])
    assert len(assemble(bert, None, Settings()).workload.boards) == 7


def test_a_broken_cluster_file_is_said_with_line_and_column(tmp_path):
    path = tmp_path / "boards.yaml"
    path.write_text("schema: 1\nform: cluster\nboards:\n  nx: {memory: 4}\nlinks:\n- {between: [nx, ny], mbps: 10}\n")
    with pytest.raises(InputError) as caught:
        load(path)
    assert "boards.yaml:4:8: boards.nx.memory: expected a known field" in "\n".join(caught.value.problems)


def test_profiles_lie_beside_the_cluster_file(tmp_path):
    (tmp_path / "inner").mkdir()
    path = tmp_path / "inner" / "boards.yaml"
    (tmp_path / "inner" / "p.json").write_text("{}")
    path.write_text("schema: 1\nform: cluster\nboards:\n  nx: {profile: 'p.json#fast'}\n")
    assert load(path).boards["nx"].profile == f"{tmp_path / 'inner' / 'p.json'}#fast"


def test_boards_that_differ_in_memory_or_speed_are_kinds_of_their_own():
    boards = cluster(
        small={"kind": "profiled", "memory_gb": 1.0},
        large={"kind": "profiled", "memory_gb": 2.0, "count": 2},
        slow={"kind": "profiled", "memory_gb": 2.0, "slower": 3.0},
    )
    workload = assemble(graph({"profiled": 1e6}), boards, Settings()).workload
    instance = registry.library("hybrid_pipeline").imported(workload, Settings({"backward": 2, "training": True}))
    assert [device.type for device in instance.devices] == [0, 1, 1, 2]
    assert [kind.memory for kind in instance.types] == [10**9 // 1024, 2 * 10**9 // 1024, 2 * 10**9 // 1024]
    ticks = [kind.forward[0][0] for kind in instance.types]
    assert ticks[2] == 3 * ticks[0] == 3 * ticks[1]
    assert instance.types[0].backward[1][3] == 2 * instance.types[0].forward[1][3]
