"""Foreign files to instances: model files, profiler output, and the profile formats of published planners.

A reader turns one format into a :class:`~mapgap.importing.graph.LayerGraph`; :mod:`mapgap.importing.assemble` puts
graph, profiles and cluster together, and the library of a problem makes an instance of the result. The room knows no
problem, and problems know no format.

This is the contents page: a format is declared by reference, and its module is imported when a file looks like it. The
order matters only where a file might look like several; the first one that takes it reads it.
"""

from mapgap.importing.formats import Format

_HERE = "mapgap.importing.formats"

FORMATS = [
    Format("layer_graph", "mapgap's own layer graph (mapgap profile)", f"{_HERE}.layer_graph"),
    Format("pipedream", "PipeDream graph.txt", f"{_HERE}.pipedream"),
    Format("dnn_partitioning", "dnn-partitioning JSON", f"{_HERE}.dnn_partitioning"),
    Format("pipeedge", "PipeEdge models.yml, device_types.yml, devices.yml", f"{_HERE}.pipeedge"),
    Format("galvatron", "Galvatron computation and p2p profiles", f"{_HERE}.galvatron"),
    Format("nnscaler", "nnScaler operator profiles", f"{_HERE}.nnscaler"),
    Format("hugging_face", "Hugging Face config.json of a language model", f"{_HERE}.hugging_face"),
    Format("ort_profile", "ONNX Runtime profile", f"{_HERE}.ort_profile"),
    Format("tensorrt", "TensorRT --exportProfile and --exportLayerInfo", f"{_HERE}.tensorrt"),
    Format("onnx", "ONNX model", f"{_HERE}.onnx_model", extra="onnx", suffix=".onnx"),
]
"""Every format. Each module has ``looks_like(source)`` and ``read(sources, settings)``."""

__all__ = ["FORMATS", "Format"]
