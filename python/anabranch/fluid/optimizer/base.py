"""Base class of the optimizers: it appends clipping, regularization and updates, and creates the accumulators.

A subclass defines the op that updates a parameter, the op's state variables (accumulators) and its attributes; see
``simple.py`` for the shortest ones.
"""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Tuple

import numpy

from .. import arguments, framework, layers, unique_name, user_warnings
from ..backward import append_backward, no_grad_names
from ..clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from ..described import Described
from ..errors import InvalidType, NotOffered, Violated
from ..framework import OpRole, Variable, default_main_program, default_startup_program, program_guard
from ..framework.dtype import VarType
from ..framework.variable import is_growable
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..layers import check
from ..regularizer import append_regularization_ops
from . import growable
from .rate import Rated

if TYPE_CHECKING:
    from ..framework import Operator, Program
    from ..regularizer import WeightDecayRegularizer

#: One accumulator of an update op. ``slot``: its input slot; ``out``: its output slot ("" for none); ``name``: the part
#: of the variable's name after the parameter's; ``scalar``: shape [1] instead of the parameter's.
State = namedtuple("State", ["slot", "out", "name", "scalar"])


def state(slot: Any, name: str, out: Any = None, scalar: Any = False) -> Any:
    """A :class:`State` whose output slot is ``slot`` + "Out" unless given."""
    return State(slot, slot + "Out" if out is None else out, name, scalar)


