"""Functions of one tensor: which dtypes they take."""
import unittest

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.core as core
from paddle.fluid import Program, program_guard


class TestUnaryOpError(unittest.TestCase):
    def test_wrong_class(self):
        for name in ("abs", "ceil", "floor", "cos", "sin", "acos", "asin", "atan", "round", "reciprocal", "square",
                     "rsqrt", "log", "log1p"):
            with program_guard(Program(), Program()):
                self.assertRaises(TypeError, getattr(fluid.layers, name), np.random.random([2, 3]))
                self.assertRaises(TypeError, getattr(fluid.layers, name), 2.0)

    def test_integers(self):
        for name in ("cos", "sin", "acos", "asin", "atan", "ceil", "floor", "round", "reciprocal", "rsqrt", "log",
                     "log1p"):
            with program_guard(Program(), Program()):
                x = fluid.layers.data(name="x", shape=[3, 4], dtype="int64")
                self.assertRaises(TypeError, getattr(fluid.layers, name), x)


class TestPowOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            in1 = np.random.uniform(1, 2, [11, 17]).astype("float32")
            in2 = fluid.data(name="in2", shape=[11, 17], dtype="int8")
            self.assertRaises(TypeError, fluid.layers.pow, x=in1, factor=2.0)
            self.assertRaises(TypeError, fluid.layers.pow, x=in2, factor=2.0)


class TestScaleOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_type():
                fluid.layers.scale([10], 2.0)

            self.assertRaises(TypeError, test_type)


class TestClipOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            input_data = np.random.random((2, 4)).astype("float32")

            def test_variable():
                fluid.layers.clip(x=input_data, min=-1.0, max=1.0)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[1], dtype="int32")
                fluid.layers.clip(x=x2, min=-1.0, max=1.0)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestClipByNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.clip_by_norm(x=np.zeros([2, 4], "float32"), max_norm=1.0)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[1], dtype="int32")
                fluid.layers.clip_by_norm(x=x2, max_norm=1.0)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSignOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.sign, 12)
            input2 = fluid.layers.data(name="input2", shape=[12, 10], dtype="int32")
            input3 = fluid.layers.data(name="input3", shape=[12, 10], dtype="int64")
            self.assertRaises(TypeError, fluid.layers.sign, input2)
            self.assertRaises(TypeError, fluid.layers.sign, input3)
            input4 = fluid.layers.data(name="input4", shape=[4], dtype="float16")
            fluid.layers.sign(input4)


class TestErfGeluOpError(unittest.TestCase):
    def test_errors(self):
        for layer in (fluid.layers.erf, fluid.layers.gelu):
            with program_guard(Program(), Program()):
                x = fluid.layers.data(name="x", shape=[3], dtype="float32")
                layer(x)
        self.assertIsInstance(core.op_support_gpu("relu"), bool)


class TestIncrementOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.increment, np.array([1.0], "float32"))
            x = fluid.layers.data(name="x", shape=[1], dtype="uint8", append_batch_size=False)
            self.assertRaises(TypeError, fluid.layers.increment, x)


if __name__ == "__main__":
    unittest.main()
