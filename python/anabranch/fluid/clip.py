"""Gradient clipping by value, by the norm of each gradient, or by the norm of all gradients."""
from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _on_demand
from . import arguments, framework, layers
from .described import Described
from .errors import InvalidType, InvalidValue, Violated
from .framework.dtype import VarType
from .layers import check
from .user_warnings import advise, warn

if TYPE_CHECKING:
    from .framework import Parameter, Program

__all__ = [
    "set_gradient_clip", "ErrorClipByValue", "GradientClipByValue", "GradientClipByNorm", "GradientClipByGlobalNorm",
]


class BaseErrorClipAttr(Described):
    """Base class of the values of ``Variable.error_clip``."""

    def _append_clip_op(self, block, grad_name):
        raise NotImplementedError


class ErrorClipByValue(BaseErrorClipAttr):
    """Clips the gradient of an intermediate Variable to [min, max] in the backward pass.

    Args:
        max (float): upper bound.
        min (float, optional): lower bound. Default: -max.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> h = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 2)
        >>> h._set_error_clip(fluid.clip.ErrorClipByValue(max=0.5))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))
        >>> "clip" in [op.type for op in fluid.default_main_program().global_block().ops]
        True
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max, self.min = _bounds("ErrorClipByValue", max, min, positive=False)

    def __str__(self) -> str:
        return "ByValue, min=%f, max=%f" % (self.min, self.max)

    def _append_clip_op(self, block, grad_name):
        block.append_op(type="clip", inputs={"X": grad_name}, outputs={"Out": grad_name},
                        attrs={"min": self.min, "max": self.max})


def error_clip_callback(block: Any, context: Any) -> None:
    """Callback of ``append_backward``: clips the gradients of Variables that have an ``error_clip``."""
    for name in block._last_op().output_arg_names:
        if name not in context or "@RENAME@" in name:  # a part of a sum: the sum is clipped
            continue
        variable = block._find_var_recursive(context[name])
        clip = getattr(variable, "error_clip", None)
        if clip is None:
            continue
        if not isinstance(clip, BaseErrorClipAttr):
            raise InvalidType("Variable.error_clip of %s must be an ErrorClipByValue, got %s"
                              % (variable.name, type(clip).__name__))
        clip._append_clip_op(block, name)


def _bounds(name, max, min, positive=True):
    if min is None:
        if positive and not max > 0.0:
            raise Violated("%s: max must be positive when min is not given, got %s" % (name, max))
        min = -max
    max, min = float(max), float(min)
    if min > max:
        advise("%s: min is %g, above max, which is %g: all gradients become max" % (name, min, max))
    return max, min


def _norm(name, value):
    if not float(value) > 0:
        advise("%s: clip_norm is %g, so that nothing is learned: pass a norm above 0, such as 1.0" % (name, value))
    return float(value)


class GradientClipBase(Described):
    """Base class of the gradient clips.

    Args:
        need_clip (callable, optional): parameter -> bool; selects the gradients to clip. Default: all.
    """

    def __init__(self, need_clip: Callable[..., Any] | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise InvalidType("%s: need_clip must be a function from a parameter to a bool, got %s"
                              % (type(self).__name__, type(need_clip).__name__))
        self._need_clip_func = need_clip

    def __str__(self) -> str:
        raise NotImplementedError

    def __call__(self, params_grads: Sequence[Any]) -> list[Any]:
        """Appends the clip of all gradients.

        Args:
            params_grads (list): (parameter, gradient) pairs; a gradient may be None.

        Returns:
            list: pairs of parameter and clipped gradient.
        """
        with framework.name_scope("gradient_clip"):
            clipped = self._static_clip(params_grads)
        _correct_role_vars(params_grads, clipped)
        return clipped

    # Subclasses of programs override the methods below, too.

    def _static_clip(self, params_grads):
        """Returns pairs of parameter and clipped gradient."""
        result = []
        for param, grad in params_grads:
            if grad is not None and self._takes(param):
                with param.block.program._optimized_guard([param, grad]):
                    grad = self._clip_one(grad)
            result.append((param, grad))
        return result

    def _takes(self, param):
        return self._need_clip_func is None or self._need_clip_func(param)

    # ---- clips attached to parameters by set_gradient_clip, which is deprecated

    def _process_context(self, context, param, grad):
        """Called for every parameter before the first gradient is clipped. ``context`` is a dict that the clips of all
        parameters share."""

    def _create_operators(self, param, grad):
        """Returns the parameter and its clipped gradient."""
        return param, self._clip_one(grad)

    def _clip_one(self, grad):
        raise NotImplementedError("%s must override _static_clip, and _create_operators for set_gradient_clip"
                                  % type(self).__name__)


class GradientClipByValue(GradientClipBase):
    """Clips every element of the gradients to [min, max].

    Args:
        max (float): upper bound.
        min (float, optional): lower bound. Default: -max, which requires a positive ``max``.
        need_clip (callable, optional): parameter -> bool; selects the gradients to clip. Default: all.

    Raises:
        AssertionError: ``min`` is not given and ``max`` is not positive.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> sgd = fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByValue(1.0, -0.5))
        >>> len(sgd.minimize(loss)[1])
        2
    """

    def __init__(self, max: float, min: float | None = None, need_clip: Callable[..., Any] | None = None) -> None:
        super().__init__(need_clip)
        self.max, self.min = _bounds("GradientClipByValue", max, min)

    def __str__(self) -> str:
        return "Gradient Clip By Value, min = %f, max=%f" % (self.min, self.max)

    def _clip_one(self, grad):
        return layers.clip(x=grad, min=self.min, max=self.max)


class GradientClipByNorm(GradientClipBase):
    """Scales down each gradient with an L2 norm above ``clip_norm``, so that the norm becomes ``clip_norm``.

    Args:
        clip_norm (float): maximum norm.
        need_clip (callable, optional): parameter -> bool; selects the gradients to clip. Default: all.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> sgd = fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByNorm(1.0))
        >>> len(sgd.minimize(loss)[1])
        2
    """

    def __init__(self, clip_norm: float, need_clip: Callable[..., Any] | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = _norm("GradientClipByNorm", clip_norm)

    def __str__(self) -> str:
        return "Gradient Clip By Norm, clip_norm=%f" % self.clip_norm

    def _clip_one(self, grad):
        return layers.clip_by_norm(x=grad, max_norm=self.clip_norm)


class GradientClipByGlobalNorm(GradientClipBase):
    """Scales all gradients by the same factor, clip_norm / max(clip_norm, square root of the sum of all squares).

    Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, ICML 2013.

    Args:
        clip_norm (float): maximum norm of all gradients together.
        group_name (str): with ``set_gradient_clip``, the norm is taken over each group. Default 'default_group'.
        need_clip (callable, optional): parameter -> bool; selects the gradients to clip. Default: all.

    Raises:
        ValueError: two clips of a group, set by ``set_gradient_clip``, differ in ``clip_norm``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> sgd = fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))
        >>> len(sgd.minimize(loss)[1])
        2
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group",
                 need_clip: Callable[..., Any] | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = _norm("GradientClipByGlobalNorm", clip_norm)
        self.group_name = group_name

    def __str__(self) -> str:
        return "Gradient Clip By GlobalNorm, global_norm=%f" % self.clip_norm

    def _static_clip(self, params_grads):
        chosen = [(p, g) for p, g in params_grads if g is not None and self._takes(p)]
        if not chosen:
            return list(params_grads)
        squares = []
        for param, grad in chosen:
            with param.block.program._optimized_guard([param, grad]):
                squares.append(_sum_of_squares(grad))
        last_param, last_grad = [(p, g) for p, g in params_grads if g is not None][-1]
        with last_param.block.program._optimized_guard([last_param, last_grad]):
            norm = layers.sqrt(x=layers.sums(squares))
            limit = layers.fill_constant(shape=[1], dtype=norm.dtype, value=self.clip_norm)
            factor = layers.elementwise_div(x=limit, y=layers.elementwise_max(x=limit, y=norm))
        result = []
        for param, grad in params_grads:
            if grad is not None and self._takes(param):
                with param.block.program._optimized_guard([param, grad]):
                    grad = layers.elementwise_mul(x=grad, y=factor)
            result.append((param, grad))
        return result

    def _process_context(self, context, param, grad):
        if self.group_name not in context:
            limit = layers.fill_constant(shape=[1], dtype="float32", value=self.clip_norm)
            context[self.group_name] = {"squares": [], "clip_norm": self.clip_norm, "limit": limit}
        self.context, group = context, context[self.group_name]
        if group["clip_norm"] != self.clip_norm:
            raise InvalidValue("GradientClipByGlobalNorm: group %r has clip_norm %s and %s; one group has one norm"
                               % (self.group_name, group["clip_norm"], self.clip_norm))
        group["squares"].append(_sum_of_squares(grad))

    def _create_operators(self, param, grad):
        group = self.context[self.group_name]
        if "factor" not in group:
            limit, norm = group["limit"], layers.sqrt(x=layers.sums(input=group["squares"]))
            group["factor"] = layers.elementwise_div(x=limit, y=layers.elementwise_max(x=limit, y=norm))
        return param, layers.elementwise_mul(x=grad, y=group["factor"])


