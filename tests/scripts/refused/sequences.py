"""Layers of sequences."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


def rows(name, dtype="float32", width=4):
    return fluid.layers.data(name=name, shape=[width], dtype=dtype, lod_level=1)


class TestSequenceConcatOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_input_list():
                fluid.layers.sequence_concat(input=rows("x"))

            def test_variable():
                fluid.layers.sequence_concat(input=[np.ones([2, 4], "float32")])

            def test_dtype():
                fluid.layers.sequence_concat([rows("x1", "int32"), rows("x2", "int32")])

            self.assertRaises(TypeError, test_input_list)
            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSequenceConvOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.sequence_conv(np.random.random((2, 4)).astype("float32"), 2)

            def test_dtype():
                fluid.layers.sequence_conv(rows("x", "int64"), 2)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSequencePoolOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.sequence_pool(np.random.random((2, 4)).astype("float32"), "max")

            def test_dtype():
                fluid.layers.sequence_pool(rows("x", "int32"), "max")

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSequenceStepsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            for layer in (fluid.layers.sequence_first_step, fluid.layers.sequence_last_step):
                self.assertRaises(TypeError, layer, np.random.random((2, 4)).astype("float32"))
                self.assertRaises(TypeError, layer, rows(layer.__name__, "int32"))


class TestSequenceSoftmaxOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.sequence_softmax, np.ones([4, 1], "float32"))
            self.assertRaises(TypeError, fluid.layers.sequence_softmax, rows("x", "int32", 1))


class TestSequenceExpandOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.sequence_expand, np.ones([4, 1], "float32"), rows("y"))
            self.assertRaises(TypeError, fluid.layers.sequence_expand_as, np.ones([4, 1], "float32"), rows("z"))


class TestSequencePadOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_x_variable():
                fluid.layers.sequence_pad(np.ones([2, 4], "float32"),
                                          fluid.layers.assign(np.array([0.0], "float32")))

            def test_pad_value_variable():
                fluid.layers.sequence_pad(rows("x1"), pad_value=np.array([0.0], "float32"))

            def test_dtype():
                fluid.layers.sequence_pad(rows("x2", "int16"), fluid.layers.assign(np.array([0.0], "float32")))

            self.assertRaises(TypeError, test_x_variable)
            self.assertRaises(TypeError, test_pad_value_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSequenceUnpadOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            length = fluid.data("length", [10], "int64")

            def test_x_variable():
                fluid.layers.sequence_unpad(np.ones([10, 5], "float64"), length)

            def test_length_variable():
                fluid.layers.sequence_unpad(fluid.data("x1", [10, 5], "float64"), np.ones([10], "int64"))

            def test_x_dtype():
                fluid.layers.sequence_unpad(fluid.data("x2", [10, 5], "float16"), length)

            def test_length_dtype():
                fluid.layers.sequence_unpad(fluid.data("x3", [10, 5], "float64"),
                                            fluid.data("length3", [10], "int32"))

            self.assertRaises(TypeError, test_x_variable)
            self.assertRaises(TypeError, test_length_variable)
            self.assertRaises(TypeError, test_x_dtype)
            self.assertRaises(TypeError, test_length_dtype)


class TestSequenceSliceOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            offset = fluid.layers.assign(np.array([[0, 1]], "int32"))
            length = fluid.layers.assign(np.array([[1, 2]], "int32"))
            self.assertRaises(TypeError, fluid.layers.sequence_slice, np.ones([4, 4], "float32"), offset, length)
            self.assertRaises(TypeError, fluid.layers.sequence_slice, rows("x"), np.array([[0, 1]], "int32"), length)


class TestSequenceEnumerateOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.sequence_enumerate, np.ones([4, 1], "int32"), 2)
            self.assertRaises(TypeError, fluid.layers.sequence_enumerate, rows("x", "float32", 1), 2)


class TestSequenceReshapeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.sequence_reshape, np.ones([4, 4], "float32"), 2)
            self.assertRaises(TypeError, fluid.layers.sequence_reshape, rows("x", "uint8"), 2)


class TestSequenceReverseOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.sequence_reverse(x=np.random.random((2, 4)).astype("float32"))

            def test_dtype():
                fluid.layers.sequence_reverse(x=rows("x2", "float16"))

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSequenceScatterOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [3, 6], "float32")
            index, updates = rows("index", "int32", 1), rows("updates", "float32", 1)
            self.assertRaises(TypeError, fluid.layers.sequence_scatter, np.ones([3, 6], "float32"), index, updates)
            self.assertRaises(TypeError, fluid.layers.sequence_scatter, x, np.ones([3, 1], "int32"), updates)
            self.assertRaises(TypeError, fluid.layers.sequence_scatter, x, rows("bad", "float32", 1), updates)


class TestSequenceMaskOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises((TypeError, AttributeError), fluid.layers.sequence_mask, np.ones([3, 1], "int64"), 4)


class TestLodResetOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.lod_reset, np.array([0]), target_lod=[0, 1])
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="int8")
            self.assertRaises(TypeError, fluid.layers.lod_reset, x2, target_lod=[0, 1])


if __name__ == "__main__":
    unittest.main()
