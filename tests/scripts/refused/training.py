"""Optimizers, initial values, files, feeders and executors."""
import os
import shutil
import tempfile
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


def net():
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    return x, fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


class TestParamAttrError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            for wrong in (dict(name=3), dict(trainable=1), dict(trainable="no"), dict(learning_rate="0.1"),
                          dict(do_model_average=None)):
                self.assertRaises(TypeError, lambda: fluid.layers.create_parameter(
                    [2, 3], "float32", attr=fluid.ParamAttr(**wrong)))

    def test_initial_value_is_a_function(self):
        with program_guard(Program(), Program()):
            attr = fluid.ParamAttr(initializer=lambda variable, block: None)
            fluid.layers.create_parameter([2, 3], "float32", attr=attr)


class TestOptimizerError(unittest.TestCase):
    def test_rate(self):
        with program_guard(Program(), Program()):
            for wrong in (1, "0.1", [0.1]):
                self.assertRaises(TypeError, fluid.optimizer.SGD, wrong)
                self.assertRaises(TypeError, fluid.optimizer.Adam, wrong)

    def test_clip(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.optimizer.SGD, 0.1, grad_clip=5.0)
            self.assertRaises(TypeError, fluid.optimizer.Momentum, 0.1, 0.9, grad_clip="norm")

    def test_loss(self):
        with program_guard(Program(), Program()):
            net()
            for wrong in (None, 3, np.ones([1], "float32")):
                self.assertRaises((TypeError, AssertionError), fluid.optimizer.SGD(0.1).minimize, wrong)


class TestFilesError(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_errors(self):
        with program_guard(Program(), Program()), fluid.scope_guard(fluid.core.Scope()):
            x, loss = net()
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            main = fluid.default_main_program()
            for function in (fluid.io.save_params, fluid.io.save_persistables):
                self.assertRaises((TypeError, AttributeError), function, exe, self.folder, 3)
                self.assertRaises(AttributeError, function, "executor", self.folder, main)
            self.assertRaises(TypeError, fluid.io.save_inference_model, self.folder, 3, [loss], exe)
            self.assertRaises((TypeError, AttributeError), fluid.save, "program", os.path.join(self.folder, "model"))
            fluid.save(main, os.path.join(self.folder, "model"))
            state = fluid.io.load_program_state(os.path.join(self.folder, "model"))
            self.assertRaises(TypeError, fluid.io.set_program_state, main, 3)
            fluid.io.set_program_state(main, state)


class TestFeedError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x, _ = net()
            self.assertRaises(TypeError, fluid.DataFeeder, [3], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.create_lod_tensor, np.ones([3, 1]), [[1, 2]], "cpu")
            self.assertRaises(TypeError, fluid.create_lod_tensor, 3, [[1, 2]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.data, 3, [2])
            self.assertRaises(TypeError, fluid.data, "z", 2)
            self.assertRaises(TypeError, fluid.data, "z", [2], 3)


class TestExecutorError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()), fluid.scope_guard(fluid.core.Scope()):
            _, loss = net()
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            feed = {"x": np.ones([4, 3], "float32"), "y": np.ones([4, 1], "float32")}
            for wrong in (3, "main", [1]):
                self.assertRaises(TypeError, exe.run, wrong, feed, [loss])
            self.assertRaises(TypeError, exe.run, None, 3, [loss])
            self.assertRaises(TypeError, exe.run, None, feed, [3])
            exe.run(None, feed, [loss])


class TestNamesError(unittest.TestCase):
    def test_errors(self):
        self.assertRaises(TypeError, fluid.unique_name.generate, 3)
        self.assertRaises(TypeError, fluid.cpu_places, "2")
        self.assertRaises(TypeError, fluid.set_flags, 3)
        self.assertRaises(TypeError, fluid.get_flags, 3)


if __name__ == "__main__":
    unittest.main()
