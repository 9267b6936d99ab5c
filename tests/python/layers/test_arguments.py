"""Calls with a wrong, missing or surplus argument: each is an error of the package that names near arguments."""
import importlib
import inspect
import re

import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import optimizer

CALLS = {
    "a name of another framework": (lambda: optimizer.Adam(lr=0.1),
                                    "AdamOptimizer: there is no argument 'lr'; did you mean learning_rate?"),
    "a typo": (lambda: optimizer.Momentum(0.1, momentun=0.9),
               "MomentumOptimizer: there is no argument 'momentun'; did you mean momentum?"),
    "an inherited constructor": (lambda: optimizer.SGD(), "SGDOptimizer: learning_rate must be given"),
    "two are missing": (lambda: fluid.layers.fc(), "fc: input and size must be given"),
    "a layer": (lambda: fluid.layers.fc(1, 2, activation="relu"),
                "fc: there is no argument 'activation'; did you mean act?"),
    "too many": (lambda: fluid.layers.relu(1, None, 3),
                 "relu: there must be at most 2 positional arguments, got 3"),
    "twice": (lambda: fluid.ParamAttr("w", name="w"),
              "ParamAttr: name must be given once, got it by position and by name"),
    "Executor": (lambda: fluid.Executor(device=None), "Executor: there is no argument 'device'; did you mean place?"),
    "Executor.run": (lambda: fluid.Executor().run(feeds={}),
                     "Executor.run: there is no argument 'feeds'; did you mean feed?"),
    "a method": (lambda: fluid.Program().clone(for_tests=True),
                 "Program.clone: there is no argument 'for_tests'; did you mean for_test?"),
    "a reader": (lambda: fluid.io.shuffle(list, 5, seed=1),
                 "shuffle: there is no argument 'seed'\n  arguments: reader, buf_size"),
    "a data set": (lambda: fluid.DatasetFactory().create_dataset(data_feed_class="QueueDataset"),
                   "DatasetFactory.create_dataset: there is no argument 'data_feed_class'; did you mean "
                   "datafeed_class?"),
    "without arguments": (lambda: fluid.BuildStrategy(fuse=True),
                          "BuildStrategy: there is no argument 'fuse'; it has no arguments"),
    "a context manager": (lambda: fluid.program_guard(), "program_guard: main_program must be given"),
    "a predictor": (lambda: anabranch.Predictor(), "Predictor: dirname must be given"),
    "checkpoints": (lambda: anabranch.Checkpoints("c", nothing=1), "Checkpoints: there is no argument 'nothing'"),
    "a loop": (lambda: anabranch.Loop(1, program=2), "Loop: there is no argument 'program'"),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_error_names_the_argument_and_a_near_one(call):
    function, text = CALLS[call]
    with pytest.raises(TypeError) as found:
        function()
    assert isinstance(found.value, fluid.core.EnforceNotMet), found.value
    assert found.value.message.startswith(text), found.value.message


def test_an_error_from_inside_a_function_stays_as_it_is():
    def fails(x):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        list(fluid.io.map_readers(fails, lambda: [1])())
    with pytest.raises(TypeError, match="'int' object is not callable"):
        list(fluid.io.shuffle(3, 1)())


def test_a_subclass_gets_the_error_of_the_class_that_it_calls():
    class Mine(optimizer.SGD):
        def __init__(self):
            super().__init__(lr=0.1)

    with pytest.raises(fluid.core.EnforceNotMet, match="there is no argument 'lr'; did you mean learning_rate"):
        Mine()


#: Called in every step without arguments, and values of the engine itself, whose errors nanobind words.
NOT_WRAPPED = {"Callback", "Variable", "DecodeHelper", "Decoder", "RNNCell",        # bases; made by other calls
               "global_scope", "default_main_program", "default_startup_program", "in_dygraph_mode",
               "is_compiled_with_cuda", "disable_dygraph", "disable_imperative", "reset_profiler", "CPUPlace",
               "LoDTensor", "LoDTensorArray", "Tensor", "Scope", "_Scope"}
MODULES = ("fluid", *("fluid." + name for name in (
    "average clip contrib evaluator initializer io layers metrics nets optimizer profiler reader regularizer "
    "transpiler").split()), "callbacks", "checkpoints", "incremental", "loops", "predictor", "reader", "word2vec")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_callable_refuses_an_unknown_argument(module):
    found = importlib.import_module("anabranch." + module)
    raw = []
    for name in sorted(set(found.__all__) - NOT_WRAPPED):
        value = getattr(found, name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        takes_any = any(p.kind == p.VAR_KEYWORD for p in inspect.signature(value).parameters.values())
        try:
            value(no_such_argument=1)
        except fluid.core.EnforceNotMet as error:
            named = re.search("there is no argument 'no_such_argument'", error.message)
            if not named and not takes_any:
                raw.append((name, error.message))
        except Exception as error:
            raw.append((name, repr(error)))
        else:
            raw.append((name, "no error"))
    assert not raw, raw


def test_signatures_hide_what_collects_unknown_arguments():
    for method in (fluid.Executor.run, anabranch.Predictor.run):
        assert "unknown" not in inspect.signature(method).parameters


def test_warnings_of_wrapped_functions_name_the_callers_line():
    with pytest.warns(UserWarning, match="set_gradient_clip is deprecated") as found:
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0), [], fluid.Program())
    assert found[0].filename == __file__
