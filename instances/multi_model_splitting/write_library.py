"""Writes the library files next to this module: ``python -m mapgap.instances.multi_model_splitting.write_library``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mapgap.instances.writing import compact_text, write_files

FOLDER = Path(__file__).parent / "library"
WORKLOADS = {
    1: ("convnet5", "ressimplenet", "unet"),
    2: ("kws", "simplenet", "widenet"),
    3: ("efficientnetv2",),
    4: ("mobilenetv2",),
}
FIG_11A = ("convnet5", "kws", "simplenet", "ressimplenet")
FIG_11B = ("unet", "convnet5", "simplenet", "kws", "ressimplenet", "widenet")
FIG_12 = ("convnet5", "unet", "efficientnetv2")
FIG_6 = ("kws", "efficientnetv2")
SMALL, LARGE = "MAX78000", "MAX78002"
MAPPINGS = {
    "distributed": "pipeline i (from 0) starts and ends on device i modulo the number of devices",
    "overlapped": "every pipeline starts and ends on the first device",
    "any": "every device may be source and target",
}
DERIVED = (
    "Published: models, number and type of devices. Derived: layer tables of the vendor's repositories, inference "
    "cycles of Sec. 5.4.1, radio and copy time per byte from Fig. 7. Assumed: {mapping}; sensing takes no time "
    "(measured by the authors, not printed)."
)


def text(name: str, where: str, tags: list[str], models: Sequence[str], devices: Sequence[str], mapping: str) -> str:
    """One compact file."""
    source = f"Synergy, {where}. " + DERIVED.format(mapping=MAPPINGS[mapping])
    pipelines = []
    for index, model in enumerate(models):
        place = 1 if mapping == "overlapped" else index % len(devices) + 1
        needs = "" if mapping == "any" else f", source: {{device: d{place}}}, target: {{device: d{place}}}"
        pipelines.append(f"\n- {{model: {model}{needs}}}")
    numbered = "".join(f"\n- {{name: d{i}, type: {kind}}}" for i, kind in enumerate(devices, 1))
    fields = {"devices": numbered, "pipelines": "".join(pipelines)}
    return compact_text("multi_model_splitting", name, source, tags, fields)


def files() -> dict[str, str]:
    """Content of every library file by name."""
    found: dict[str, str] = {}

    def add(name: str, where: str, tags: list[str], models: Sequence[str], devices: list[str], mapping: str) -> None:
        found[name] = text(name, where, ["synergy", *tags, mapping], models, devices, mapping)

    for number, models in WORKLOADS.items():
        for mapping in MAPPINGS:
            name, tags = f"synergy_w{number}_{mapping}", [f"workload{number}"]
            where = f"Sec. 7.2, workload {number}" + (" (Sec. 7.3.3, Fig. 13)" if number == 1 else "")
            add(name, where, tags, models, [SMALL] * 4, mapping)
    for suffix, mapping in (("", "distributed"), ("_overlapped", "overlapped")):
        for count in (2, 3, 4, 5):
            name = f"synergy_fig11a_{count}devices{suffix}"
            add(name, "Sec. 7.3.1, Fig. 11 (a)", ["fig11a"], FIG_11A, [SMALL] * count, mapping)
        for count in range(1, 7):
            name = f"synergy_fig11b_{count}pipelines{suffix}"
            add(name, "Sec. 7.3.1, Fig. 11 (b)", ["fig11b"], FIG_11B[:count], [SMALL] * 4, mapping)
    add("synergy_fig12_4x78000", "Sec. 7.3.2, Fig. 12", ["fig12"], FIG_12, [SMALL] * 4, "distributed")
    mixed = [SMALL] * 3 + [LARGE]
    add("synergy_fig12_3x78000_1x78002", "Sec. 7.3.2, Fig. 12", ["fig12"], FIG_12, mixed, "distributed")
    for mapping in ("distributed", "any"):
        add(f"synergy_fig6_{mapping}", "Sec. 5.2, Fig. 6", ["fig6"], FIG_6, [SMALL] * 2, mapping)
    return found


def main() -> None:
    write_files(FOLDER, files())


if __name__ == "__main__":
    main()