class Optimizer(Rated, Described):
    """Base class of the optimizers; use a subclass.

    Args:
        learning_rate (float|Variable): global learning rate. A Variable, such as the result of a schedule,
            must have shape [1].
        parameter_list (list, optional): parameters or names to update. Default: all trainable ones.
        regularization (WeightDecayRegularizer, optional): regularizer of the parameters that have none themselves.
        grad_clip (GradientClipBase, optional): clips the gradients before the regularization is added.
        name (str, optional): becomes part of the accumulators' names.

    Raises:
        TypeError: ``learning_rate`` is neither float nor Variable, or ``grad_clip`` is not a gradient clip.
        AssertionError: ``learning_rate`` is None.
    """

    #: Type of the op that updates one parameter; scripts read it as ``type``.
    _op = ""
    type: str
    #: Accumulators of the op, in order of creation.
    _states: Tuple[State, ...] = ()
    #: Whether the learning rate is an input of the op.
    _uses_rate = True

    def __init_subclass__(cls) -> None:
        """Adds the attributes that Fluid's optimizers have: ``type``, and for each accumulator one such as
        ``_moment1_acc_str``, its name."""
        super().__init_subclass__()
        if "_op" in vars(cls) and "type" not in vars(cls):
            cls.type = cls._op
        for s in vars(cls).get("_states", ()):
            setattr(cls, "_%s_acc_str" % s.name.strip("_").removesuffix("_acc"), s.name)

    def __init__(self, learning_rate: float | Variable, parameter_list: Sequence[Any] | None = None,
                 regularization: WeightDecayRegularizer | None = None, grad_clip: GradientClipBase | None = None,
                 name: str | None = None) -> None:
        if learning_rate is None:
            raise Violated("%s: learning_rate must be given" % type(self).__name__)
        if not isinstance(learning_rate, (float, Variable)):
            raise InvalidType("%s: learning_rate must be a float or a Variable, got %s"
                              % (type(self).__name__, type(learning_rate).__name__))
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            raise InvalidType("%s: grad_clip must be a GradientClipByValue, ByNorm or ByGlobalNorm, got %s"
                              % (type(self).__name__, type(grad_clip).__name__))
        self._name = name
        self._parameter_list = parameter_list
        self.regularization = regularization
        self._grad_clip = grad_clip
        if isinstance(learning_rate, float) and learning_rate < 0:
            user_warnings.advise("%s: learning_rate is %g, so that each step makes the loss larger: pass a rate above 0"
                                 % (type(self).__name__, learning_rate))
        self._learning_rate = learning_rate
        self._dtype: Any = None
        # program -> global learning rate Variable
        self._learning_rate_map: dict[Any, Any] = {}
        if isinstance(learning_rate, Variable):
            self._learning_rate_map[default_main_program()] = learning_rate
        self._accumulators: dict[Any, Any] = {}  # name -> {parameter name: Variable}
        self._decays_of_rows: dict[str, float] = {}  # growable table -> its decoupled weight decay
        self._opti_name_list: list[Any] = []
        self.helper = None

    # ---- for subclasses

    def _attrs(self, param):
        """Attributes of ``param``'s update op."""
        return {}

    def _more_inputs(self):
        """Inputs of the update op other than parameter, gradient, learning rate and accumulators."""
        return {}

    def _fill_value(self, name):
        """Initial value of the accumulator ``name``."""
        return 0.0

    def _finish_update(self, block, params_grads):
        """Appends ops that follow the update of all parameters."""

    # ---- learning rate

    def _create_global_learning_rate(self):
        program = default_main_program()
        if program in self._learning_rate_map:
            return
        if isinstance(self._learning_rate, Variable):
            self._learning_rate_map[program] = self._learning_rate
            return
        self._learning_rate_map[program] = layers.create_global_var(
            name=unique_name.generate("learning_rate"), shape=[1], value=float(self._learning_rate),
            dtype="float32" if self._dtype is None else self._dtype, persistable=True)

    def _global_learning_rate(self, program=None):
        """The Variable of the global learning rate in ``program``; None before ``minimize``."""
        return self._learning_rate_map.get(default_main_program() if program is None else program)

    def _create_param_lr(self, param_and_grad):
        factor = param_and_grad[0].optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        rate = self._global_learning_rate()
        if factor == 1.0:
            return rate
        with default_main_program()._lr_schedule_guard(is_with_opt=True), framework.name_scope("scale_with_param_lr"):
            return rate * factor

    # ---- accumulators

    def _add_accumulator(self, name, param, dtype=None, fill_value=0.0, shape=None, type=None):
        name = name if self._name is None else self._name + "_" + name
        known = self._accumulators.setdefault(name, {})
        if param.name in known:
            raise Violated("%s: accumulator %s of parameter %s exists already: minimize must be called once per "
                           "optimizer. Create another optimizer for another loss"
                           % (self.__class__.__name__, name, param.name))
        variable = self.helper.create_global_variable(
            name=unique_name.generate(param.name + "_" + name), persistable=True, dtype=dtype or param.dtype,
            stop_gradient=False,
            type=param.type if type is None else type, shape=list(param.shape if shape is None else shape))
        self.helper.set_variable_initializer(variable, initializer=Constant(value=float(fill_value)))
        self._opti_name_list.append(variable.name)
        known[param.name] = variable
        return variable

    def _get_accumulator(self, name, param):
        name = name if self._name is None else self._name + "_" + name
        try:
            return self._accumulators[name][param.name]
        except KeyError:
            raise Violated("%s: parameter %s has no accumulator %s"
                           % (type(self).__name__, param.name, name)) from None

    def _create_accumulators(self, block, parameters):
        for param in parameters:
            whole = is_growable(param)
            if whole:
                growable.prepare(self, param)
            for s in self._states:
                if whole and not s.scalar:
                    continue  # stored with each row of the table
                self._add_accumulator(s.name, param, fill_value=self._fill_value(s.name),
                                      shape=[1] if s.scalar else None, type=VarType.LOD_TENSOR)

    def get_opti_var_name_list(self) -> list[str]:
        """list of str: names of the accumulators created so far.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.optimizer.SGD(0.1).get_opti_var_name_list()
            []
        """
        return list(self._opti_name_list)

    def state_dict(self) -> Any:
        """dict: accumulator Variables by name.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.optimizer.SGD(0.1).state_dict()
            {}
        """
        return {v.name: v for by_param in self._accumulators.values() for v in by_param.values()}

    def set_dict(self, state_dict: Any) -> Any:
        """Raises NotImplementedError, because only imperative programs use it. Static programs load files with
        ``fluid.load``."""
        raise NotOffered("set_dict requires an imperative program: load the state with fluid.load or fluid.io")

    def clear_gradients(self) -> Any:
        """Raises NotImplementedError, because only imperative programs use it. Gradients of a static program last one
        run."""
        raise NotOffered("clear_gradients requires an imperative program: a Program computes its gradients in each run")

    # ---- the pass over the parameters

    def _append_optimize_op(self, block, param_and_grad):
        param, grad = param_and_grad
        if is_growable(param):
            return growable.append_update(self, block, param, grad)
        inputs = {"Param": [param], "Grad": [grad]}
        if self._uses_rate:
            inputs["LearningRate"] = [self._create_param_lr(param_and_grad)]
        outputs = {"ParamOut": [param]}
        for s in self._states:
            variable = self._get_accumulator(s.name, param)
            inputs[s.slot] = [variable]
            if s.out:
                outputs[s.out] = [variable]
        inputs.update(self._more_inputs())
        return block.append_op(type=self._op, inputs=inputs, outputs=outputs, attrs=self._attrs(param))

    def _create_optimization_pass(self, params_grads):
        program = default_main_program()
        block = program.current_block()
        start = len(block.ops)
        self._warn_of_second_updates(block, params_grads)
        self.helper = LayerHelper(self.__class__.__name__)
        self._create_accumulators(block, [p for p, g in params_grads if p.trainable])
        self._create_global_learning_rate()
        for param, grad in params_grads:
            if grad is None or not param.trainable:
                continue
            with param.block.program._optimized_guard([param, grad]), framework.name_scope("optimizer"):
                self._append_optimize_op(block, (param, grad))
        self._finish_update(block, params_grads)
        return block._slice_ops(start, len(block.ops))

    def _warn_of_second_updates(self, block, params_grads):
        updated = {name for op in block.ops if op.has_attr("op_role") and int(op.attr("op_role")) & OpRole.Optimize
                   and "Param" in op.input_names for name in op.input("Param")}
        again = [param.name for param, grad in params_grads if grad is not None and param.name in updated]
        if again:
            user_warnings.warn("%s: the program already updates %s%s, so that each step now does so twice: minimize "
                               "was called before; call it once, for the sum of the losses if there are several"
                               % (type(self).__name__, ", ".join(again[:3]), ", ..." if len(again) > 3 else ""))

    # ---- public

    def backward(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None,
                 callbacks: Sequence[Any] | None = None) -> list[Any]:
        """First half of :meth:`minimize`: appends the gradient ops.

        Args:
            loss (Variable): the value to minimize, of shape [1].
            startup_program (Program, optional): receives the initial values of new variables. Default: the default
                startup program.
            parameter_list (list, optional): parameters or names. Default: all trainable ones. An empty list counts as
                not given, with a warning.
            no_grad_set (set, optional): Variables or names that get no gradient.
            callbacks (list, optional): called as f(block, context) after each gradient op.

        Returns:
            list: (parameter, gradient) pairs.

        Raises:
            AssertionError: ``loss`` is not a Variable of one element.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
            >>> sgd = fluid.optimizer.SGD(0.1)
            >>> pairs = sgd.backward(loss)
            >>> [(p.name, g.name) for p, g in pairs][0]
            ('fc_0.w_0', 'fc_0.w_0@GRAD')
            >>> len(sgd.apply_gradients(pairs))
            2
        """
        if not isinstance(loss, Variable):
            raise Violated("%s: loss must be a Variable, got %s" % (type(self).__name__, type(loss).__name__))
        if len(loss.shape) != 1 or loss.shape[0] != 1:
            raise Violated("%s: loss must have shape (1,), got %s: reduce it with fluid.layers.mean"
                           % (type(self).__name__, tuple(loss.shape)))
        if callbacks is not None and not isinstance(callbacks, list):
            raise Violated("%s: callbacks must be a list, got %s" % (type(self).__name__, type(callbacks).__name__))
        self._dtype = loss.dtype
        program = loss.block.program
        no_grad = self._get_no_grad_set(loss, no_grad_set)
        with program_guard(program, startup_program or default_startup_program()):
            return append_backward(loss, self._chosen_parameters(parameter_list), no_grad,
                                   [error_clip_callback] + (callbacks or []))

    def _get_no_grad_set(self, loss, no_grad_set=None):
        """Names of the variables that get no gradient: frozen parameters, and those of ``no_grad_set``."""
        frozen = {p.name for p in loss.block.program.global_block().all_parameters() if not p.trainable}
        return frozen.union(no_grad_names(no_grad_set))

    def _chosen_parameters(self, given):
        """The ``parameter_list`` of a call, or else that of the constructor. As in Fluid, an empty one is not given."""
        if given is None:
            return self._parameter_list
        if isinstance(given, numpy.ndarray) or given:
            return given
        user_warnings.warn("%s: parameter_list is empty, which counts as not given: %s"
                           % (type(self).__name__, "all trainable parameters are updated; pass None if this is intended"
                              if self._parameter_list is None else "the parameter_list of the constructor is used"))
        return self._parameter_list

    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Operator]:
        """Second half of :meth:`minimize`: appends gradient clipping, regularization, and one update op per parameter.

        Args:
            params_grads (list): (parameter, gradient) pairs. If none has a gradient, a warning says that nothing is
                trained.

        Returns:
            list of Operator: the update ops.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
            >>> adam = fluid.optimizer.Adam(0.1)
            >>> [op.type for op in adam.apply_gradients(adam.backward(loss))]
            ['adam', 'adam']
        """
        if not any(grad is not None for _, grad in params_grads):
            if not check.exact_fluid():
                user_warnings.warn("%s: nothing is trained: parameter_list, no_grad_set or trainable=False leave no "
                                   "parameter that the loss depends on" % type(self).__name__)
            return []
        params_grads = sorted(params_grads, key=lambda pair: pair[0].name)
        if self._grad_clip is not None:
            params_grads = self._grad_clip(params_grads)
        else:
            params_grads = append_gradient_clip_ops(params_grads)
        params_grads = append_regularization_ops(params_grads, self.regularization)
        return self._create_optimization_pass(params_grads)

    def apply_optimize(self, loss: Variable, startup_program: Program | None,
                       params_grads: Sequence[Any]) -> list[Operator]:
        """Like :meth:`apply_gradients`, in the program of ``loss``.

        Args:
            loss (Variable): a variable of the program.
            startup_program (Program|None): receives the initial values; None is the default startup program.
            params_grads (list): (parameter, gradient) pairs.

        Returns:
            list of Operator: the update ops.
        """
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(params_grads)

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None) -> tuple[Any, ...]:
        """Appends gradients and parameter updates that minimize ``loss`` to its program.

        Args:
            loss (Variable): the value to minimize, of shape [1].
            startup_program (Program, optional): receives the initial values of learning rate and accumulators. Default:
                the default startup program.
            parameter_list (list, optional): parameters or names to update. Default: all trainable ones. An empty list
                counts as not given, with a warning.
            no_grad_set (set, optional): Variables or names that get no gradient.

        Returns:
            tuple: the update ops, and the (parameter, gradient) pairs before clipping and regularization.

        Raises:
            AssertionError: ``loss`` is not a Variable of one element.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> x = fluid.data("x", [None, 13], "float32")
            >>> y = fluid.data("y", [None, 1], "float32")
            >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
            >>> ops, pairs = fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
            >>> [op.type for op in ops], len(pairs)
            (['momentum', 'momentum'], 2)
        """
        if not isinstance(loss, Variable):
            raise Violated("%s.minimize: loss must be a Variable, got %s" % (type(self).__name__, type(loss).__name__))
        params_grads = self.backward(loss, startup_program=startup_program, parameter_list=parameter_list,
                                     no_grad_set=no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads


arguments.explain(globals())
