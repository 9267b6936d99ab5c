"""Layers that change shapes, join and split."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestReshapeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_x_type():
                x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
                fluid.layers.reshape(x1, shape=[1])

            def test_x_dtype():
                x2 = fluid.layers.data(name="x2", shape=[2, 25], append_batch_size=False, dtype="uint8")
                fluid.layers.reshape(x2, shape=[2, 5, 5])

            x3 = fluid.layers.data(name="x3", shape=[2, 25], append_batch_size=False, dtype="float32")

            def test_shape_type():
                fluid.layers.reshape(x3, shape=1)

            self.assertRaises(TypeError, test_x_type)
            self.assertRaises(TypeError, test_x_dtype)
            self.assertRaises(TypeError, test_shape_type)


class TestTransposeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.layers.data(name="x", shape=[10, 5, 3], dtype="float64")

            def test_x_variable_check():
                fluid.layers.transpose("not_variable", perm=[1, 0, 2])

            def test_x_dtype_check():
                x1 = fluid.layers.data(name="x1", shape=[10, 5, 3], dtype="bool")
                fluid.layers.transpose(x1, perm=[1, 0, 2])

            def test_perm_list_check():
                fluid.layers.transpose(x, perm="[1, 0, 2]")

            self.assertRaises(TypeError, test_x_variable_check)
            self.assertRaises(TypeError, test_x_dtype_check)
            self.assertRaises(TypeError, test_perm_list_check)


class TestSqueezeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.squeeze, np.ones([1, 2]), [0])
            x2 = fluid.data("x2", [1, 2], "bool")
            self.assertRaises(TypeError, fluid.layers.squeeze, x2, [0])
            x3 = fluid.data("x3", [1, 2], "float32")
            self.assertRaises(TypeError, fluid.layers.squeeze, x3, 0.5)


class TestUnsqueezeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.unsqueeze, np.ones([1, 2]), [0])
            x = fluid.data("x", [1, 2], "float32")
            self.assertRaises(TypeError, fluid.layers.unsqueeze, x, axes=2.1)


class TestConcatOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            x2 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.concat, [x1, x2])
            x4 = fluid.layers.data(shape=[4], dtype="uint8", name="x4")
            x5 = fluid.layers.data(shape=[4], dtype="uint8", name="x5")
            self.assertRaises(TypeError, fluid.layers.concat, [x4, x5])
            x6 = fluid.layers.data(shape=[4], dtype="float16", name="x6")
            x7 = fluid.layers.data(shape=[4], dtype="float16", name="x7")
            fluid.layers.concat([x6, x7])

            def test_axis_type():
                fluid.layers.concat([x6, x7], 3.2)

            self.assertRaises(TypeError, test_axis_type)


class TestSplitOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_num():
                fluid.layers.split(input=fluid.layers.data(name="x5", shape=[4, 4], dtype="float32"),
                                   num_or_sections=2.1, dim=3)

            def test_axis_type():
                fluid.layers.split(input=fluid.layers.data(shape=[4], dtype="float16", name="x7"),
                                   num_or_sections=2, dim=3.2)

            self.assertRaises(TypeError, test_num)
            self.assertRaises(TypeError, test_axis_type)


class TestStackOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.stack, [fluid.data("x", [2], "float32"), 3])
            self.assertRaises(TypeError, fluid.layers.unstack, np.ones([2, 3]), 0)


class TestExpandOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            self.assertRaises(TypeError, fluid.layers.expand, x1, [2, 2])
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="uint8")
            self.assertRaises(TypeError, fluid.layers.expand, x2, [2, 2])
            x3 = fluid.layers.data(name="x3", shape=[4], dtype="float32")
            self.assertRaises(TypeError, fluid.layers.expand, x3, 2)


class TestExpandAsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.expand_as, np.ones([1, 3], "float32"), x)
            self.assertRaises(TypeError, fluid.layers.expand_as, x, 3)


class TestFlattenOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.flatten, np.ones([2, 3, 4], "float32"))
            self.assertRaises(TypeError, fluid.layers.flatten, fluid.data("x", [2, 3, 4], "uint8"))


class TestReverseOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.flip, np.ones([2, 3]), [0])
            self.assertRaises(TypeError, fluid.layers.roll, np.ones([2, 3]), 1, 0)


class TestPadOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            input_data = np.random.random((2, 2)).astype("float32")

            def test_variable():
                fluid.layers.pad(x=input_data, paddings=[1, 1, 1, 1])

            def test_dtype():
                fluid.layers.pad(x=fluid.data("x", [2, 2], "bool"), paddings=[1, 1, 1, 1])

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)
            fluid.layers.pad(x=fluid.data(name="data", shape=[4], dtype="float16"), paddings=[0, 1])


if __name__ == "__main__":
    unittest.main()
