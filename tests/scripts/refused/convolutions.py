"""Convolutions and pooling."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestConv2DOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
                fluid.layers.conv2d(x1, 1, 1)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="int32")
                fluid.layers.conv2d(x2, 1, 1)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestConv2DTransposeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.conv2d_transpose(np.ones([2, 3, 8, 8], "float32"), 2, filter_size=3)

            def test_dtype():
                x = fluid.data("x", [2, 3, 8, 8], "int32")
                fluid.layers.conv2d_transpose(x, 2, filter_size=3)

            self.assertRaises((TypeError, AttributeError), test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestPool2DOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3, 8, 8], "float32")
            self.assertRaises(ValueError, fluid.layers.pool2d, x, 2, "median")


class TestAdaptivePoolOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            im = fluid.data("im", [2, 3, 8, 8], "float32")
            vol = fluid.data("vol", [2, 3, 8, 8, 8], "float32")
            self.assertRaises(ValueError, fluid.layers.adaptive_pool2d, im, 2, "median")
            self.assertRaises(ValueError, fluid.layers.adaptive_pool3d, vol, 2, "median")
            self.assertRaises(ValueError, fluid.layers.adaptive_pool2d, im, 2, "avg", require_index=True)


class TestDropoutOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
                fluid.layers.dropout(x1, dropout_prob=0.5)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="int32")
                fluid.layers.dropout(x2, dropout_prob=0.5)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestRowConvOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises((TypeError, AttributeError), fluid.layers.row_conv, np.ones([4, 3]), 2)
            self.assertRaises(TypeError, fluid.layers.row_conv,
                              fluid.layers.data("x", [3], dtype="int32", lod_level=1), 2)


class TestSpaceToDepthOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.space_to_depth, fluid.data("x", [2, 4, 4, 4], "bool"), 2)
            self.assertRaises(TypeError, fluid.layers.pixel_shuffle, np.ones([2, 4, 4, 4], "float32"), 2)
            self.assertRaises(TypeError, fluid.layers.temporal_shift, np.ones([2, 4, 4, 4], "float32"), 2, 0.2)


if __name__ == "__main__":
    unittest.main()
