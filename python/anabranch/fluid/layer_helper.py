"""LayerHelper, which creates names, parameters, temporaries, biases and activations for layers."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .._near import near
from .._terminal import wrapped
from . import unique_name
from .described import Described
from .errors import InvalidType, InvalidValue, Violated
from .framework import Parameter, Variable, VarType, default_main_program, default_startup_program, dtype_is_floating
from .framework.operator import _schema
from .param_attr import ParamAttr, WeightNormParamAttr
from .weight_norm import create_weight_norm_parameter

if TYPE_CHECKING:
    from .framework import Program
    from .hints import Attr, DType, Shape
    from .initializer import Initializer

__all__ = ["LayerHelper"]

#: Operators that ``act`` of a layer can name: those of ``layers.ops`` and a few more. Shown in errors.
ACTIVATIONS = (
    "abs acos asin atan brelu ceil cos elu erf exp floor gelu hard_shrink hard_sigmoid hard_swish leaky_relu "
    "logsigmoid reciprocal relu relu6 round rsqrt selu sigmoid sin soft_relu softmax softplus softshrink softsign "
    "sqrt square stanh swish tanh tanh_shrink thresholded_relu").split()


class LayerHelper(Described):
    """Helper of a layer function, which creates it from the arguments of the layer.

    Args:
        layer_type (str): type of the layer, and prefix of its generated name.
        **kwargs: the layer's arguments (``input``, ``param_attr``, ``bias_attr``, ``act``, ``name`` ...).

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.layer_helper import LayerHelper
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        ...     helper = LayerHelper("fc")
        ...     out = helper.create_variable_for_type_inference("float32")
        >>> helper.name, out.name
        ('fc_0', 'fc_0.tmp_0')
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self._layer_type = layer_type
        name = kwargs.get("name")
        if name is None:
            kwargs["name"] = unique_name.generate(layer_type)
        elif not isinstance(name, str):
            raise InvalidType("%s: name must be str or None, got %s" % (layer_type, type(name).__name__))
        self.kwargs = kwargs

    @property
    def layer_type(self) -> str:
        """str: the layer's type."""
        return self._layer_type

    @property
    def name(self) -> str:
        """str: the layer's name."""
        return self.kwargs["name"]

    @property
    def main_program(self) -> Program:
        """Program: the default main program."""
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        """Program: the default startup program."""
        return default_startup_program()

    @property
    def _block(self):
        return self.main_program.current_block()

    def append_op(self, *args: Any, **kwargs: Any) -> Any:
        """Appends an op to the current block. The arguments are those of ``Block.append_op``."""
        return self._block.append_op(*args, **kwargs)

    # ---- arguments of the layer

    def to_variable(self, value: Any, name: str | None = None) -> Any:
        """Returns ``value`` as a Variable of the current block. ``value`` may be a name; the argument ``name`` is
        ignored."""
        return value if isinstance(value, Variable) else self._block._var_recursive(value)

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """list of Variable: the layer's argument of this name."""
        inputs = self.kwargs.get(input_param_name, [])
        if isinstance(inputs, (list, tuple)):
            return [self.to_variable(x) for x in inputs]
        return [self.to_variable(inputs)]

    def input(self, input_param_name: str = "input") -> Variable:
        """Variable: the layer's only argument of this name.

        Raises:
            ValueError: there are several Variables.
        """
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise InvalidValue("%s must have one input %r, got %d" % (self.layer_type, input_param_name, len(inputs)))
        return inputs[0]

    @property
    def param_attr(self) -> Any:
        """ParamAttr, list of it, or False."""
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """ParamAttr, list of it, or False."""
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length: Any) -> list[ParamAttr]:
        """list of ParamAttr: one for each of ``length`` inputs.

        Raises:
            ValueError: the number of attributes is not ``length``.
        """
        attrs = self.param_attr
        if not isinstance(attrs, list):
            attrs = [attrs]
        if len(attrs) == 1 and length != 1:
            attrs = [attrs[0]] + [copy.copy(attrs[0]) for _ in range(length - 1)]
        if len(attrs) != length:
            raise InvalidValue("%s: param_attr must have %d elements, one per input, got %d"
                               % (self.layer_type, length, len(attrs)))
        return attrs

    def iter_inputs_and_params(self, input_param_name: str = "input") -> Any:
        """Iterator over (input Variable, its ParamAttr)."""
        inputs = self.multiple_input(input_param_name)
        return zip(inputs, self.multiple_param_attr(len(inputs)))

    def input_dtype(self, input_param_name: str = "input") -> Any:
        """VarType: the common dtype of all inputs.

        Raises:
            ValueError: the dtypes differ.
        """
        dtype = None
        for x in self.multiple_input(input_param_name):
            if dtype is not None and x.dtype != dtype:
                raise InvalidValue("%s: the inputs must have the same dtype, got %s and %s"
                                   % (self.layer_type, dtype, x.dtype))
            dtype = x.dtype
        return dtype

    def is_instance(self, param_name: Any, cls: Any) -> None:
        """Raises TypeError unless the layer's argument is a ``cls``."""
        if not isinstance(self.kwargs.get(param_name), cls):
            raise InvalidType("%s: %s must be a %s, got %s" % (self.layer_type, param_name, cls.__name__,
                                                          type(self.kwargs.get(param_name)).__name__))

    # ---- variables

    def create_parameter(self, attr: Attr, shape: Shape, dtype: DType = None, is_bias: bool = False,
                         default_initializer: Initializer | None = None, stop_gradient: bool = False,
                         type: VarType = VarType.LOD_TENSOR) -> Any:
        """Creates a parameter in the main program and its initialization in the startup program.

        Args:
            attr (ParamAttr|False): attributes, as returned by ``param_attr``. False: no parameter.
            shape (list): extents.
            dtype (str|VarType): element type.
            is_bias (bool): True: the name ends in ``.b``, and the initial value is zero by default. False (default):
                the name ends in ``.w``, and Xavier is the default initializer.
            default_initializer (Initializer, optional): used when ``attr`` has none.
            stop_gradient (bool): the parameter has no gradient. Default False.
            type (VarType): type of the variable. Default LOD_TENSOR.

        Returns:
            Parameter: the parameter, or None if ``attr`` is False.
        """
        attr = copy.copy(ParamAttr._to_attr(attr))
        if not attr:
            return None
        if not isinstance(attr, ParamAttr):
            raise Violated("%s: the attribute must be one ParamAttr, got %r" % (self.layer_type, attr))
        suffix = "b" if is_bias else "w"
        if attr.name is None:
            attr.name = unique_name.generate("%s.%s" % (self.name, suffix))
        if default_initializer is not None:
            attr._set_default_initializer(default_initializer)
        elif is_bias:
            attr._set_default_bias_initializer()
        else:
            if isinstance(dtype, (str, int)) and not dtype_is_floating(dtype) and attr.initializer is None:
                raise InvalidType("parameter %s of dtype %s must have an initializer: the default one draws floats"
                                  % (attr.name, dtype))
            attr._set_default_param_initializer()
        if isinstance(attr, WeightNormParamAttr):
            return self._create_weight_normalize(attr, shape, dtype)
        self.startup_program.global_block().create_parameter(
            dtype=dtype, shape=shape, type=type, **attr._to_kwargs(with_initializer=True))
        parameter = self.main_program.global_block().create_parameter(
            dtype=dtype, shape=shape, type=type, **attr._to_kwargs())
        parameter.stop_gradient = stop_gradient
        return parameter

    def _create_weight_normalize(self, attr, shape, dtype):
        """The Variable w = g v / ||v|| of a WeightNormParamAttr with a name and an initializer."""
        return create_weight_norm_parameter(self, attr, shape, dtype)

    def get_parameter(self, name: str) -> Parameter:
        """Parameter: the parameter with this name.

        Raises:
            ValueError: there is no such variable, or it is not a parameter.
        """
        param = self.main_program.global_block().var(name)
        if not isinstance(param, Parameter):
            raise InvalidValue("variable %s must be a parameter" % name)
        return param

    def create_variable_for_type_inference(self, dtype: DType, stop_gradient: Any = False) -> Variable:
        """Variable: a temporary of the layer, named ``<layer>.tmp_<N>``; the op that writes it infers its shape."""
        return self._block.create_var(name=unique_name.generate_with_ignorable_key(self.name + ".tmp"), dtype=dtype,
                                      persistable=False, stop_gradient=stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, **kwargs: Any) -> Variable:
        """Variable: a new variable of the current block. The arguments are those of ``Block.create_var``."""
        return self._block.create_var(*args, **kwargs)

    def create_global_variable(self, persistable: Any = False, *args: Any, **kwargs: Any) -> Variable:
        """Variable: a new variable of the global block. Without ``name``, it is called ``_generated_var`` and a number,
        as in Fluid 1.8.5, so files of persistable variables agree."""
        return self.main_program.global_block().create_var(*args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """(Variable, bool): the global variable with this name, and whether this call created it."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(*args, name=name, **kwargs), True

    def set_variable_initializer(self, var: Any, initializer: Any) -> Any:
        """Appends the initialization of a variable of the main program to the startup program."""
        return self.startup_program.global_block().create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape, persistable=True, initializer=initializer)

    # ---- bias and activation

    def append_bias_op(self, input_var: Any, dim_start: Any = 1, dim_end: Any = None) -> Any:
        """Adds a bias over the axes [dim_start, dim_end). Returns ``input_var`` itself if ``bias_attr`` is False."""
        attr = self.bias_attr
        if not attr:
            return input_var
        shape = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(attr=attr, shape=shape, dtype=input_var.dtype, is_bias=True)
        out = self.create_variable_for_type_inference(dtype=input_var.dtype)
        self.append_op(type="elementwise_add", inputs={"X": [input_var], "Y": [bias]}, outputs={"Out": [out]},
                       attrs={"axis": dim_start})
        return out

    def append_activation(self, input_var: Any) -> Any:
        """Applies the layer's ``act`` to ``input_var``. Returns ``input_var`` itself if there is none.

        Raises:
            TypeError: ``act`` is neither a str nor a dict.
            ValueError: the activation is unknown.
        """
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        if isinstance(act, str):
            act = {"type": act}
        if not isinstance(act, dict) or "type" not in act:
            raise InvalidType("%s: act must be the name of an activation, got %r" % (self.layer_type, act))
        attrs = {k: v for k, v in act.items() if k != "type"}
        for flag in ("use_cudnn", "use_mkldnn"):
            if self.kwargs.get(flag):
                attrs[flag] = self.kwargs[flag]
        if _schema(act["type"]) is None:
            raise InvalidValue(_no_activation(self.layer_type, act["type"]))
        out = self.create_variable_for_type_inference(dtype=input_var.dtype)
        self.append_op(type=act["type"], inputs={"X": [input_var]}, outputs={"Out": [out]}, attrs=attrs)
        return out


def _no_activation(layer: str, name: Any) -> str:
    return "%s: act must be the name of an activation, got %r%s\n%s" % (
        layer, name, near(name, ACTIVATIONS), wrapped("  activations: " + ", ".join(ACTIVATIONS)))
