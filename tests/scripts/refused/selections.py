"""Gather, scatter, slices, largest elements."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestGatherOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [5, 4], "float32")
            self.assertRaises(Exception, fluid.layers.gather, x, np.ones([4], "int32"))


class TestGatherNdOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [5, 4], "float32")
            array = np.ones([2, 2], "int32")

            def test_index_type():
                fluid.layers.gather_nd(x, array)

            self.assertRaises(Exception, test_index_type)


class TestScatterNdAddOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_dtype():
                ref = fluid.layers.data(name="ref", shape=[10, 9], dtype="float32", append_batch_size=False)
                index = fluid.layers.data(name="index", shape=[3, 2], dtype="int32", append_batch_size=False)
                updates = fluid.layers.data(name="updates", shape=[3], dtype="float64", append_batch_size=False)
                fluid.layers.scatter_nd_add(ref, index, updates)

            self.assertRaises(ValueError, test_dtype)


class TestIndexSelectOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [4, 7], "float32")
            index = fluid.data("index", [2], "int32")
            self.assertRaises(TypeError, fluid.layers.index_select, np.ones([4, 7]), index)
            self.assertRaises(TypeError, fluid.layers.index_select, x, np.ones([2], "int32"))
            self.assertRaises(TypeError, fluid.layers.index_select, x, fluid.data("floats", [2], "float32"))


class TestIndexSampleOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [4, 7], "float32")
            self.assertRaises(TypeError, fluid.layers.index_sample, x, fluid.data("index", [4, 2], "float32"))
            self.assertRaises(TypeError, fluid.layers.index_sample, np.ones([4, 7]), x)


class TestSliceOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [4, 7], "float32")
            self.assertRaises(TypeError, fluid.layers.slice, x, 0, [0], [1])
            self.assertRaises((TypeError, ValueError), fluid.layers.slice, x, [0], 0, [1])
            self.assertRaises((TypeError, ValueError), fluid.layers.slice, x, [0], [0], 1)


class TestWhereOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_type():
                fluid.layers.where([10])

            self.assertRaises(TypeError, test_type)


class TestNonZeroOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises((TypeError, AttributeError), fluid.layers.nonzero, [10])


class TestMultiplexOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.data("x1", [None, 2], "int64")
            x2 = fluid.data("x2", [None, 2], "int64")
            index = fluid.data("index", [None, 1], "int32")

            def test_list():
                fluid.layers.multiplex(inputs=(x1, x2), index=3)

            def test_len():
                fluid.layers.multiplex(inputs=[x1], index=index)

            def test_type():
                y1 = fluid.data("y1", [None, 2], "int16")
                y2 = fluid.data("y2", [None, 2], "int16")
                fluid.layers.multiplex(inputs=[y1, y2], index=index)

            def test_type2():
                index2 = fluid.data("index2", [None, 1], "int16")
                fluid.layers.multiplex(inputs=[x1, x2], index=index2)

            self.assertRaises(TypeError, test_list)
            self.assertRaises(ValueError, test_len)
            self.assertRaises(TypeError, test_type)
            self.assertRaises(TypeError, test_type2)


class TestArgsortOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.argsort, np.ones([2, 3], "float32"))
            self.assertRaises(TypeError, fluid.layers.argsort, fluid.data("x", [2, 3], "bool"))


class TestArgMaxMinOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            for layer in (fluid.layers.argmax, fluid.layers.argmin):
                self.assertRaises(TypeError, layer, np.ones([2, 3], "float32"))
                self.assertRaises(TypeError, layer, fluid.data(layer.__name__, [2, 3], "float16"))


class TestUniqueOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_type():
                fluid.layers.unique([10])

            def test_dtype():
                data = fluid.data(shape=[10], dtype="float16", name="input")
                fluid.layers.unique(data)

            self.assertRaises(TypeError, test_type)
            self.assertRaises(TypeError, test_dtype)


class TestUniqueWithCountsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.unique_with_counts, [10])


class TestShardIndexOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            ids = fluid.data("ids", [3, 1], "int64")
            self.assertRaises(ValueError, fluid.layers.shard_index, ids, 20, 2, 3)
            self.assertRaises((TypeError, AttributeError), fluid.layers.shard_index, 3, 20, 2, 0)


if __name__ == "__main__":
    unittest.main()
