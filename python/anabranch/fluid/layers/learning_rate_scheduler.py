"""Learning-rate schedules, which depend on the number of steps. Each returns a Variable of shape [1] for an optimizer.

All schedules share one counter, the persistable Variable ``@LR_DECAY_COUNTER@``. It starts at 0 (:func:`noam_decay`: at
1) and increases by 1 in each run of the program.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable, default_main_program
from ..user_warnings import advise
from . import check
from ._generated_elementwise import elementwise_min
from ._generated_functions import ceil, cos, exp, floor
from .branches import Switch
from .copies import assign, cast
from .create import autoincreased_step_counter, create_global_var
from .fill import fill_constant

__all__ = [
    "exponential_decay", "natural_exp_decay", "inverse_time_decay", "polynomial_decay", "piecewise_decay",
    "noam_decay", "cosine_decay", "linear_lr_warmup",
]


def _decay_step_counter(begin: int = 0) -> Variable:
    """Returns the counter of runs. Custom schedules use it too."""
    counter = autoincreased_step_counter(counter_name="@LR_DECAY_COUNTER@", begin=begin, step=1)
    return cast(counter, "float32")


def _quotient(steps, staircase):
    quotient = _decay_step_counter() / steps
    return floor(quotient) if staircase else quotient


def _scheduled(fn):
    """Gives the ops of a schedule the role LRSched, so that data-parallel execution runs them once."""

    @functools.wraps(fn)
    def schedule(*args, **kwargs):
        with default_main_program()._lr_schedule_guard():
            return fn(*args, **kwargs)

    return schedule


@_scheduled
def noam_decay(d_model: float | Variable, warmup_steps: float | Variable,
               learning_rate: float | Variable = 1.0) -> Variable:
    """rate(s) = learning_rate * d_model ** -0.5 * min(s ** -0.5, s * warmup_steps ** -1.5), s = 1, 2, ...

    Vaswani and others, Attention is all you need, NIPS 2017.

    Args:
        d_model (float|Variable): width of the model.
        warmup_steps (float|Variable): number of steps before the rate decreases.
        learning_rate (float|Variable): factor of the rate. Default 1.

    Returns:
        Variable: [1], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.noam_decay(d_model=512, warmup_steps=4000).shape
        (1,)
    """
    step = _decay_step_counter(1)
    falling = step ** -0.5
    rising = (warmup_steps ** -1.5) * step
    return learning_rate * (d_model ** -0.5) * elementwise_min(falling, rising)


@_scheduled
def exponential_decay(learning_rate: float | Variable, decay_steps: int, decay_rate: float,
                      staircase: bool = False) -> Variable:
    """rate(s) = learning_rate * decay_rate ** (s / decay_steps).

    Args:
        learning_rate (float|Variable): rate at step 0.
        decay_steps (int): number of steps after which the rate is multiplied by ``decay_rate``.
        decay_rate (float): factor of the decay.
        staircase (bool): rounds s / decay_steps down to an integer. Default False.

    Returns:
        Variable: [1], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.exponential_decay(0.1, decay_steps=1000, decay_rate=0.5, staircase=True).shape
        (1,)
    """
    return learning_rate * (decay_rate ** _quotient(decay_steps, staircase))


@_scheduled
def natural_exp_decay(learning_rate: float | Variable, decay_steps: int, decay_rate: float,
                      staircase: bool = False) -> Variable:
    """rate(s) = learning_rate * exp(-decay_rate * s / decay_steps).

    Args:
        learning_rate (float|Variable): rate at step 0.
        decay_steps (int): scale of the steps.
        decay_rate (float): speed of the decay.
        staircase (bool): rounds s / decay_steps down to an integer. Default False.

    Returns:
        Variable: [1], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.natural_exp_decay(0.1, decay_steps=1000, decay_rate=0.5).shape
        (1,)
    """
    return learning_rate * exp(-1 * decay_rate * _quotient(decay_steps, staircase))


@_scheduled
def inverse_time_decay(learning_rate: float | Variable, decay_steps: int, decay_rate: float,
                       staircase: bool = False) -> Variable:
    """rate(s) = learning_rate / (1 + decay_rate * s / decay_steps).

    Args:
        learning_rate (float|Variable): rate at step 0.
        decay_steps (int): scale of the steps.
        decay_rate (float): speed of the decay.
        staircase (bool): rounds s / decay_steps down to an integer. Default False.

    Returns:
        Variable: [1], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.inverse_time_decay(0.1, decay_steps=1000, decay_rate=0.5).shape
        (1,)
    """
    return learning_rate / (1 + decay_rate * _quotient(decay_steps, staircase))


@_scheduled
def polynomial_decay(learning_rate: float | Variable, decay_steps: int, end_learning_rate: float = 0.0001,
                     power: float = 1.0, cycle: bool = False) -> Variable:
    """rate(s) = (learning_rate - end) * (1 - s / D) ** power + end.

    D is ``decay_steps``, and the rate stays the same after step D. With ``cycle``, D increases by ``decay_steps``
    whenever s reaches it.

    Args:
        learning_rate (float|Variable): rate at step 0.
        decay_steps (int): number of steps until the end of the decay.
        end_learning_rate (float): rate at the end of the decay. Default 0.0001.
        power (float): exponent. 1 is a linear decay. Default 1.
        cycle (bool): starts a new decay after the end of each one. Default False.

    Returns:
        Variable: [1], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.polynomial_decay(0.1, decay_steps=1000, end_learning_rate=0.01, power=2.0).shape
        (1,)
    """
    step = _decay_step_counter()
    if cycle:
        rounds = ceil(step / decay_steps)
        zero = fill_constant(shape=[1], dtype="float32", value=0.0)
        one = fill_constant(shape=[1], dtype="float32", value=1.0)
        with Switch() as switch:
            with switch.case(step == zero):
                assign(one, rounds)
        share = step / (rounds * decay_steps)
    else:
        limit = fill_constant(shape=[1], dtype="float32", value=float(decay_steps))
        share = elementwise_min(x=step, y=limit) / decay_steps
    return (learning_rate - end_learning_rate) * ((1 - share) ** power) + end_learning_rate


@_scheduled
def piecewise_decay(boundaries: Sequence[Any], values: Sequence[Any]) -> Variable:
    """rate(s) = values[i] for the first i with s < boundaries[i], or else the last value.

    Args:
        boundaries (list|tuple): steps at which the rate changes, in order.
        values (list|tuple): rates, one more than ``boundaries``.

    Returns:
        Variable: [1], float32, persistable.

    Raises:
        ValueError: the lengths do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.piecewise_decay([10000, 20000], [1.0, 0.5, 0.1]).shape
        (1,)
    """
    if len(values) - len(boundaries) != 1:
        raise InvalidValue("piecewise_decay: values must be one longer than boundaries, got %d and %d"
                           % (len(values), len(boundaries)))
    if sorted(boundaries) != list(boundaries):
        advise("piecewise_decay: boundaries must rise, got %s: a step takes the rate of the first boundary above it, "
               "so that others are never used" % (list(boundaries),))
    step = _decay_step_counter()
    rate = create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="learning_rate")
    with Switch() as switch:
        for boundary, value in zip(boundaries, values):
            limit = fill_constant(shape=[1], dtype="float32", value=float(boundary), force_cpu=True)
            chosen = fill_constant(shape=[1], dtype="float32", value=float(value))
            with switch.case(step < limit):
                assign(chosen, rate)
        last = fill_constant(shape=[1], dtype="float32", value=float(values[-1]))
        with switch.default():
            assign(last, rate)
    return rate


@_scheduled
def cosine_decay(learning_rate: float | Variable, step_each_epoch: int, epochs: int) -> Variable:
    """rate(s) = learning_rate / 2 * (cos(pi * e / epochs) + 1), e = floor(s / step_each_epoch).

    Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017.

    Args:
        learning_rate (float|Variable): rate at step 0.
        step_each_epoch (int): number of steps per epoch.
        epochs (int): number of epochs until the rate is 0.

    Returns:
        Variable: [1], float32.

    Raises:
        TypeError: ``learning_rate`` is neither a float nor a Variable.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.cosine_decay(0.1, step_each_epoch=1000, epochs=90).shape
        (1,)
    """
    check.of_type(learning_rate, "learning_rate", "cosine_decay", (float, Variable))
    epoch = floor(_decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (cos(epoch * math.pi / epochs) + 1)


@_scheduled
def linear_lr_warmup(learning_rate: float | int | Variable, warmup_steps: int, start_lr: float,
                     end_lr: float) -> Variable:
    """rate(s) = start_lr + (end_lr - start_lr) * s / warmup_steps for s < warmup_steps, then ``learning_rate``.

    He and others, Bag of tricks for image classification, CVPR 2019.

    Args:
        learning_rate (float|int|Variable): rate after the warmup, usually another schedule.
        warmup_steps (int): number of steps of the warmup.
        start_lr (float): rate at step 0.
        end_lr (float): rate at the end of the warmup.

    Returns:
        Variable: [1], persistable, float32 or the dtype of ``learning_rate``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> base = fluid.layers.piecewise_decay([100, 200], [0.1, 0.05, 0.01])
        >>> fluid.layers.linear_lr_warmup(base, warmup_steps=50, start_lr=0.0, end_lr=0.1).shape
        (1,)
    """
    dtype = learning_rate.dtype if isinstance(learning_rate, Variable) else "float32"
    slope = end_lr - start_lr
    rate = create_global_var(shape=[1], value=0.0, dtype=dtype, persistable=True, name="learning_rate_warmup")
    step = _decay_step_counter()
    with Switch() as switch:
        with switch.case(step < warmup_steps):
            assign(start_lr + slope * (step / float(warmup_steps)), rate)
        with switch.default():
            if not isinstance(learning_rate, Variable):
                learning_rate = fill_constant(shape=[1], dtype=dtype, value=float(learning_rate))
            assign(learning_rate, rate)
    return rate


explain(globals())
