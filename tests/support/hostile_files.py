"""Files that attack whoever reads them, of any number: for the tests of recognition and reading."""

import json
import os
import random
import struct
import zlib
from pathlib import Path

WORDS = ("a", " ", "\n", "\t", " -- ", "=", "[", "]", "{", "}", ":", ",", "- ", "&a ", "*a ", '"', "'", "compute_time=")


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    """A length-delimited field of protobuf."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(key, value):
    return varint(key << 3) + varint(value)


def onnx_node(operation, inputs, outputs, name="n", domain=""):
    parts = [field(1, each.encode()) for each in inputs] + [field(2, each.encode()) for each in outputs]
    return b"".join(parts) + field(3, name.encode()) + field(4, operation.encode()) + field(7, domain.encode())


def onnx_value(name, *dims):
    shape = b"".join(field(1, number(1, dim)) for dim in dims)
    return field(1, name.encode()) + field(2, field(1, number(1, 1) + field(2, shape)))


def onnx_model(nodes, functions=(), dims=(1, 4)):
    graph = b"".join(field(1, node) for node in nodes) + field(2, b"g")
    graph += field(11, onnx_value("x", *dims)) + field(12, onnx_value("y", *dims))
    imports = field(8, number(2, 17)) + field(8, field(1, b"f") + number(2, 1))
    return number(1, 8) + field(7, graph) + imports + b"".join(field(25, each) for each in functions)


def function(name, nodes):
    parts = field(1, name.encode()) + field(4, b"x") + field(5, b"y")
    parts += b"".join(field(7, node) for node in nodes) + field(9, field(1, b"f") + number(2, 1))
    return parts + field(9, number(2, 17)) + field(10, b"f")


def function_bomb(random_):
    depth = random_.randrange(25, 40)
    made = []
    for k in range(depth):
        call = ("Relu", "") if k == depth - 1 else (f"f{k + 1}", "f")
        nodes = [onnx_node(call[0], ["x"], ["z"], "a", call[1]), onnx_node(call[0], ["z"], ["y"], "b", call[1])]
        made.append(function(f"f{k}", nodes))
    return onnx_model([onnx_node("f0", ["x"], ["y"], domain="f")], made)


def subgraphs(random_):
    """``If`` in ``If`` in ``If``."""
    data = field(1, onnx_node("Relu", ["x"], ["y"])) + field(2, b"g")
    for _ in range(random_.choice([30, 200, 5000])):
        attribute = field(1, b"then_branch") + field(6, data) + number(20, 5)
        data = field(1, onnx_node("If", ["x"], ["y"]) + field(5, attribute)) + field(2, b"g")
        if len(data) > 2**20:
            break
    return number(1, 8) + field(7, data) + field(8, number(2, 17))


def chain(random_, count=5_000):
    """So many operators, in a chain or all of one tensor."""
    wide = random_.random() < 0.5
    nodes = [onnx_node("Relu", ["x" if wide or k == 0 else f"t{k - 1}"], [f"t{k}"], f"n{k}") for k in range(count)]
    return onnx_model([*nodes, onnx_node("Relu", [f"t{count - 1}"], ["y"], "last")])


def double_outputs(random_):
    return onnx_model([onnx_node("Relu", ["x"], ["y"], "a"), onnx_node("Sigmoid", ["x"], ["y"], "b")])


def dimensions(random_):
    return onnx_model([onnx_node("Relu", ["x"], ["y"])], dims=[random_.choice([2**62, 2**31, 2**63 - 1, 0])] * 3)


def lengths(random_):
    """A length that promises more than there is."""
    return number(1, 8) + varint(7 << 3 | 2) + varint(random_.choice([2**31 - 1, 2**40, 2**62])) + b"x" * 100


def cycle(random_):
    return onnx_model([onnx_node("Relu", ["b"], ["a"], "1"), onnx_node("Relu", ["a"], ["b"], "2")])


def empty_operators(random_):
    """Two bytes make an operator."""
    return number(1, 8) + field(7, b"\x0a\x00" * random_.choice([200_001, 1_000_000]))


def nested_messages(random_):
    """Graphs in attributes in graphs, past what protobuf follows."""
    data = b""
    for _ in range(random_.choice([90, 3_000])):
        data = field(1, field(5, field(6, data)))
    return number(1, 8) + field(7, data)


def packed_numbers(random_):
    """A byte makes a number of eight."""
    tensor = number(2, 7) + field(7, b"\0" * 5_000_000) + field(8, b"w")
    return number(1, 8) + field(7, field(5, tensor) + field(1, onnx_node("Relu", ["w"], ["y"])) + field(12, b""))


def broken_text(random_):
    return field(7, field(1, onnx_node("Relu", ["x"], ["y"]).replace(b"Relu", b"\xff\xfe\xed\xa0"))) + number(1, 8)


def many_lines(random_):
    blank = random_.choice(["\n", " \n", "\t", " ", "\r\n", "\x0b", "\u2028"])
    return (blank * random_.choice([10**5, 10**6]) + random_.choice(["a", "a -- b", "{", "---"])).encode()


def long_words(random_):
    return (random_.choice(WORDS) * random_.choice([10**5, 10**6])).encode()


def pipedream(random_):
    """Lines that look like layers, one part repeated without end."""
    line = "node1 -- Conv -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1"
    part = random_.choice(line.split())
    return (line.replace(part, part * random_.choice([10, 10**5]), 1) + "\n" + "\tnode1 -- node1\n" * 5).encode()


def deep(random_):
    opening, closing = random_.choice([("[", "]"), ('{"a":', "}"), ("- ", ""), ("a: {", "}")])
    depth = random_.choice([100, 10**4, 10**6])
    return (opening * depth + "1" + closing * depth).encode()


def surrogates(random_):
    text = random_.choice(['"\\ud800"', '"\\udfff x"', '"\\ud83d\\u0041"'])
    kind = random_.choice(
        ['{"format": "mapgap layer graph 1", "name": %s, "input_bytes": 1, "layers": []}', '{"nodes": [%s]}', "[%s]"]
    )
    return (kind % text).encode()


def laughs(random_):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, random_.choice([9, 30]))]
    return "\n".join(lines).encode()


def numbers(random_):
    value = random_.choice(["1" * 10**5, "1e400", "NaN", "-1", "9" * 20, "1e-400", "0x" + "f" * 10**5])
    nodes = [{"id": 0, "cpuLatency": "@", "fpgaLatency": 1, "size": 1, "supportedOnFpga": 1, "isBackwardNode": 0}]
    data = {"maxFPGAs": 1, "maxCPUs": 1, "maxSizePerFPGA": 1, "nodes": nodes, "edges": []}
    return json.dumps(data).replace('"@"', value).encode()


def many_entries(random_):
    count = random_.choice([10**4, 3 * 10**4])
    nodes = [{"id": k, "cpuLatency": 1, "fpgaLatency": 1, "size": 1, "supportedOnFpga": 1} for k in range(count)]
    edges = [{"sourceId": k, "destId": k + 1, "cost": 1} for k in range(count - 1)]
    return json.dumps({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 9, "nodes": nodes, "edges": edges}).encode()


def noise(random_):
    return random_.randbytes(random_.choice([1, 100, 10**5]))


def mixed(random_):
    return "".join(random_.choices(WORDS, k=random_.choice([10**3, 10**5]))).encode()


def compressed(random_):
    data = zlib.compress(b"\0" * 10**7)
    return random_.choice(
        [b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + data[2:], b"PK\x03\x04" + data, struct.pack("<Q", 7) + data]
    )


MAKERS = {
    ".onnx": (
        function_bomb,
        subgraphs,
        chain,
        double_outputs,
        dimensions,
        lengths,
        empty_operators,
        nested_messages,
        packed_numbers,
        cycle,
        broken_text,
        noise,
        compressed,
    ),
    ".txt": (many_lines, long_words, pipedream, mixed, noise),
    ".json": (deep, surrogates, numbers, many_entries, noise),
    ".yaml": (deep, laughs, many_lines, mixed, long_words),
}


def special(folder: Path):
    """What is no regular file, by name."""
    os.mkfifo(folder / "fifo.txt")
    (folder / "folder.onnx").mkdir()
    (folder / "device.json").symlink_to("/dev/zero")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "profiles").mkdir()
    os.mkfifo(folder / "profiles" / "a.json")
    return [folder / name for name in ("fifo.txt", "folder.onnx", "device.json", "loop.txt", "profiles")]


def write(folder: Path, seed: int) -> Path:
    """The file of a seed: its kind and what is in it."""
    kinds = [(suffix, maker) for suffix, makers in MAKERS.items() for maker in makers]
    suffix, maker = kinds[seed % len(kinds)]
    path = folder / f"{seed}_{maker.__name__}{suffix}"
    path.write_bytes(maker(random.Random(seed)))
    return path
