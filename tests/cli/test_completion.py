"""Shell completion, as the shell asks for it: names of instances, methods, problems, families and studies."""

import os
import subprocess
import sys

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files

RUN = "import sys; sys.argv = ['mapgap']; from mapgap.cli import main; main()"


def completed(line):
    """What bash offers for the last word of a line; a trailing space begins a new word."""
    words = line.split(" ")
    env = {**os.environ, "_MAPGAP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mapgap sol", ["solve"]),
        ("mapgap list --prob", ["--problem"]),
        ("mapgap solve elfish_lenet_", [f"elfish_lenet_straggler{k}" for k in (1, 2, 3, 4)]),
        ("mapgap check dhm_resnet18_f", [name for name in library_files() if name.startswith("dhm_resnet18_f")]),
        (
            "mapgap solve elfish_lenet_straggler1@",
            [f"elfish_lenet_straggler1@{each}" for each in registry.problems()["neuron_masking"].objectives],
        ),
        ("mapgap solve elfish_lenet_straggler1 --method elf", ["elfish_greedy"]),
        ("mapgap solve asteroid_a_bert_small_100mbps -m label", ["label_dp"]),
        ("mapgap solve elfish_lenet_straggler1 -m label", []),  # a method of other problems
        ("mapgap solve a_file.yaml -m label_d", ["label_dp"]),  # of whatever problem the file is
        ("mapgap attack suboperation_mapping -m hef", ["heft", "heft_dfs"]),
        ("mapgap generate neuron", ["neuron_masking"]),
        ("mapgap generate neuron_masking s", ["scaling", "small"]),
        ("mapgap show hybrid", ["hybrid_pipeline"]),
        ("mapgap study dfs", ["dfs_vs_converting"]),
    ],
)
def test_the_shell_offers(line, offered):
    assert sorted(completed(line)) == sorted(offered)


def test_every_method_of_the_problem_is_offered():
    assert sorted(completed("mapgap solve elfish_lenet_straggler1 -m ")) == sorted(registry.methods("neuron_masking"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shell):
    env = {**os.environ, "_MAPGAP_COMPLETE": f"source_{shell}"}
    done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "_MAPGAP_COMPLETE" in done.stdout
