"""A saved model as the server sees it: its inputs and outputs, and whether requests can be combined."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..predictor import Predictor
from .tensors import Form


class Model:
    """The model of a folder.

    Args:
        folder (str): folder of ``fluid.io.save_inference_model``.
        options: arguments of :class:`anabranch.Predictor`.
    """

    def __init__(self, folder: str, **options: Any) -> None:
        self.predictor = Predictor(folder, **options)
        block = self.predictor.program.global_block()
        self.inputs = [Form(block.var(name)) for name in self.predictor.input_names]
        self.outputs = [Form(block.var(name)) for name in self.predictor.output_names]
        self.why_alone = self._why_alone()

    def described(self) -> dict[str, Any]:
        """dict: descriptions of the inputs and outputs."""
        return {"inputs": [form.described() for form in self.inputs],
                "outputs": [form.described() for form in self.outputs],
                "batching": "off: %s" % self.why_alone if self.why_alone else "on"}

    def _why_alone(self):
        """Why requests are answered one at a time; empty when they can be joined."""
        for form in self.inputs + self.outputs:
            if form.lod_level:
                return "%s has sequences" % form.name
            if not form.shape or form.shape[0] != -1:
                return "the first axis of %s is not that of the batch: %s" % (form.name, form.shape)
        if not self.inputs:
            return "the model has no inputs"
        return self._rows_matter()

    def _rows_matter(self):
        """Tries whether each row of the answer follows from its row of the input alone."""
        rows = [[np.full([1] + [1 if n < 0 else n for n in form.shape[1:]], k).astype(form.dtype)
                 for form in self.inputs] for k in (0, 1)]
        try:
            alone = [self.predictor.run(values) for values in rows]
            joined = self.predictor.run([np.concatenate(values) for values in zip(*rows)])
        except Exception as e:
            return "a trial with two rows failed: %s" % e
        for form, *parts, whole in zip(self.outputs, *alone, joined):
            apart = np.concatenate(parts)
            if apart.shape != whole.shape or not np.allclose(apart, whole, rtol=1e-4, atol=1e-5, equal_nan=True):
                return "rows of %s depend on the other rows" % form.name
        return ""
