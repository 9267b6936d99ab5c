"""PostTrainingQuantization: a saved model becomes a quantized one, with the ranges that sample batches show."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .... import io
from ....errors import InvalidValue, require
from ....executor import global_scope, scope_guard
from ....framework import Program
from ....framework.dtype import VarType
from ....framework.ir_graph import IrGraph
from ....io import DataLoader
from . import rewriting
from .activations import AddQuantDequantPass
from .freeze import QuantizationFreezePass
from .samples import Ranges, cache_folder
from .tables import LEVELS, WITH_OUT_SCALE, WITH_WEIGHT, WITHOUT_WEIGHT, arguments_of
from .transform import QuantizationTransformPass

__all__ = ["PostTrainingQuantization"]

_NAME = "PostTrainingQuantization"
_ALGOS = ("KL", "abs_max", "min_max")


class PostTrainingQuantization:
    """Quantizes a saved model without training.

    The model runs on sample batches. The range of each activation gives its scale: with ``"abs_max"`` max |x|, with
    ``"KL"`` the threshold that changes the distribution of the values the least. Weights become levels by max |w|. With
    ``"min_max"`` the program stays in float, and its operators get the ranges as attributes.

    Args:
        executor (Executor): runs the model.
        scope (Scope, optional): scope into which the model is loaded. Default: the global scope.
        model_dir (str): folder of the model.
        model_filename (str, optional): name of the program file. Default ``__model__``.
        params_filename (str, optional): name of the one file of all parameters. Default: a file for each.
        batch_generator (callable, optional): returns an iterator over batches, each a list of arrays in the order of
            the feeds.
        sample_generator (callable, optional): returns an iterator over samples, each a list of arrays. One of both
            generators must be given.
        batch_size (int): samples in a batch of ``sample_generator``. Default 10.
        batch_nums (int, optional): number of batches. Default: all.
        algo (str): ``"KL"``, ``"abs_max"`` or ``"min_max"``. Default ``"KL"``.
        quantizable_op_type (list of str): types of operators. Default ``conv2d``, ``depthwise_conv2d``, ``mul``.
        is_full_quantize (bool): all types that the passes support. Default False.
        activation_bits (int): bits of an activation, from 2 to 16. Default 8.
        weight_bits (int): bits of a weight, from 2 to 16. Default 8.
        activation_quantize_type (str): ``"range_abs_max"``, ``"moving_average_abs_max"`` or ``"abs_max"``: the operator
            that computes levels of activations. Default ``"range_abs_max"``.
        weight_quantize_type (str): ``"channel_wise_abs_max"`` or ``"abs_max"``. Default ``"channel_wise_abs_max"``.
        is_use_cache_file (bool): keeps the values for ``"KL"`` in files of ``cache_dir``. Default False.
        cache_dir (str): folder of these files, which are removed at the end. Default ``"./temp_post_training"``.

    Raises:
        AssertionError: an argument is missing or not supported.

    Examples:
        >>> import numpy, tempfile
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import PostTrainingQuantization
        >>> exe, folder = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 2)
        ...     none = exe.run(fluid.default_startup_program())
        ...     names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        >>> post = PostTrainingQuantization(exe, fluid.Scope(), folder, algo="abs_max", batch_generator=lambda: iter(
        ...     [[numpy.ones([3, 4], "float32")]]))
        >>> [op.type for op in post.quantize().global_block().ops][1:4]
        ['fake_quantize_range_abs_max', 'mul', 'fake_dequantize_max_abs']
        >>> post.save_quantized_model(tempfile.mkdtemp())
    """

    def __init__(self, executor: Any = None, scope: Any = None, model_dir: str | None = None,
                 model_filename: str | None = None, params_filename: str | None = None,
                 batch_generator: Callable[[], Any] | None = None, sample_generator: Callable[[], Any] | None = None,
                 batch_size: int = 10, batch_nums: int | None = None, algo: str = "KL",
                 quantizable_op_type: Sequence[str] = ("conv2d", "depthwise_conv2d", "mul"),
                 is_full_quantize: bool = False, activation_bits: int = 8, weight_bits: int = 8,
                 activation_quantize_type: str = "range_abs_max",
                 weight_quantize_type: str = "channel_wise_abs_max", is_use_cache_file: bool = False,
                 cache_dir: str = "./temp_post_training") -> None:
        rewriting.check_given(executor, "executor", _NAME)
        rewriting.check_given(model_dir, "model_dir", _NAME)
        require((batch_generator is None) != (sample_generator is None),
                "%s: one of batch_generator and sample_generator must be given" % _NAME)
        require(algo in _ALGOS, "%s: algo must be one of %s, got %r" % (_NAME, ", ".join(_ALGOS), algo))
        for name, kind, known in (
                ("activation_quantize_type", activation_quantize_type, sorted(set(LEVELS) - {"channel_wise_abs_max"})),
                ("weight_quantize_type", weight_quantize_type, ("abs_max", "channel_wise_abs_max"))):
            require(kind in known, "%s: %s must be one of %s, got %r" % (_NAME, name, ", ".join(known), kind))
        rewriting.check_types(quantizable_op_type, (*WITH_WEIGHT, *WITHOUT_WEIGHT), _NAME)
        rewriting.check_bits(activation_bits, "activation_bits", _NAME)
        rewriting.check_bits(weight_bits, "weight_bits", _NAME)
        self._executor, self._scope = executor, global_scope() if scope is None else scope
        self._files = (model_dir, model_filename, params_filename)
        self._generators = (batch_generator, sample_generator)
        self._batch_size, self._batch_nums = batch_size, batch_nums
        self._algo, self._bits = algo, (activation_bits, weight_bits)
        self._types = (*WITH_WEIGHT, *WITHOUT_WEIGHT) if is_full_quantize else tuple(quantizable_op_type)
        self._kinds = (activation_quantize_type, weight_quantize_type)
        self._cache = (is_use_cache_file, cache_dir)
        self._program: Any = None

    # ---- the steps

    def quantize(self) -> Program:
        """Loads the model, runs the sample batches and quantizes the model.

        Returns:
            Program: the quantized program, whose parameters are in the scope.

        Raises:
            ValueError: the generators give no batch.
            EnforceNotMet: the model cannot be loaded or run.
        """
        folder, program_file, parameter_file = self._files
        with scope_guard(self._scope), cache_folder(*self._cache) as cache:
            self._program, self._feeds, self._fetches = io.load_inference_model(
                folder, self._executor, program_file, parameter_file)
            self._kept = {var.name for var in self._program.list_vars() if var.persistable}
            ranges = self._measured(cache)
            if self._algo == "min_max":
                self._note_ranges(ranges)
            else:
                scales = {name: ranges.threshold(name) for name in ranges.names()}
                self._rewrite(scales)
                self._note_results(scales)
        return self._program

    def save_quantized_model(self, save_model_path: str, model_filename: str | None = None,
                             params_filename: str | None = None) -> None:
        """Saves the quantized model for inference.

        Args:
            save_model_path (str): folder, which is created if it does not exist.
            model_filename (str, optional): name of the program file. Default ``__model__``.
            params_filename (str, optional): name of one file of all parameters. Default: a file for each.

        Raises:
            AssertionError: ``quantize`` has not been called.
        """
        require(self._program is not None, "%s.save_quantized_model: call quantize first" % _NAME)
        with scope_guard(self._scope):
            io.save_inference_model(save_model_path, list(self._feeds), self._fetches, self._executor, self._program,
                                    model_filename, params_filename)

    # ---- ranges

    def _targets(self) -> list[str]:
        """Names of the float variables whose ranges are needed."""
        names: dict[str, None] = {}
        for op in self._program.global_block().ops:
            if op.type in self._types:
                names.update(dict.fromkeys(arguments_of(op.desc, 0)))
            if op.type in WITH_OUT_SCALE:
                names.update(dict.fromkeys(arguments_of(op.desc, 1)))
        block = self._program.global_block()
        return [name for name in names if name not in self._kept
                and block.var(name).dtype in (VarType.FP32, VarType.FP64)]

    def _measured(self, cache: str | None) -> Ranges:
        block, targets = self._program.global_block(), self._targets()
        loader = DataLoader.from_generator([block.var(name) for name in self._feeds], capacity=3 * self._batch_size,
                                           iterable=True)
        batches, samples = self._generators
        if batches is not None:
            loader.set_batch_generator(batches, self._executor.place)
        elif samples is not None:
            loader.set_sample_generator(samples, self._batch_size, drop_last=True, places=self._executor.place)
        ranges, count = Ranges(self._algo, cache), 0
        for feed in loader():
            if count == self._batch_nums:
                break
            for name, tensor in zip(targets, self._executor.run(self._program, feed, targets, return_numpy=False)):
                ranges.add(name, numpy.array(tensor))
            count += 1
        if not count:
            raise InvalidValue("%s: the generator must give at least one batch of %d samples, got none"
                               % (_NAME, self._batch_size))
        return ranges

    # ---- programs

    def _rewrite(self, scales: dict[str, float]) -> None:
        from .... import core
        place, scope = self._executor.place, self._scope
        graph = IrGraph(core.Graph(self._program.desc), for_test=True)
        with_weight = [kind for kind in self._types if kind in WITH_WEIGHT]
        QuantizationTransformPass(
            scope, place, self._bits[1], self._bits[0], *self._kinds, quantizable_op_type=with_weight).apply(graph)
        AddQuantDequantPass(scope, place, quant_bits=self._bits[0], quantizable_op_type=[
            kind for kind in self._types if kind not in WITH_WEIGHT]).apply(graph)
        for name, scale in scales.items():
            for suffix in (".scale", ".quant_dequant.scale"):
                dtype = str(self._program.global_block().var(name).dtype).rpartition(".")[2]
                rewriting.put(scope, name + suffix,
                              numpy.array([scale], "float64" if dtype == "FP64" else "float32"), place)
        QuantizationFreezePass(scope, place, self._bits[1], self._bits[0], self._kinds[1]).apply(graph)
        self._program = graph.to_program()
        block = self._program.global_block()
        self._fetches = [block.vars.get(var.name + ".dequantized") or block.var(var.name) for var in self._fetches]

    def _marked(self) -> list[Any]:
        """The operators of the program that are quantized, now with the name of the algorithm."""
        found = []
        for op in self._program.global_block().ops:
            by_type = op.type in self._types and (self._algo == "min_max" or op.type not in WITH_WEIGHT)
            if by_type or op.has_attr("quantization_type"):
                op._set_attr("quantization_type", "post_" + self._algo.lower())
                found.append(op)
        return found

    def _note_results(self, scales: dict[str, float]) -> None:
        """Stores the scale of each result as an attribute."""
        self._marked()
        for op in self._program.global_block().ops:
            for name in arguments_of(op.desc, 1):
                if op.type in WITH_OUT_SCALE and name in scales:
                    op._set_attr("out_threshold", scales[name])

    def _note_ranges(self, ranges: Ranges) -> None:
        """Stores minima and maxima of inputs, weights and results as attributes."""
        for op in self._marked():
            for name in arguments_of(op.desc, 0):
                ends = self._weight_ends(name) if name in self._kept else ranges.ends(name)
                for suffix, value in zip((".min", ".max"), ends):
                    op._set_attr(name + suffix, value)
        for op in self._program.global_block().ops:
            for name in arguments_of(op.desc, 1):
                if op.type in WITH_OUT_SCALE and name in ranges.names():
                    for attribute, value in zip(("out_min", "out_max"), ranges.ends(name)):
                        op._set_attr(attribute, value)

    def _weight_ends(self, name: str) -> Any:
        array = rewriting.array_of(self._scope, name)
        if self._kinds[1] == "abs_max":
            return float(array.min()), float(array.max())
        rows = array.reshape(len(array), -1)
        return [float(v) for v in rows.min(axis=1)], [float(v) for v in rows.max(axis=1)]
