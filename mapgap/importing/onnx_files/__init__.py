"""What the reader of ONNX models and ``mapgap profile`` share: nodes, dimensions, products, runs, times."""
