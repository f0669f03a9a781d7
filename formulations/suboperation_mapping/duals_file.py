"""The file in which a bound leaves its duals: gzip around JSON, ``{"schema", "instance", "bound", "boxes"}``.

Every box has its groups of shares ``holds``, each ``[low, high, count]``: so many shares of so many samples each; its
``bound``; and its ``proof``: the ``places`` of fused operations, each ``[phase, layer, accelerator]``, and multipliers
``rows`` as ``[row, y, ...]``. They are whole numbers, in units of ``2 ** -shift``, on the rows of ``LocatedModel``; or,
with ``columns`` true or false and the ticks in a unit of time as ``scale``, doubles on those of ``StageModel``.
Together the boxes with their places hold all plans. A box without a proof has a bound that needs no program, or has
none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mapgap.problems.suboperation_mapping import Instance

Group = Sequence[int]


def write_duals(
    path: str, instance: Instance, bound: int, boxes: Iterable[tuple[Iterable[Group], int, dict[str, Any] | None]]
) -> None:
    """Write the groups, bound and proof of every box that a bound rests on."""
    listed = [{"holds": [list(g) for g in groups], "bound": least, "proof": proof} for groups, least, proof in boxes]
    content = {"schema": 1, "instance": instance.content_hash, "bound": bound, "boxes": listed}
    Path(path).write_bytes(gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0))