ClipByValue, ClipByNorm, ClipByGlobalNorm = GradientClipByValue, GradientClipByNorm, GradientClipByGlobalNorm


def _sum_of_squares(grad):
    if grad.type == VarType.SELECTED_ROWS:
        grad = layers.get_tensor_from_selected_rows(layers.merge_selected_rows(grad))
    return layers.reduce_sum(layers.square(grad))


def set_gradient_clip(clip: GradientClipBase, param_list: Sequence[Parameter | str] | None = None,
                      program: Program | None = None) -> None:
    """Attaches a clip to parameters. This is the older way: the ``grad_clip`` of an optimizer overrides it.

    Call it after the forward network is built and before ``minimize``.

    Args:
        clip (GradientClipBase): the clip, without ``need_clip``.
        param_list (list of Parameter or str, optional): parameters to clip. Default: all.
        program (Program, optional): program of the parameters. Default: the default main program.

    Raises:
        TypeError: ``clip`` is not a gradient clip, or an entry of ``param_list`` is neither a Parameter nor a str.

    Examples:
        >>> import anabranch.fluid as fluid, warnings
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0))
        >>> len(fluid.optimizer.SGD(0.1).minimize(loss)[1])
        2
    """
    warn("set_gradient_clip is deprecated: pass grad_clip to the optimizer")
    if not isinstance(clip, GradientClipBase):
        raise InvalidType("set_gradient_clip: clip must be a GradientClipByValue, ByNorm or ByGlobalNorm, got %s"
                          % type(clip).__name__)
    program = framework.default_main_program() if program is None else program
    if any(op.type in _UPDATES for block in program.blocks for op in block.ops):
        warn("set_gradient_clip after minimize has no effect")
    block = program.global_block()
    params = block.all_parameters() if param_list is None else param_list
    for param in params:
        if not isinstance(param, (str, framework.Parameter)):
            raise InvalidType("set_gradient_clip: param_list must hold Parameters or names, got %s"
                              % type(param).__name__)
    for param in params:
        target = block.var(param) if isinstance(param, str) else param
        target.gradient_clip_attr = copy.deepcopy(clip)


