"""Updates of growable tables: the optimizers that support them, and their ops."""
from __future__ import annotations

from typing import Any

from ..errors import InvalidValue, NotOffered
from ..framework import Variable, default_startup_program
from ..growable_table import maker_of
from ..table_rules import described

#: Attributes of an optimizer's op that the update of a table has, too; the other optimizers cannot update tables.
_ATTRS = {"sgd": (), "adagrad": ("epsilon",), "adam": ("beta1", "beta2", "epsilon"),
          "momentum": ("mu", "use_nesterov"), "ftrl": ("l1", "l2", "lr_power")}


def _refuse(optimizer, param, why):
    raise NotOffered("%s cannot update the growable table %s: %s. Use SGD, Momentum, Adagrad, Ftrl, or Adam with "
                     "lazy_mode=True" % (type(optimizer).__name__, param.name, why))


def _rule(optimizer):
    return "row_adagrad" if getattr(optimizer, "_row_wise", False) else optimizer._op


def prepare(optimizer: Any, param: Any) -> None:
    """Sets, on the op of the startup program, which moments the table keeps, and that updates create its rows.

    Raises:
        NotImplementedError: the optimizer has no update for growable tables.
        ValueError: the startup program does not create the table, or another optimizer updates it.
    """
    if optimizer._op not in _ATTRS:
        _refuse(optimizer, param, "it has no rule for rows that are added and removed")
    if optimizer._op == "adam":
        if not optimizer._lazy_mode:
            _refuse(optimizer, param, "without lazy_mode every step changes all rows")
        if isinstance(optimizer._beta1, Variable) or isinstance(optimizer._beta2, Variable):
            _refuse(optimizer, param, "its betas must be floats, got a Variable")
    maker = maker_of(param.name, default_startup_program())
    if maker is None:
        raise InvalidValue("%s: the startup program does not create the growable table %s"
                           % (type(optimizer).__name__, param.name))
    if maker.attr("rule") not in ("", "sgd", _rule(optimizer)):
        raise InvalidValue("%s: the growable table %s keeps the moments of another optimizer, by the rule %s"
                           % (type(optimizer).__name__, param.name, maker.attr("rule")))
    if maker.attr("policy") == "score" and (optimizer._grad_clip is not None
                                            or getattr(param, "gradient_clip_attr", None) is not None):
        raise NotOffered("%s: the gradients of the growable table %s must not be clipped: those of its first two "
                         "columns count shows and clicks" % (type(optimizer).__name__, param.name))
    start = optimizer._fill_value(optimizer._states[0].name) if optimizer._states else 0.0
    maker._set_attr("rule", _rule(optimizer))
    maker._set_attr("moment_start", float(start))
    maker._set_attr("by_updates", True)


def append_update(optimizer: Any, block: Any, param: Any, grad: Any) -> Any:
    """Operator: the update of one table, with the decay of its rows."""
    inputs = {"Param": [param], "Grad": [grad], "LearningRate": [optimizer._create_param_lr((param, grad))]}
    outputs = {"ParamOut": [param]}
    for s in optimizer._states:
        if s.scalar:
            variable = optimizer._get_accumulator(s.name, param)
            inputs[s.slot], outputs[s.out] = [variable], [variable]
    attrs = {k: v for k, v in optimizer._attrs(param).items() if k in _ATTRS[optimizer._op]}
    attrs["rule"] = _rule(optimizer)
    attrs["table_rules"] = described(maker_of(param.name, default_startup_program()))
    regularizer = param.regularizer or optimizer.regularization
    if regularizer is not None:
        attrs.update(regularizer._of_rows())
    if param.name in optimizer._decays_of_rows:
        attrs["weight_decay"] = optimizer._decays_of_rows[param.name]
    return block.append_op(type="growable_update", inputs=inputs, outputs=outputs, attrs=attrs)
