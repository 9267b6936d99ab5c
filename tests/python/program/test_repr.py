"""The repr of every public object names the object."""
import inspect
import re

import pytest

import anabranch.fluid as fluid


def _x():
    return fluid.data("x", [None, 4])


OBJECTS = {
    "Executor": lambda: (fluid.Executor(fluid.CPUPlace()), "Executor(place=CPUPlace)"),
    "CompiledProgram": lambda: (fluid.CompiledProgram(fluid.Program()).with_data_parallel(loss_name="loss"),
                                "CompiledProgram(0 ops, data parallel, loss loss)"),
    "Program": lambda: (fluid.Program(), "<Program: 1 block, 0 ops in the global one>"),
    "ParamAttr": lambda: (fluid.ParamAttr(name="w", learning_rate=0.5, initializer=fluid.initializer.Constant(2.0)),
                          "ParamAttr(name='w', initializer=ConstantInitializer(value=2.0), learning_rate=0.5)"),
    "WeightNormParamAttr": lambda: (fluid.WeightNormParamAttr(dim=0), "WeightNormParamAttr(dim=0)"),
    "GrowableTable": lambda: (fluid.GrowableTable("t"), "GrowableTable(name='t')"),
    "Scope": lambda: (fluid.Scope(), "Scope()"),
    "LoDTensorArray": lambda: (fluid.LoDTensorArray(), "LoDTensorArray(0 tensors)"),
    "L2Decay": lambda: (fluid.regularizer.L2Decay(0.1), "L2DecayRegularizer(regularization_coeff=0.1)"),
    "SGD": lambda: (fluid.optimizer.SGD(0.1), "SGDOptimizer(learning_rate=0.1)"),
    "BuildStrategy": lambda: (fluid.BuildStrategy(), "BuildStrategy()"),
    "ExecutionStrategy": lambda: (fluid.ExecutionStrategy(), "ExecutionStrategy()"),
    "DataFeeder": lambda: (fluid.DataFeeder([_x()], fluid.CPUPlace()), "DataFeeder(feed_list=[x], place=CPUPlace)"),
    "DataLoader": lambda: (fluid.io.DataLoader.from_generator([_x()], capacity=4),
                           "GeneratorLoader(feed_list=[x], capacity=4)"),
    "Dataset": lambda: (fluid.DatasetFactory().create_dataset("QueueDataset"), "QueueDataset()"),
    "LayerHelper": lambda: (fluid.layer_helper.LayerHelper("fc", name="f"),
                            "LayerHelper(layer_type='fc', kwargs={'name': 'f'})"),
    "Switch": lambda: (fluid.layers.Switch(), "Switch()"),
}


@pytest.fixture(autouse=True)
def programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        yield


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_repr(name):
    made, shown = OBJECTS[name]()
    assert repr(made) == shown


#: Arguments of classes of a module that cannot be made without any.
ARGUMENTS = {"value": 1.0, "regularization_coeff": 0.1, "clip_norm": 1.0, "max": 1.0, "learning_rate": 0.1, "name": "m",
             "momentum": 0.9, "fan_in": 3, "rampup_begin_step": 0}
#: Classes that take an optimizer, an array, or a program.
AROUND_OTHERS = ("ModelAverage", "ExponentialMovingAverage", "LookaheadOptimizer", "RecomputeOptimizer",
                 "PipelineOptimizer", "Optimizer", "NumpyArrayInitializer", "DetectionMAP")


@pytest.mark.parametrize("module", ["initializer", "regularizer", "clip", "optimizer", "metrics"])
def test_every_class_shows_its_name(module):
    seen = 0
    for name in getattr(fluid, module).__all__:
        cls = getattr(getattr(fluid, module), name)
        if not inspect.isclass(cls) or name in AROUND_OTHERS:
            continue
        needed = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
        made = cls(**{argument: ARGUMENTS[argument] for argument in needed})
        assert re.fullmatch(r"%s\(.*\)" % cls.__name__, repr(made)), repr(made)
        seen += 1
    assert seen >= 3


def test_a_strategy_shows_what_was_set():
    strategy = fluid.BuildStrategy()
    strategy.fuse_bn_act_ops = True
    strategy.trainers_endpoints.append("a:1")
    assert repr(strategy) == "BuildStrategy(fuse_bn_act_ops=True, trainers_endpoints=['a:1'])"


def test_a_variable_as_argument_shows_its_name():
    rate = fluid.layers.create_global_var([1], 0.1, "float32", name="rate")
    before = len(fluid.default_main_program().global_block().ops)
    assert repr(fluid.optimizer.SGD(rate)) == "SGDOptimizer(learning_rate=rate)"
    assert len(fluid.default_main_program().global_block().ops) == before


def test_a_long_value_is_cut():
    assert len(repr(fluid.ParamAttr(name="w" * 500))) < 100
