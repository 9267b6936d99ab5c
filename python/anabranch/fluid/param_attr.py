"""ParamAttr: name, initialization, regularization and training of a parameter."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import arguments
from .described import Described
from .errors import InvalidType, InvalidValue
from .initializer import Constant, Initializer, Xavier
from .regularizer import WeightDecayRegularizer

__all__ = ["ParamAttr", "WeightNormParamAttr"]


#: Argument of ParamAttr, its classes, and their names.
_CLASSES: tuple[tuple[str, Any, str], ...] = (
    ("name", (str, type(None)), "a str or None"),
    ("learning_rate", (int, float, np.number), "a number"),
    ("trainable", (bool, np.bool_), "True or False"),
    ("do_model_average", (bool, np.bool_), "True or False"),
)


class ParamAttr(Described):
    """Attributes of one parameter, given to a layer as ``param_attr`` or ``bias_attr``.

    Args:
        name (str, optional): name of the parameter. Default: derived from the layer's name. Layers with the same name
            share the parameter.
        initializer (Initializer, optional): initializer. Default: Xavier for weights, zero for biases.
        learning_rate (float): factor of the optimizer's learning rate for this parameter. Default 1.0.
        regularizer (WeightDecayRegularizer, optional): overrides the optimizer's regularization.
        trainable (bool): the parameter is updated. Default True.
        do_model_average (bool): ``ModelAverage`` averages the parameter. The effective default is False, as in the
            layers of Fluid 1.8.
        gradient_clip (optional): clip of this parameter's gradient (an argument of 1.7 and earlier).

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> attr = fluid.ParamAttr(name="w", learning_rate=0.5)
        >>> attr.name, attr.learning_rate, attr.trainable
        ('w', 0.5, True)
    """

    def __init__(self, name: str | None = None, initializer: Initializer | None = None, learning_rate: float = 1.0,
                 regularizer: WeightDecayRegularizer | None = None, trainable: bool = True,
                 do_model_average: bool = True, gradient_clip: Any = None) -> None:
        given = locals()
        for argument, classes, words in _CLASSES:
            if not isinstance(given[argument], classes):
                raise InvalidType("ParamAttr: %s must be %s, got %.60r" % (argument, words, given[argument]))
        if name == "":
            raise InvalidValue("ParamAttr: name must not be empty: omit it for an automatic name")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.gradient_clip = gradient_clip

    def _set_default_initializer(self, initializer):
        """Uses ``initializer`` unless one was given."""
        if self.initializer is None:
            if initializer is None:
                raise InvalidValue("ParamAttr: the parameter %r must have an initializer" % (self.name,))
            self.initializer = initializer

    def _set_default_param_initializer(self):
        self._set_default_initializer(Xavier())

    def _set_default_bias_initializer(self):
        self._set_default_initializer(Constant(0.0))

    @staticmethod
    def _to_attr(arg):
        """Converts any accepted short form to a ParamAttr. None gives the default, False stays False, and lists are
        converted element by element."""
        if arg is None:
            return ParamAttr()
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(a) for a in arg]
        if isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        if isinstance(arg, bool):
            return ParamAttr() if arg else False
        raise InvalidType("param_attr or bias_attr must be a ParamAttr, str, Initializer, Regularizer, bool or a list "
                          "of those, got %s" % type(arg).__name__)

    def _to_kwargs(self, with_initializer=False):
        """Keyword arguments of ``Block.create_parameter``."""
        kwargs = {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
        }
        if self.gradient_clip is not None:
            kwargs["gradient_clip_attr"] = self.gradient_clip
        if with_initializer:
            kwargs["initializer"] = self.initializer
        return kwargs


class WeightNormParamAttr(ParamAttr):
    """A parameter kept as direction v and magnitude g: w = g * v / ||v|| (Salimans and Kingma, NIPS 2016).

    Args:
        dim (int, optional): axis along which each slice has its own magnitude. None means one magnitude for the whole
        tensor. name, initializer, learning_rate, regularizer, trainable, do_model_average: as for :class:`ParamAttr`.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.WeightNormParamAttr(dim=1, name="w").dim
        1
    """

    #: All Variables computed from v and g, in order of creation.
    params_with_weight_norm: list = []

    def __init__(self, dim: int | None = None, name: str | None = None, initializer: Any = None,
                 learning_rate: Any = 1.0, regularizer: Any = None, trainable: Any = True,
                 do_model_average: Any = False) -> None:
        super().__init__(name=name, initializer=initializer, learning_rate=learning_rate, regularizer=regularizer,
                         trainable=trainable, do_model_average=do_model_average)
        self.dim = dim


arguments.explain(globals())
