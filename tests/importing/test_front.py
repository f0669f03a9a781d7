"""The plans that are best for some length of the answer, against all lengths."""

import json
import random
from pathlib import Path

import pytest
from cli_support import inside

from mapgap.contract.seeds import seeds
from mapgap.core.workload import Settings
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import load
from mapgap.importing.front import front
from mapgap.importing.recognise import read
from mapgap.importing.source import located
from mapgap.instances.hybrid_pipeline.importing import build

MODEL, CLUSTER = Path("hugging_face/llama_3_2_3b.json"), Path("clusters/spark_and_studio.yaml")


@pytest.mark.parametrize("seed", seeds(30, 600))
def test_pieces_are_what_all_lengths_say(seed):
    # A plan is its own two times; an instance is a number of tokens. Ties have several answers, so values are compared.
    rng = random.Random(f"front-{seed}")
    size = rng.choice((5, 30, 1000))
    plans = [(rng.randint(0, size), rng.randint(0, size)) for _ in range(rng.randint(0, 12))]
    asked = []

    def solve(tokens):
        asked.append(tokens)
        best = {None: lambda plan: plan[1]}.get(tokens, lambda plan: plan[0] + (tokens or 0) * plan[1])
        return min(plans, key=lambda plan: (best(plan), rng.random()), default=None)

    def value(tokens, plan):
        return plan[1] if tokens is None else plan[0]

    pieces = front(lambda tokens: tokens, solve, value)
    assert bool(pieces) == bool(plans)
    assert len(asked) <= 3 * len(plans) + 2
    if plans:
        assert [piece.first for piece in pieces] == [0, *(piece.last + 1 for piece in pieces[:-1])]
        assert pieces[-1].last is None
    for tokens in range(2 * size if plans else 0):
        (piece,) = (p for p in pieces if p.first <= tokens and (p.last is None or tokens <= p.last))
        assert piece.point.request(tokens) == min(p + tokens * d for p, d in plans)
    if plans and min(d for _, d in plans) == 0:
        assert pieces[-1].point.decode == 0


def imported(**given):
    boards, settings = load(located(CLUSTER)), Settings({"bits": 4.5, **given})
    return build(assemble(read([located(MODEL)], settings), boards, settings).workload, settings)


def test_a_request_is_a_prompt_and_its_tokens():
    tokens, prompt = 50, 300
    one, other, both = (
        imported(prompt=prompt, message_us=200, tick_ns=1000, phase="prefill"),
        imported(prompt=prompt, message_us=200, tick_ns=1000, phase="decode"),
        imported(prompt=prompt, message_us=200, tick_ns=1000, phase="request", tokens=tokens),
    )
    assert both.devices == one.devices
    for k, layer in enumerate(both.layers):
        first, second = one.layers[k], other.layers[k]
        assert layer.weight_bytes == first.weight_bytes == second.weight_bytes
        assert layer.state_memory == first.state_memory
        assert layer.activation_memory == first.activation_memory == second.activation_memory  # one cache for both
        assert layer.flops == first.flops + tokens * second.flops
        assert (
            layer.output_bytes == first.output_bytes + tokens * second.output_bytes
        )  # 51 messages of 200 us among them
        for t, kind in enumerate(both.types):
            apart = one.types[t].forward[k][0] + tokens * other.types[t].forward[k][0]
            assert kind.forward[k][0] == pytest.approx(apart, abs=1 + tokens / 2)  # ticks are rounded once or 51 times


def asked(*more):
    return inside("import", MODEL, "--cluster", CLUSTER, "--set", "bits=4.5", "--set", "message_us=300", *more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", "phase=request", "--set", "mini_batch=2"), "a stage passes no request as a whole"),
        (("--set", "phase=request", "--set", "prompt=4000"), "found 4000 tokens and 256 more"),
        (("--set", "phase=answer"), "expected one of decode, prefill, request"),
        (("--front", "--solve"), "beside --front"),
        (("--front", "--set", "phase=decode"), "goes over all of them"),
    ],
)
def test_what_is_refused(more, words):
    done = asked(*more)
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.in_turn
def test_the_front_of_a_model_is_printed():
    done = asked("--front", "--json")
    assert done.returncode == 0, done.stderr
    pieces = json.loads(done.stdout)["front"]
    # The Spark is quicker at operations, the Studio at memory: the one gets a prompt alone, the other long answers.
    assert pieces[0]["plan"]["stages"][0]["devices"] == [0]
    assert pieces[-1]["plan"]["stages"] == [{"start": 0, "stop": 30, "devices": [1], "shares": [1]}]
    assert pieces[0]["prefill_ns"] < pieces[-1]["prefill_ns"]
    assert pieces[0]["token_ns"] > pieces[-1]["token_ns"]
