"""Normalizations."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestBatchNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.batch_norm, x1)
            x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.batch_norm, x2)


class TestInstanceNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.instance_norm, x1)
            x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.instance_norm, x2)


class TestGroupNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_x_dtype():
                x2 = fluid.layers.data(name="x2", shape=[2, 100, 3, 5], dtype="int32")
                fluid.layers.group_norm(x2, 2)

            self.assertRaises(TypeError, test_x_dtype)


class TestLayerNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_class():
                fluid.layers.layer_norm(np.ones([2, 3], "float32"))

            def test_dtype():
                fluid.layers.layer_norm(fluid.data("x", [2, 3], "int32"))

            self.assertRaises(TypeError, test_class)
            self.assertRaises(TypeError, test_dtype)


class TestL2NormalizeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises((TypeError, AttributeError), fluid.layers.l2_normalize, np.ones([2, 3]), 1)


class TestLRNOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 4, 5, 5], "int32")
            self.assertRaises(TypeError, fluid.layers.lrn, x)
            self.assertRaises(TypeError, fluid.layers.lrn, np.ones([2, 4, 5, 5], "float32"))


class TestSpectralNormOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_weight_type():
                fluid.layers.spectral_norm(np.random.random((2, 4)).astype("float32"), dim=1, power_iters=2)

            def test_weight_dtype():
                w = fluid.data("w", [2, 4], "int32")
                fluid.layers.spectral_norm(w, dim=1, power_iters=2)

            self.assertRaises(TypeError, test_weight_type)
            self.assertRaises(TypeError, test_weight_dtype)


class TestAffineChannelOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            scale = fluid.data("scale", [3], "float32")
            bias = fluid.data("bias", [3], "float32")

            def test_x_type():
                fluid.layers.affine_channel(np.ones([2, 3, 4, 4], "float32"), scale, bias)

            def test_x_dtype():
                x = fluid.layers.data(name="x", shape=[3, 4, 4], dtype="int32")
                fluid.layers.affine_channel(x, scale, bias)

            def test_scale_type():
                x = fluid.layers.data(name="x2", shape=[3, 4, 4], dtype="float32")
                fluid.layers.affine_channel(x, 1, bias)

            self.assertRaises(TypeError, test_x_type)
            self.assertRaises(TypeError, test_x_dtype)
            self.assertRaises(TypeError, test_scale_type)


if __name__ == "__main__":
    unittest.main()
