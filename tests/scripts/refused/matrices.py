"""Products of matrices, and fully connected layers."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestMulOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            x2 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.mul, x1, x2)
            x3 = fluid.layers.data(name="x3", shape=[4], dtype="int32")
            x4 = fluid.layers.data(name="x4", shape=[4], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.mul, x3, x4)


class TestMatmulOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.matmul, 12, 10)
            x = fluid.layers.data(name="x", shape=[10, 10], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.matmul, x, x)
            half = fluid.layers.data(name="half", shape=[10, 10], dtype="float16")
            fluid.layers.matmul(half, half)


class TestBmmOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [8, 2, 3], "float32")
            self.assertRaises((TypeError, AttributeError), fluid.layers.bmm, 1, x)


class TestDotOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_class():
                fluid.layers.dot(np.ones([3], "float32"), fluid.data("y", [3], "float32"))

            def test_bool():
                x = fluid.data("b", [3], "bool")
                fluid.layers.dot(x, x)

            self.assertRaises(TypeError, test_class)
            self.assertRaises(TypeError, test_bool)


class TestAddmmOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            tensor = fluid.create_lod_tensor(np.array([[-1, -1], [-1, -1]]), [[2]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.addmm, tensor, tensor, tensor)
            names = [fluid.layers.data(name="x%d" % i, shape=[4], dtype="int32", append_batch_size=False)
                     for i in range(3)]
            self.assertRaises(TypeError, fluid.layers.addmm, *names)


class TestKronOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.kron, x, np.ones([2, 3], "float32"))
            self.assertRaises(TypeError, fluid.layers.kron, fluid.data("y", [2, 3], "uint8"), x)


class TestFCOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            input_data = np.random.random((2, 4)).astype("float32")

            def test_variable():
                fluid.layers.fc(input=input_data, size=1)

            def test_input_list():
                fluid.layers.fc(input=[input_data], size=1)

            def test_type():
                x2 = fluid.layers.data(name="x2", shape=[4], dtype="int32")
                fluid.layers.fc(input=x2, size=1)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_input_list)
            self.assertRaises(TypeError, test_type)
            x3 = fluid.layers.data(name="x3", shape=[4], dtype="float16")
            fluid.layers.fc(input=x3, size=1)


class TestCosSimOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [3, 7], "float32")
            self.assertRaises(TypeError, fluid.layers.cos_sim, np.ones([3, 7]), x)
            self.assertRaises(TypeError, fluid.layers.cos_sim, x, fluid.data("y", [3, 7], "int32"))


class TestBilinearTensorProductOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [3, 7], "float32")
            self.assertRaises((TypeError, AttributeError), fluid.layers.bilinear_tensor_product, x, 3, 5)


if __name__ == "__main__":
    unittest.main()
