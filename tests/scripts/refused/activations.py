"""Activations refuse arrays, LoDTensors and integers."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestActivationOpError(unittest.TestCase):
    names = ["sigmoid", "tanh", "logsigmoid", "tanh_shrink", "softplus", "softsign", "relu"]

    def test_errors(self):
        for name in self.names:
            layer = getattr(fluid.layers, name)
            with program_guard(Program(), Program()):
                self.assertRaises(TypeError, layer, 1)
                self.assertRaises(TypeError, layer, np.ones([3, 4], "float32"))
                integers = fluid.data(name="integers", shape=[12, 10], dtype="int32")
                self.assertRaises(TypeError, layer, integers)
                half = fluid.data(name="half", shape=[12, 10], dtype="float16")
                layer(half)


class TestRelu6OpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program()):
            self.assertRaises(TypeError, fluid.layers.relu6, 1)
            x_int32 = fluid.data(name="x_int32", shape=[12, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.relu6, x_int32)
            x_fp16 = fluid.data(name="x_fp16", shape=[12, 10], dtype="float16")
            fluid.layers.relu6(x_fp16)


class TestBReluOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program()):
            self.assertRaises(TypeError, fluid.layers.brelu, 1)
            x_int32 = fluid.data(name="x_int32", shape=[12, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.brelu, x_int32)


class TestELUOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.elu, x1)
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.elu, x2)


class TestSeluOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program()):
            self.assertRaises(TypeError, fluid.layers.selu, 1)
            x_int32 = fluid.data(name="x_int32", shape=[12, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.selu, x_int32)


class TestHardOpsError(unittest.TestCase):
    def test_errors(self):
        for layer in (fluid.layers.hard_sigmoid, fluid.layers.hard_swish, fluid.layers.swish, fluid.layers.soft_relu,
                      fluid.layers.leaky_relu, fluid.layers.thresholded_relu, fluid.layers.hard_shrink,
                      fluid.layers.stanh):
            with program_guard(Program()):
                self.assertRaises(TypeError, layer, 1)
                x = fluid.data(name="x", shape=[12, 10], dtype="int32")
                self.assertRaises(TypeError, layer, x)


class TestPReluOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program()):
            self.assertRaises(TypeError, fluid.layers.prelu, 0.1, "all")
            x_int32 = fluid.data(name="x_int32", shape=[12, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.prelu, x_int32, "all")
            x_fp16 = fluid.data(name="x_fp16", shape=[12, 10], dtype="float16")
            self.assertRaises(TypeError, fluid.layers.prelu, x_fp16, "all")


class TestMaxoutOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program()):
            def test_class():
                fluid.layers.maxout(np.ones([2, 4, 3, 3], "float32"), 2)

            def test_dtype():
                x = fluid.data("x", [2, 4, 3, 3], "int32")
                fluid.layers.maxout(x, 2)

            self.assertRaises(TypeError, test_class)
            self.assertRaises(TypeError, test_dtype)


if __name__ == "__main__":
    unittest.main()
