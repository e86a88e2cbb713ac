"""Texts to vectors: the encoders, and the files of their models."""

import os

# ONNX Runtime sends telemetry unless this is set before it is imported
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
