"""The library: parse, chunk, embed, extract, link; write and read the stores. No Kafka, no HTTP, no environment."""

import os

# ONNX Runtime, which several packages here import, sends telemetry unless this is set before it is imported
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
