"""What somebody has read and accepted: a hash of every file of a checkout that no other part of the audit can remake.

Pages of prose without their figures, run files, the papers' numbers, and reports that no study makes. A change of one
is a fault until ``mapgap audit --accept`` writes its hash anew, which is one more line in the difference that a
reviewer reads. This proves that nothing has changed since, and not that it was true.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from mapgap.core.storage import replace_file
from mapgap.evidence.audit import Fault
from mapgap.reporting.prose import emptied

LIST = Path("reports") / "accepted.sha256"
FACTS = (
    "CITATION.cff",
    "codemeta.json",
    "instances/published/*",
    "instances/*/readings.yaml",
    "reports/best_known/*.yaml",
)
"""Files of facts, by pattern."""
BY_HAND = ("cross_check", "planted_lies", "robustness", "worst_cases")
"""Reports that are written beside their runs, by tests or by hand."""


def covered(root: Path, pages: Iterable[Path], runs: Iterable[Path]) -> list[Path]:
    """The files of a checkout that are accepted as they are; ``runs`` are named by their plain forms."""
    found = {file for pattern in FACTS for file in root.glob(pattern)} | {*pages}
    found |= {file for name in BY_HAND for file in (root / "reports" / name).rglob("*") if file.is_file()}
    for plain in runs:
        found |= {file for file in (plain, plain.with_name(f"{plain.name}.gz")) if file.is_file()}
    return sorted(found)


def digest(file: Path) -> str:
    """SHA-256 of what a file says: a packed one unpacked, a page without what its placeholders show."""
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    elif file.suffix == ".md":
        content = emptied(content.decode()).encode()
    return hashlib.sha256(content).hexdigest()


def listed(root: Path) -> dict[str, str]:
    """Hash by path in the checkout, as accepted; a packed file under the name of its plain form."""
    file = root / LIST
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {path: sha for sha, _, path in (line.partition("  ") for line in lines)}


def name_of(root: Path, file: Path) -> str:
    """The path of a file in the checkout, packed or not."""
    return (file.with_suffix("") if file.suffix == ".gz" else file).relative_to(root).as_posix()


def accept(root: Path, files: Iterable[Path]) -> list[str]:
    """List these files as they are; the paths that were not listed so, or are listed no longer."""
    before, now = listed(root), {name_of(root, file): digest(file) for file in files}
    text = "".join(f"{now[path]}  {path}\n" for path in sorted(now))
    replace_file(root / LIST, text.encode())
    return sorted({path for path, _ in before.items() ^ now.items()})


def changed(root: Path, files: Iterable[Path]) -> Iterator[Fault]:
    """Files that are not as they were accepted."""
    known = listed(root)
    for file in files:
        if known.get(name_of(root, file)) != digest(file):
            words = "is not as it was accepted: read what has changed, then mapgap audit --accept"
            yield Fault("changed", str(file), words)


def gone(root: Path, files: Iterable[Path]) -> Iterator[Fault]:
    """Accepted files that are not there."""
    for path in sorted(listed(root).keys() - {name_of(root, file) for file in files}):
        yield Fault("changed", str(root / path), "was accepted, found no file")
