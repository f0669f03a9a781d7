"""Plans on the clock: a process per board over plain sockets, emulated or with ONNX Runtime, and what it measured."""
