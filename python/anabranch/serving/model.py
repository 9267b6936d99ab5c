"""A saved model as the server sees it: its inputs and outputs, and whether requests can be combined."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..fluid.errors import InvalidValue
from ..following.canary import Rule
from ..predictor import Predictor
from . import tensors
from .tensors import Form


class Model:
    """The model of a folder.

    Args:
        folder (str): folder of ``fluid.io.save_inference_model``.
        follow (str, optional), poll_s (float): as for :class:`anabranch.Predictor`.
        warm_up (str, optional): file with the body of a request, on which each version is run before it is used.
        max_bytes (int): largest size of the values in this file.
        canary (Rule, optional): share of the requests that a new version answers before it answers all.
        share (str, optional): as for :class:`anabranch.Predictor`.
        options: other arguments of :class:`anabranch.Predictor`.
    """

    def __init__(self, folder: str, follow: str | None = None, poll_s: float = 0.1, warm_up: str | None = None,
                 max_bytes: int = 16 << 20, canary: Rule | None = None, share: str | None = None,
                 **options: Any) -> None:
        self.predictor = Predictor(folder, **options)
        block = self.predictor.program.global_block()
        self.inputs = [Form(block.var(name)) for name in self.predictor.input_names]
        self.outputs = [Form(block.var(name)) for name in self.predictor.output_names]
        if follow is not None:
            self.predictor._follow(follow, poll_s, None if warm_up is None else self._body_in(warm_up, max_bytes),
                                   canary, share)
        self.why_alone = self._why_alone()

    def _body_in(self, path, max_bytes):
        """The inputs in a file of a request."""
        body = _core.read_file(path)
        kind = tensors.NPZ if body.startswith(b"PK") else tensors.JSON
        try:
            return tensors.read(body, kind, self.inputs, max_bytes, self.rows)
        except ValueError as e:
            raise InvalidValue("%s: %s" % (path, e)) from None

    def rows(self, rows: Any) -> list[Any]:
        """The inputs that follow from raw rows; one thread at a time.

        Raises:
            LookupError: the model has no schema.
            ValueError: the reader would refuse a row.
        """
        return self.predictor._read_rows(rows)

    def described(self) -> dict[str, Any]:
        """dict: descriptions of the inputs and outputs."""
        columns = {} if self.predictor.schema is None else {"columns": self.predictor.schema.columns}
        classes = {} if self.predictor.classes is None else {"classes": self.predictor.classes}
        return {**columns, **classes, "inputs": [form.described() for form in self.inputs],
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
