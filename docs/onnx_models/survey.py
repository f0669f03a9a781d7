"""Reads real ONNX models out of Python packages and writes a table of what became of each.

    python survey.py packages                    the packages, for: pip download --no-deps -d WHEELS PACKAGE …
    python survey.py table --wheels WHEELS       reads models.yaml, writes table.csv

``onnxruntime`` is asked about every model apart from mapgap: a session of the unaltered file, all optimisations on, one
run. What mapgap read is checked for conservation as in every import; its settings are those of ``models.yaml``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import yaml

from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.conservation import line, shares
from mapgap.importing.formats import onnx_model
from mapgap.importing.onnx_files.dimensions import fix
from mapgap.importing.onnx_files.nodes import bodies
from mapgap.importing.onnx_files.run import values
from mapgap.importing.recognise import read
from mapgap.importing.source import Source

HERE = Path(__file__).parent
QUANTISED = ("QuantizeLinear", "DequantizeLinear", "QLinear", "Integer", "DynamicQuantize", "QGemm")


def listed() -> list[dict[str, Any]]:
    """The entries of models.yaml: package, version, file, and what is set or made."""
    return [
        {"package": package, "version": str(held["version"]), **({"file": each} if isinstance(each, str) else each)}
        for package, held in yaml.safe_load((HERE / "models.yaml").read_text(encoding="utf-8")).items()
        for each in held["files"]
    ]


def content(wheels: Path, entry: dict[str, Any]) -> bytes:
    """The bytes of a model in its downloaded package."""
    stem = entry["package"].replace("-", "_").lower()
    for path in sorted(wheels.glob("*")):
        if path.name.replace("-", "_").lower().startswith(f"{stem}_{entry['version']}"):
            if path.suffix == ".whl":
                return zipfile.ZipFile(path).read(entry["file"])
            with tarfile.open(path) as archive:
                held = archive.extractfile(entry["file"])
                return held.read() if held is not None else b""
    raise SystemExit(f"{wheels}: expected {entry['package']} {entry['version']}, found no such file")


def made(path: Path, how: str, settings: Settings) -> Path:
    """Another model made of one: quantised, or in half precision, or with its weights in a file beside it."""
    out = path.with_name(f"{path.stem}_{how}.onnx")
    if how == "external":
        onnx.save(onnx.load(path), out, save_as_external_data=True, location=f"{out.stem}.bin", size_threshold=1024)
        return out
    if how == "float16":
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(onnx.load(path)), out)
        return out
    from onnxruntime import quantization

    if how == "dynamic":
        quantization.quantize_dynamic(path, out)
        return out

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [feed(path, settings)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    form = {"qdq": quantization.QuantFormat.QDQ, "qoperator": quantization.QuantFormat.QOperator}[how]
    quantization.quantize_static(path, out, Reader(), quant_format=form)
    return out


def feed(path: Path, settings: Settings) -> dict[str, np.ndarray[Any, Any]]:
    """Values for the inputs of a model."""
    model = onnx_model.load(Source.open(path))
    fix(model, settings)
    settings.check()
    return values(model, settings)


def asked_of_onnxruntime(path: Path, settings: Settings) -> str:
    """What ONNX Runtime makes of the unaltered file."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feed(path, settings))
    except Exception as error:  # ONNX Runtime raises errors of its own that have no common base
        return f"refuses: {str(error).splitlines()[0][:160]}"
    return "runs"


def surveyed(entry: dict[str, Any], folder: Path, wheels: Path) -> dict[str, Any]:
    """One row of the table."""
    path = folder / Path(entry["file"]).name
    path.write_bytes(content(wheels, entry))
    given = entry.get("set", {})
    if "make" in entry:
        path = made(path, entry["make"], Settings(given))
    model = onnx.load(path, load_external_data=False)
    kinds = [node.op_type for node in model.graph.node]
    row = {
        "package": entry["package"],
        "version": entry["version"],
        "file": entry["file"],
        "made": entry.get("make", ""),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bytes": path.stat().st_size,
        "nodes": len(kinds),
        "with graphs inside": sum(any(True for _ in bodies(node)) for node in model.graph.node),
        "quantised": sum(any(word in kind for word in QUANTISED) for kind in kinds),
        "settings": " ".join(f"{name}={value}" for name, value in given.items()),
        "onnxruntime": asked_of_onnxruntime(path, Settings(given)),
    }
    try:
        graph = read([path], Settings(given))
    except InputError as error:
        return row | {"mapgap": f"refused: {'; '.join(error.problems)}".replace(str(path), path.name)}
    layers = [graph.layer(name) for name in graph.graph]
    return row | {
        "mapgap": "accepted",
        "layers": len(layers),
        "weight bytes": sum(layer.weight_bytes for layer in layers),
        "multiply-accumulates": sum(layer.macs or 0 for layer in layers),
        "shapes": "run" if any("one run" in text for text in graph.origins[0].assumed) else "inference",
        "conserved": line(shares(graph)),
    }


def shown(rows: list[dict[str, Any]]) -> str:
    """The rows as a table of the page."""
    head = ("package", "model", "MB", "nodes", "layers", "weights MB", "million products", "shapes", "mapgap")
    lines = [head, ["---"] * 2 + ["--:"] * 5 + ["---"] * 2]
    for row in rows:
        name = Path(row["file"]).stem + (f", {row['made']}" if row["made"] else "")
        marks = [
            f"{row[key]} {word}"
            for key, word in (("with graphs inside", "Loop/If"), ("quantised", "quantised"))
            if row[key]
        ]
        said = row["mapgap"] if row["mapgap"] == "accepted" else f"{row['mapgap']}; ONNX Runtime {row['onnxruntime']}"
        sizes = [f"{row.get(key, 0) / 1e6:,.1f}" for key in ("bytes", "weight bytes", "multiply-accumulates")]
        nodes = f"{row['nodes']}" + (f" ({', '.join(marks)})" if marks else "")
        where = row.get("shapes", "")
        lines.append(
            [
                f"{row['package']} {row['version']}",
                name,
                sizes[0],
                nodes,
                f"{row.get('layers', '')}",
                *sizes[1:],
                where,
                said,
            ]
        )
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("packages", "table"))
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    if chosen.what == "packages":
        print(*dict.fromkeys(f"{each['package']}=={each['version']}" for each in listed()))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for k, entry in enumerate(listed()):
            if chosen.only in entry["file"]:
                inner = Path(folder) / str(k)
                inner.mkdir()
                rows.append(surveyed(entry, inner, chosen.wheels))
                print(rows[-1]["mapgap"][:100], entry["package"], entry["file"], entry.get("make", ""), flush=True)
    if not chosen.only:
        with (HERE / "table.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        (HERE / "table.txt").write_text(shown(rows), encoding="utf-8")
    accepted = sum(row["mapgap"] == "accepted" for row in rows)
    different = len({row["sha256"] for row in rows})
    print(f"{accepted} of {len(rows)} accepted ({different} different files)")


if __name__ == "__main__":
    main()
