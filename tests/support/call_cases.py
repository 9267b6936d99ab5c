"""Calls of initializers, optimizers, clips and metrics; running_cases.py has those of files, feeders and executors.

Each case is a function of the module fluid that returns a callable and its keyword arguments, in fresh programs. Runs
on Python 3.7 and later.
"""

import numpy as np

CASES = {}


def case(name):
    """Adds a case; its name is that of the function or class which is called."""
    def add(make):
        CASES[name] = make
        return make
    return add


def net(fluid):
    """A net with a parameter of each kind, and its loss; returns (input, loss)."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    return x, fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def _attribute(fluid, **more):
    """Makes a parameter by an attribute."""
    return fluid.layers.create_parameter([3, 2], "float32", attr=fluid.ParamAttr(**more))


def initializer(name, **arguments):
    def make(fluid):
        cls = getattr(fluid.initializer, name)
        return lambda **given: _attribute(fluid, initializer=cls(**given)), arguments
    CASES["initializer." + name] = make


initializer("Constant", value=0.5, force_cpu=False)
initializer("Uniform", low=-1.0, high=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0)
initializer("Normal", loc=0.0, scale=1.0, seed=0)
initializer("TruncatedNormal", loc=0.0, scale=1.0, seed=0)
initializer("Xavier", uniform=True, fan_in=None, fan_out=None, seed=0)
initializer("MSRA", uniform=True, fan_in=None, seed=0)
initializer("NumpyArrayInitializer", value=np.ones([3, 2], "float32"))


@case("ParamAttr")
def _(fluid):
    return lambda **given: _attribute(fluid, **given), dict(
        name="w", initializer=None, learning_rate=1.0, regularizer=None, trainable=True, do_model_average=True)


@case("WeightNormParamAttr")
def _(fluid):
    x = fluid.data("x", [None, 3])
    return lambda **given: fluid.layers.fc(x, 2, param_attr=fluid.WeightNormParamAttr(**given)), dict(
        dim=None, name="w", initializer=None, learning_rate=1.0, regularizer=None, trainable=True)


def optimizer(cls, **arguments):
    """The constructor of an optimizer, followed by minimize."""
    def make(fluid):
        loss = net(fluid)[1]
        return lambda **given: getattr(fluid.optimizer, cls)(**given).minimize(loss), arguments
    CASES["optimizer." + cls] = make


MORE = {"parameter_list": None, "regularization": None, "grad_clip": None, "name": None}
optimizer("SGD", learning_rate=0.1, **MORE)
optimizer("Momentum", learning_rate=0.1, momentum=0.9, use_nesterov=False, **MORE)
optimizer("LarsMomentum", learning_rate=0.1, momentum=0.9, lars_coeff=0.001, lars_weight_decay=0.0005, **MORE)
optimizer("Adagrad", learning_rate=0.1, epsilon=1e-6, initial_accumulator_value=0.0, **MORE)
optimizer("Adam", learning_rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_mode=False, **MORE)
optimizer("Adamax", learning_rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8, **MORE)
optimizer("Dpsgd", learning_rate=0.1, clip=0.9, batch_size=0.9, sigma=1e-8)
optimizer("DecayedAdagrad", learning_rate=0.1, decay=0.95, epsilon=1e-6, **MORE)
optimizer("Adadelta", learning_rate=0.1, epsilon=1e-6, rho=0.95, **MORE)
optimizer("RMSProp", learning_rate=0.1, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, **MORE)
optimizer("Ftrl", learning_rate=0.1, l1=0.0, l2=0.0, lr_power=-0.5, **MORE)
optimizer("Lamb", learning_rate=0.1, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
          exclude_from_weight_decay_fn=None, **MORE)


@case("Optimizer.minimize")
def _(fluid):
    loss = net(fluid)[1]
    return fluid.optimizer.SGD(0.1).minimize, dict(loss=loss, startup_program=None, parameter_list=None,
                                                   no_grad_set=None)


@case("Optimizer.backward")
def _(fluid):
    loss = net(fluid)[1]
    return fluid.optimizer.SGD(0.1).backward, dict(loss=loss, startup_program=None, parameter_list=None,
                                                   no_grad_set=None, callbacks=None)


@case("Optimizer.apply_gradients")
def _(fluid):
    one = fluid.optimizer.SGD(0.1)
    return one.apply_gradients, dict(params_grads=one.backward(net(fluid)[1]))


@case("optimizer.ExponentialMovingAverage")
def _(fluid):
    net(fluid)
    return lambda **given: fluid.optimizer.ExponentialMovingAverage(**given).update(), dict(
        decay=0.9, thres_steps=None, name=None)


@case("optimizer.ModelAverage")
def _(fluid):
    net(fluid)
    return fluid.optimizer.ModelAverage, dict(average_window_rate=0.1, min_average_window=10, max_average_window=20,
                                              regularization=None, name=None)


@case("optimizer.LookaheadOptimizer")
def _(fluid):
    loss = net(fluid)[1]
    return lambda **given: fluid.optimizer.LookaheadOptimizer(**given).minimize(loss), dict(
        inner_optimizer=fluid.optimizer.SGD(0.1), alpha=0.5, k=5)


@case("optimizer.RecomputeOptimizer")
def _(fluid):
    x, loss = net(fluid)

    def call(optimizer, checkpoints):
        wrapped = fluid.optimizer.RecomputeOptimizer(optimizer)
        wrapped._set_checkpoints(checkpoints)
        wrapped.minimize(loss)
    return call, dict(optimizer=fluid.optimizer.SGD(0.1), checkpoints=[loss])


@case("regularizer.L2Decay")
def _(fluid):
    loss = net(fluid)[1]
    return lambda **given: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(**given)).minimize(loss), \
        dict(regularization_coeff=0.1)


@case("regularizer.L1Decay")
def _(fluid):
    loss = net(fluid)[1]
    return lambda **given: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L1Decay(**given)).minimize(loss), \
        dict(regularization_coeff=0.1)


def clip(name, **arguments):
    def make(fluid):
        loss, cls = net(fluid)[1], getattr(fluid.clip, name)
        return lambda **given: fluid.optimizer.SGD(0.1, grad_clip=cls(**given)).minimize(loss), arguments
    CASES["clip." + name] = make


clip("GradientClipByValue", max=1.0, min=-1.0)
clip("GradientClipByNorm", clip_norm=1.0)
clip("GradientClipByGlobalNorm", clip_norm=1.0)


@case("clip.set_gradient_clip")
def _(fluid):
    net(fluid)
    return fluid.clip.set_gradient_clip, dict(clip=fluid.clip.GradientClipByValue(1.0), param_list=None, program=None)


def metric(name, constructor, *updates):
    """The constructor of a metric, and its ``update``."""
    CASES["metrics." + name] = lambda fluid: (getattr(fluid.metrics, name), constructor)
    for n, arguments in enumerate(updates):
        CASES["metrics.%s.update%s" % (name, n or "")] = lambda fluid, arguments=arguments: (
            getattr(fluid.metrics, name)(**constructor).update, arguments)


ONES, IDS = np.ones([4, 1], "float32"), np.ones([4, 1], "int64")
metric("Precision", {"name": None}, {"preds": ONES, "labels": IDS})
metric("Recall", {"name": None}, {"preds": ONES, "labels": IDS})
metric("Accuracy", {"name": None}, {"value": 0.5, "weight": 4}, {"value": ONES[:1], "weight": 4.0})
metric("ChunkEvaluator", {"name": None}, dict(num_infer_chunks=3, num_label_chunks=3, num_correct_chunks=2))
metric("EditDistance", {"name": None}, {"distances": ONES, "seq_num": 4})
metric("Auc", {"name": None, "curve": "ROC", "num_thresholds": 100}, {"preds": np.ones([4, 2], "float32") / 2,
                                                                      "labels": IDS})


@case("metrics.CompositeMetric.add_metric")
def _(fluid):
    return fluid.metrics.CompositeMetric().add_metric, dict(metric=fluid.metrics.Precision())
