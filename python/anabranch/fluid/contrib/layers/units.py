"""Base class of the units of recurrent layers, with the methods of Fluid's ``Layer`` that static programs use."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ... import unique_name
from ...described import Described
from ...errors import InvalidType, InvalidValue, NotAllowed, Unsupported, Violated
from ...framework import Parameter, Variable, VarType
from ...framework.places import _current_expected_place
from ...scope import global_scope

_STATIC = "%s.%s is not supported: this engine runs static programs; %s"


class Hook:
    """A hook of a unit, which ``remove`` removes."""

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook = hooks, hook
        hooks.append(self)

    def __call__(self, *args: Any) -> Any:
        return self._hook(*args)

    def remove(self) -> None:
        """Removes the hook from its unit."""
        if self in self._hooks:
            self._hooks.remove(self)


class Unit(Described):
    """A cell that is called like a layer. It may have further parameters and units inside."""

    #: Structured name of a parameter -> name of the cell's part.
    _parts: dict[str, str] = {}
    _cell: Any
    forward: Callable[..., Any]
    training = True

    def __init__(self) -> None:
        self._more: dict[str, Any] = OrderedDict()
        self._units: dict[str, Unit] = OrderedDict()
        self._pre_hooks: list[Hook] = []
        self._post_hooks: list[Hook] = []

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        for hook in list(self._pre_hooks):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in list(self._post_hooks):
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def full_name(self) -> str:
        """Returns the name of the unit, the prefix of the names of its parameters.

        Returns:
            str: a name that is unique in the program.
        """
        return self._cell._parameters.helper.name

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Hook:
        """Registers ``hook(unit, inputs)``, called before :meth:`forward`. It may return other inputs.

        Returns:
            Hook: its ``remove()`` removes the hook.
        """
        return Hook(self._pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> Hook:
        """Registers ``hook(unit, inputs, outputs)``, called after :meth:`forward`. It may return other outputs.

        Returns:
            Hook: its ``remove()`` removes the hook.
        """
        return Hook(self._post_hooks, hook)

    # ---- parameters and units

    def create_parameter(self, shape: Any, attr: Any = None, dtype: Any = "float32", is_bias: bool = False,
                         default_initializer: Any = None) -> Any:
        """Creates a parameter whose generated name starts with the name of the unit. Arguments as for
        ``fluid.layers.create_parameter``; None for ``attr=False``."""
        return self._cell._parameters.helper.create_parameter(
            attr=attr, shape=shape, dtype=dtype, is_bias=is_bias, default_initializer=default_initializer)

    def create_variable(self, name: str | None = None, persistable: bool | None = None, dtype: Any = None,
                        type: Any = VarType.LOD_TENSOR) -> Variable:
        """Creates a variable of the current block, whose name starts with the name of the unit.

        Args:
            name (str, optional): end of its name. Default: a generated one.
            persistable (bool, optional): whether the value outlives a run. Default False.
            dtype (str, optional): element type.
            type (VarType): kind. Default LOD_TENSOR.

        Returns:
            Variable: the variable.
        """
        last = unique_name.generate("_generated_var") if name is None else name
        block = self._cell._parameters.helper.main_program.current_block()
        return block.create_var(name="%s.%s" % (self.full_name(), last), persistable=persistable, dtype=dtype,
                                type=type)

    def add_parameter(self, name: str, parameter: Any) -> Any:
        """Adds a parameter, or None, to those of the unit.

        Raises:
            TypeError: it is not a Parameter.
        """
        if parameter is not None and not isinstance(parameter, Parameter):
            raise InvalidType("%s.add_parameter: parameter must be a Parameter or None, got %s"
                              % (type(self).__name__, type(parameter).__name__))
        if parameter is not None:
            self._more[name] = parameter
        return parameter

    def add_sublayer(self, name: str, sublayer: Unit) -> Unit:
        """Adds a unit, whose parameters become those of this one, too.

        Raises:
            AssertionError: it is not a unit.
        """
        if not isinstance(sublayer, Unit):
            raise Violated("%s.add_sublayer: sublayer must be a unit, got %s"
                           % (type(self).__name__, type(sublayer).__name__))
        self._units[name] = sublayer
        return sublayer

    def parameters(self, include_sublayers: bool = True) -> list[Variable]:
        """Returns the weights and then the biases. There are none before the first call of the unit.

        Args:
            include_sublayers (bool): adds those of the units inside. Default True.

        Returns:
            list of Parameter: the parameters.
        """
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Variable]]:
        """Iterates over (structured name, parameter), such as ``("_gate_weight", parameter)``.

        Args:
            prefix (str): start of the names. Default "".
            include_sublayers (bool): adds those of the units inside. Default True.
        """
        made = self._cell._parameters.made
        start = prefix + "." if prefix else ""
        for name, part in self._parts.items():
            if part in made:
                yield start + name, made[part]
        for name, parameter in self._more.items():
            yield start + name, parameter
        for name, unit in self._units.items() if include_sublayers else ():
            yield from unit.named_parameters(start + name)

    def sublayers(self, include_sublayers: bool = True) -> list[Unit]:
        """list of Unit: the units inside, and, unless ``include_sublayers`` is False, those inside of them."""
        return [unit for name, unit in self.named_sublayers(include_sublayers=include_sublayers)]

    def named_sublayers(self, prefix: str = "", include_sublayers: bool = True, include_self: bool = False,
                        layers_set: Any = None) -> Iterator[tuple[str, Unit]]:
        """Iterates over (structured name, unit) of the units inside.

        Args:
            prefix (str): start of the names. Default "".
            include_sublayers (bool): adds those inside of them. Default True.
            include_self (bool): starts with this unit. Default False.
            layers_set (set, optional): units to leave out; the others are added to it.
        """
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        for name, unit in self._units.items():
            full = prefix + "." + name if prefix else name
            if include_sublayers:
                yield from unit.named_sublayers(full, include_self=True, layers_set=seen)
            elif unit not in seen:
                seen.add(unit)
                yield full, unit

    # ---- values

    def state_dict(self, destination: Any = None, include_sublayers: bool = True,
                   structured_name_prefix: str = "") -> Any:
        """The parameters by structured name.

        Args:
            destination (dict, optional): receives them. Default: a new dict.
            include_sublayers (bool): adds those of the units inside. Default True.
            structured_name_prefix (str): start of the names. Default "".

        Returns:
            dict: structured name -> Parameter.
        """
        found = OrderedDict() if destination is None else destination
        for name, parameter in self.named_parameters("", include_sublayers):
            found[structured_name_prefix + name] = parameter
        return found

    def set_dict(self, stat_dict: Any, include_sublayers: bool = True, use_structured_name: bool = True) -> None:
        """Sets the values of all parameters in the global scope.

        Args:
            stat_dict (dict): structured name, or name of the parameter -> numpy.ndarray.
            include_sublayers (bool): sets those of the units inside. Default True.
            use_structured_name (bool): the keys are structured names. Default True.

        Raises:
            RuntimeError: ``stat_dict`` lacks a parameter.
        """
        for name, parameter in self.named_parameters("", include_sublayers):
            key = name if use_structured_name else parameter.name
            if key not in stat_dict:
                raise NotAllowed("%s.set_dict: stat_dict must have a value for %s" % (type(self).__name__, key))
            global_scope().var(parameter.name).get_tensor().set(numpy.asarray(stat_dict[key]),
                                                                _current_expected_place())

    load_dict = set_dict

    # ---- of the imperative mode

    def train(self) -> None:
        """Raises NotImplementedError: build the program of training without ``clone(for_test=True)``."""
        raise Unsupported(_STATIC % (type(self).__name__, "train", "a Program trains unless it is a test clone"))

    def eval(self) -> None:
        """Raises NotImplementedError: use ``Program.clone(for_test=True)``."""
        raise Unsupported(_STATIC % (type(self).__name__, "eval", "use Program.clone(for_test=True)"))

    def clear_gradients(self) -> None:
        """Does nothing before the parameters exist; then raises AssertionError: each run computes gradients again."""
        if self.parameters():
            raise Violated("%s.clear_gradients must be called in imperative mode, which this engine does not have: "
                           "each run of a program computes the gradients again" % type(self).__name__)

    def backward(self, *inputs: Any) -> None:
        """Raises ValueError: use ``fluid.backward.append_backward``."""
        raise InvalidValue("%s.backward is not implemented: use fluid.backward.append_backward" % type(self).__name__)