#: Types of ops that update a parameter.
_UPDATES = frozenset([
    "sgd", "momentum", "adam", "adagrad", "adamax", "adadelta", "decayed_adagrad", "rmsprop", "ftrl", "lamb",
    "lars_momentum", "dpsgd",
])


def append_gradient_clip_ops(param_grads: Any) -> Any:
    """Appends the clips that :func:`set_gradient_clip` has attached. Gradients without a clip do not change."""
    attached = list(_attached(param_grads))
    if check.exact_fluid() and len(attached) < sum(grad is not None for _, grad in param_grads):
        return param_grads  # Fluid 1.8.5 clips nothing unless every parameter has a clip
    context: dict[str, Any] = {}
    clipped: dict[str, Any] = {}
    for param, grad in attached:
        with param.block.program._optimized_guard([param, grad]), framework.name_scope("gradient_clip_@CLIP"):
            param.gradient_clip_attr._process_context(context, param, grad)
    for param, grad in attached:
        with param.block.program._optimized_guard([param, grad]), framework.name_scope("clip_attached"):
            clipped[param.name] = param.gradient_clip_attr._create_operators(param, grad)[1]
    result = [(param, clipped.get(param.name, grad)) for param, grad in param_grads]
    _correct_role_vars(param_grads, result)
    return result


def _attached(param_grads):
    for param, grad in param_grads:
        clip = getattr(param, "gradient_clip_attr", None)
        if grad is None or clip is None:
            continue
        if not isinstance(clip, GradientClipBase):
            raise InvalidType("the gradient_clip of %s must be a GradientClipBase, got %s"
                              % (param.name, type(clip).__name__))
        yield param, grad


def _correct_role_vars(before, after):
    """Makes the op_role_var of the clip's ops name the clipped gradient, as in programs written by Fluid."""
    old = {p.name: grad for p, grad in before}
    renamed = {p.name: new.name for p, new in after if new is not None and new is not old.get(p.name)}
    if not renamed:
        return
    program = next(p for p, g in after if g is not None).block.program
    for op in program.current_block().ops:
        if not (op.has_attr("op_namescope") and "gradient_clip" in op.attr("op_namescope")):
            continue
        pair = op.attr("op_role_var") if op.has_attr("op_role_var") else []
        if len(pair) == 2 and pair[0] in renamed:
            op._set_attr("op_role_var", [pair[0], renamed[pair[0]]])

_on_demand.give(__name__, {})


arguments.explain(globals())
