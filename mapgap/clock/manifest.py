"""The folder of a model in parts: a model per stage, and a manifest that names boards, shares, layers and tensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mapgap.core import InputError
from mapgap.core.storage import kind_of, make_folder, read_bytes, read_text, replace_file

NAME = "manifest.json"
LARGEST = 2**31


def write(folder: Path, head: Mapping[str, Any], stages: Sequence[Mapping[str, Any]], files: Sequence[bytes]) -> None:
    """The parts, then the manifest: without it, or with another part, nobody believes the folder.

    Raises
    ------
    InputError
        It cannot be written.
    """
    make_folder(folder)
    (folder / NAME).unlink(missing_ok=True)
    told = []
    for k, (stage, data) in enumerate(zip(stages, files, strict=True)):
        name = f"stage{k}.onnx"
        replace_file(folder / name, data, parents=False)
        told.append({"stage": k, "file": name, "sha256": hashlib.sha256(data).hexdigest(), **stage})
    text = json.dumps({"schema": 1, "form": "parts", **head, "stages": told}, indent=1)
    replace_file(folder / NAME, f"{text}\n".encode(), parents=False)


def read(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """The manifest, and the model of every stage.

    Raises
    ------
    InputError
        There is no manifest, or a part is not the one of which it speaks.
    """
    path = folder / NAME
    if kind_of(path) != "a file":
        raise InputError(f"{folder}: expected a folder that mapgap split has written, found no {NAME}")
    try:
        manifest = json.loads(read_text(path))
        sound = manifest["form"] == "parts" and manifest["schema"] == 1
        stages = [(str(stage["file"]), str(stage["sha256"])) for stage in manifest["stages"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: expected a manifest of mapgap split, found another file") from error
    if not sound or any(Path(name).name != name for name, _ in stages):
        raise InputError(f"{path}: expected a manifest of mapgap split, found another file")
    files = [read_bytes(folder / name, limit=LARGEST) for name, _ in stages]
    for (name, told), data in zip(stages, files, strict=True):
        if hashlib.sha256(data).hexdigest() != told:
            raise InputError(f"{folder / name}: expected the part that {NAME} names, found another file")
    return manifest, files
