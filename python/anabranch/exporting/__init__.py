"""Saved models for other engines: ``anabranch export``. Needs the extra ``anabranch[onnx]``."""
