"""Sums, means and other reductions."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestReduceSumOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.reduce_sum, x1)
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.reduce_sum, x2)


class TestReduceMeanOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.reduce_mean, x1)
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.reduce_mean, x2)


class TestReduceBoolOpError(unittest.TestCase):
    def test_errors(self):
        for layer in (fluid.layers.reduce_all, fluid.layers.reduce_any):
            with program_guard(Program(), Program()):
                self.assertRaises(TypeError, layer, 12)
                floats = fluid.layers.data(name="floats", shape=[12, 10], dtype="float32")
                self.assertRaises(TypeError, layer, floats)
                integers = fluid.layers.data(name="integers", shape=[12, 10], dtype="int32")
                self.assertRaises(TypeError, layer, integers)
                layer(fluid.layers.data(name="flags", shape=[12, 10], dtype="bool"))


class TestMeanOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.mean, 12)
            input2 = fluid.layers.data(name="input2", shape=[12, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.mean, input2)
            input3 = fluid.layers.data(name="input3", shape=[4], dtype="float16")
            fluid.layers.softmax(input3)


class TestSumOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_empty_list_of_numbers():
                fluid.layers.sum([1, 2])

            def test_number():
                fluid.layers.sum(3)

            self.assertRaises(TypeError, test_empty_list_of_numbers)
            self.assertRaises(TypeError, test_number)


class TestSumsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.sums, [x, np.ones([2, 3])])
            self.assertRaises(TypeError, fluid.layers.sums, 3)
            self.assertRaises(TypeError, fluid.layers.sums, [fluid.data("y", [2, 3], "int8")])


class TestSoftmaxOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.softmax, x1)
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.softmax, x2)
            x3 = fluid.layers.data(name="input16", shape=[4], dtype="float16")
            fluid.layers.softmax(x3)


class TestLogSoftmaxOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.log_softmax, np.ones([2, 3], "float32"))
            self.assertRaises(TypeError, fluid.layers.log_softmax, fluid.data("x", [2, 3], "int32"))


class TestLogSumExpOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.logsumexp, 1)
            x = fluid.data(name="x", shape=[2, 3], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.logsumexp, x)


class TestIsFiniteOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.isfinite, np.ones([2]))
            self.assertRaises(TypeError, fluid.layers.isfinite, fluid.data("x", [2], "int8"))


if __name__ == "__main__":
    unittest.main()
