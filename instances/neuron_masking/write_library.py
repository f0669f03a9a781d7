"""Writes the compact library files: ``python -m mapgap.instances.neuron_masking.write_library``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mapgap.instances.writing import compact_text, write_files

FOLDER = Path(__file__).parent / "library"
text = partial(compact_text, "neuron_masking")
NETWORKS = {"lenet": "lenet5", "alexnet_cifar": "alexnet_elfish", "vgg11": "vgg11_cifar", "vgg13": "vgg13_cifar"}
FIG1 = ("jetson_nano", "deeplens", "raspberry_pi")
ASSUMED = (
    "Assumed: layer sizes of the network file, O_T = 0 (Table 3 agrees with it), a floor of 10% of every layer, "
    "P_s = 80%, contributions U drawn log-normally (the paper prints none)."
)
STRAGGLER = (
    "ELFISH, Table 3, straggler {number}. Published: compute and memory of the device, m_b, N_b, V_mc, V_sm (Table 1). "
    "Derived: {cycle}. {assumed}"
)
DEVICE = (
    "ELFISH, Fig. 1: {device}. Published: b_T = 16 minutes, the Jetson Nano's cycle; m_b, N_b, V_mc, V_sm (Table 1). "
    "Derived: compute from the device's printed time for the whole model. {assumed}"
)
FLEET = (
    "ELFISH, {where}. Published: {published}. Derived: candidate cycle times between those of the fastest and of the "
    "slowest device for the whole model. {assumed}"
)
DIGITS = (
    "Training experiment of the study neuron_masking: {what}. Published: compute and memory of the stragglers "
    "(Table 3), m_b, N_b, V_mc, V_sm (Table 1). Derived: b_T is the capable device's time for the whole model. "
    "Assumed: the network, O_T = 0, a floor of 10%, P_s = 80%."
)


def straggler_files() -> dict[str, str]:
    """Table 3: four networks on four stragglers."""
    files = {}
    for title, network in NETWORKS.items():
        for number in (1, 2, 3, 4):
            name = f"elfish_{title}_straggler{number}"
            paper = title == "alexnet_cifar"
            cycle = "b_T = 16 minutes, printed in Fig. 1" if paper else "b_T, the time of the capable device (9 GMAC/s)"
            fields = {"network": network, "devices": f"[straggler{number}]"}
            fields |= {"cycle_min": "[16.0]"} if paper else {"reference": "capable"}
            source = STRAGGLER.format(number=number, cycle=cycle, assumed=ASSUMED)
            files[name] = text(name, source, ["elfish", title, f"straggler{number}"], fields)
    return files


def fleet_files() -> dict[str, str]:
    """Fig. 1's devices alone and together, and the two settings of Sec. 6.2 under a common cycle time."""
    files = {}
    for device in FIG1:
        name = f"elfish_alexnet_cifar_{device}"
        fields = {"network": "alexnet_elfish", "devices": f"[{device}]", "cycle_min": "[16.1]"}
        source = DEVICE.format(device=device, assumed=ASSUMED)
        files[name] = text(name, source, ["elfish", "alexnet_cifar", "fig1"], fields)
    stragglers = ("straggler1", "straggler2", "straggler3")
    fleets = {
        "fig1": (
            FIG1,
            "[16.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 81.0]",
            "Fig. 1: three devices",
            "cycle times of 16, 80 and 30 minutes",
        ),
        "setting1": (
            ("capable 1", "capable 2", *stragglers[:2]),
            "[14.0, 16.0, 18.0, 20.0, 22.0, 24.0]",
            "Sec. 6.2, setting 1",
            "two capable devices, stragglers 1 and 2",
        ),
        "setting2": (
            ("capable 1", "capable 2", "capable 3", *stragglers),
            "[14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0]",
            "Sec. 6.2, setting 2",
            "three capable devices, stragglers 1 to 3",
        ),
    }
    for title, (devices, cycles, where, published) in fleets.items():
        name = f"elfish_alexnet_cifar_{title}_fleet"
        fields = {"network": "alexnet_elfish", "devices": f"[{', '.join(devices)}]", "cycle_min": cycles}
        source = FLEET.format(where=where, published=published, assumed=ASSUMED)
        files[name] = text(name, source, ["elfish", "alexnet_cifar", "fleet"], {**fields, "objective": "rate"})
    return files


def digits_files() -> dict[str, str]:
    """The fleets that really train: four devices with one to four stragglers, and setting 2."""
    fleets = {
        f"{k}of4": [*(f"capable {i}" for i in range(1, 5 - k)), *(f"straggler{i}" for i in range(1, k + 1))]
        for k in (1, 2, 3, 4)
    }
    fleets["3of6"] = [*(f"capable {i}" for i in (1, 2, 3)), *(f"straggler{i}" for i in (1, 2, 3))]
    files = {}
    for title, devices in fleets.items():
        name = f"elfish_digits_{title}"
        fields = {"network": "digits_cnn", "devices": f"[{', '.join(devices)}]", "reference": "capable"}
        fields |= {"objective": "contribution"}
        what = f"{title.replace('of', ' stragglers of ')} devices"
        files[name] = text(name, DIGITS.format(what=what), ["elfish", "digits", "training"], fields)
    return files


def main() -> None:
    write_files(FOLDER, {**straggler_files(), **fleet_files(), **digits_files()})


if __name__ == "__main__":
    main()
