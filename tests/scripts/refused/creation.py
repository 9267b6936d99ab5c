"""Layers that make tensors: dtypes as arguments."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestFillConstantOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.layers.data(name="x1", shape=[1], dtype="int16")
            self.assertRaises(ValueError, fluid.layers.fill_constant, shape=[1], value=5, dtype="uint4")
            self.assertRaises(TypeError, fluid.layers.fill_constant, shape=[1], value=5, dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.fill_constant, shape=[1], value=5, dtype="int16", out=x1)
            self.assertRaises(TypeError, fluid.layers.fill_constant, shape=[1.1], value=5, dtype="float32",
                              out=x1)

            def test_shape_type():
                fluid.layers.fill_constant(shape=1, dtype="float32", value=1)

            def test_shape_tensor_dtype():
                shape = fluid.data(name="shape_tensor", shape=[2], dtype="float32")
                fluid.layers.fill_constant(shape=shape, dtype="float32", value=1)

            def test_shape_tensor_list_dtype():
                shape = fluid.data(name="shape_tensor_list", shape=[1], dtype="bool")
                fluid.layers.fill_constant(shape=[shape, 2], dtype="float32", value=1)

            self.assertRaises(TypeError, test_shape_type)
            self.assertRaises(TypeError, test_shape_tensor_dtype)
            self.assertRaises(TypeError, test_shape_tensor_list_dtype)


class TestZerosOnesOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            for layer in (fluid.layers.zeros, fluid.layers.ones):
                self.assertRaises(TypeError, layer, shape=10, dtype="int64")
                self.assertRaises(TypeError, layer, shape=[10], dtype="int8")


class TestZerosLikeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.zeros_like, fluid.data("y", [2, 3], "int8"))
            self.assertRaises(TypeError, fluid.layers.zeros_like, np.ones([2, 3]))
            self.assertRaises(TypeError, fluid.layers.ones_like, fluid.data("z", [2, 3], "uint8"))
            self.assertRaises(TypeError, fluid.layers.zeros_like, x, fluid.data("w", [2, 3], "int8"))


class TestEyeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.eye, -1)
            self.assertRaises(TypeError, fluid.layers.eye, 10, num_columns=1.2)
            self.assertRaises(TypeError, fluid.layers.eye, 10, batch_shape=2)
            self.assertRaises(TypeError, fluid.layers.eye, 10, batch_shape=[-1])


class TestLinspaceOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_dtype():
                fluid.layers.linspace(0, 10, 1, dtype="int8")

            def test_start_type():
                fluid.layers.linspace([0], 10, 1, dtype="float32")

            def test_end_type():
                fluid.layers.linspace(0, [10], 1, dtype="float32")

            def test_num_type():
                fluid.layers.linspace(0, 10, [0], dtype="float32")

            self.assertRaises(TypeError, test_dtype)
            self.assertRaises(TypeError, test_start_type)
            self.assertRaises(TypeError, test_end_type)
            self.assertRaises(TypeError, test_num_type)


class TestRangeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.range, 0, 10, 2, "int8")
            self.assertRaises(TypeError, fluid.layers.range, 0, 10, 2, "bool")


class TestDiagOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_diag_type():
                fluid.layers.diag(diagonal=[10])

            def test_dtype():
                fluid.layers.diag(fluid.data("x", [3], "bool"))

            self.assertRaises(TypeError, test_diag_type)
            self.assertRaises(TypeError, test_dtype)


class TestUniformRandomOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                x1 = fluid.create_lod_tensor(np.zeros((4, 784)), [[1, 1, 1, 1]], fluid.CPUPlace())
                fluid.layers.uniform_random(x1)

            def test_variable2():
                fluid.layers.uniform_random(np.zeros((4, 784)))

            def test_dtype():
                fluid.layers.uniform_random([4, 784], "int32")

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_variable2)
            self.assertRaises(TypeError, test_dtype)


class TestGaussianRandomOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.gaussian_random, np.zeros((4, 784)))


class TestRandintOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.randint, 5, shape=np.array([2]))
            self.assertRaises(TypeError, fluid.layers.randint, 5, dtype="float32")
            self.assertRaises(ValueError, fluid.layers.randint, 5, 5)
            self.assertRaises(ValueError, fluid.layers.randint, -5)


class TestRandpermOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(ValueError, fluid.layers.randperm, -3)
            self.assertRaises(TypeError, fluid.layers.randperm, 10, dtype="int8")


class TestCastOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.cast, x1, "int32")
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="int16")
            self.assertRaises(TypeError, fluid.layers.cast, x2, "int32")

            def test_dtype_type():
                x4 = fluid.layers.data(name="x4", shape=[4], dtype="int32")
                fluid.layers.cast(x=x4, dtype="int16")

            self.assertRaises(TypeError, test_dtype_type)


class TestAssignOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.assign, x1)
            x2 = np.array([[2.5, 2.5]], dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.assign, x2)


class TestFullOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.full, shape=[1], fill_value=5, dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.full, shape=1, fill_value=5, dtype="float32")
            self.assertRaises(TypeError, fluid.layers.full_like, np.ones([2]), 5)


class TestCreateOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.create_parameter, 12, "float32")
            self.assertRaises(TypeError, fluid.layers.create_global_var, 12, 1.0, "float32")


if __name__ == "__main__":
    unittest.main()
