"""Recurrent layers."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


def rows(name, width, dtype="float32"):
    return fluid.layers.data(name=name, shape=[width], dtype=dtype, lod_level=1)


class TestDynamicLSTMOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.dynamic_lstm(input=np.random.random((2, 2048)).astype("float32"), size=2048,
                                          use_peepholes=False)

            def test_h_0():
                fluid.layers.dynamic_lstm(rows("x1", 16), 16, h_0=np.ones([2, 4], "float32"),
                                          c_0=fluid.data("c1", [2, 4], "float32"))

            def test_c_0():
                fluid.layers.dynamic_lstm(rows("x2", 16), 16, h_0=fluid.data("h2", [2, 4], "float32"),
                                          c_0=np.ones([2, 4], "float32"))

            def test_dtype():
                fluid.layers.dynamic_lstm(rows("x3", 16, "int32"), 16)

            for test in (test_variable, test_h_0, test_c_0, test_dtype):
                self.assertRaises(TypeError, test)


class TestDynamicGRUOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.dynamic_gru(np.ones([2, 12], "float32"), 4)

            def test_h_0():
                fluid.layers.dynamic_gru(rows("x1", 12), 4, h_0=np.ones([2, 4], "float32"))

            def test_dtype():
                fluid.layers.dynamic_gru(rows("x2", 12, "int32"), 4)

            for test in (test_variable, test_h_0, test_dtype):
                self.assertRaises(TypeError, test)


class TestGRUUnitOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [None, 12], "float32")
            h = fluid.data("h", [None, 4], "float32")
            self.assertRaises(TypeError, fluid.layers.gru_unit, np.ones([2, 12], "float32"), h, 12)
            self.assertRaises(TypeError, fluid.layers.gru_unit, x, np.ones([2, 4], "float32"), 12)
            self.assertRaises(TypeError, fluid.layers.gru_unit, fluid.data("i", [None, 12], "int32"), h, 12)


class TestLstmUnitOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [None, 4], "float32")
            h = fluid.data("h", [None, 4], "float32")
            c = fluid.data("c", [None, 4], "float32")
            array = np.ones([2, 4], "float32")
            self.assertRaises(TypeError, fluid.layers.lstm_unit, array, h, c)
            self.assertRaises(TypeError, fluid.layers.lstm_unit, x, array, c)
            self.assertRaises(TypeError, fluid.layers.lstm_unit, x, h, array)
            self.assertRaises(TypeError, fluid.layers.lstm_unit, fluid.data("i", [None, 4], "int32"), h, c)


class TestDynamicLSTMPOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.dynamic_lstmp, np.ones([2, 16], "float32"), 16, 3)
            self.assertRaises(TypeError, fluid.layers.dynamic_lstmp, rows("x", 16, "int32"), 16, 3)


class TestStackedLSTMOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            h = fluid.data("h", [1, 2, 4], "float32")
            c = fluid.data("c", [1, 2, 4], "float32")
            self.assertRaises(TypeError, fluid.layers.lstm, np.ones([5, 2, 3], "float32"), h, c, 5, 4, 1)
            self.assertRaises(TypeError, fluid.layers.lstm, fluid.data("x", [5, 2, 3], "int32"), h, c, 5, 4, 1)


class TestBeamSearchOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            pre_ids = fluid.data("pre_ids", [None, 1], "int64", lod_level=2)
            pre_scores = fluid.data("pre_scores", [None, 1], "float32", lod_level=2)
            ids = fluid.data("ids", [None, 4], "int64")
            scores = fluid.data("scores", [None, 4], "float32")
            array = np.ones([2, 1], "int64")
            self.assertRaises(TypeError, fluid.layers.beam_search, array, pre_scores, ids, scores, 2, 1)
            self.assertRaises(TypeError, fluid.layers.beam_search, pre_ids, array, ids, scores, 2, 1)
            self.assertRaises(TypeError, fluid.layers.beam_search, pre_ids, pre_scores, array, scores, 2, 1)
            floats = fluid.data("floats", [None, 1], "float32", lod_level=2)
            self.assertRaises(TypeError, fluid.layers.beam_search, floats, pre_scores, ids, scores, 2, 1)


class TestBeamSearchDecodeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            i = fluid.layers.fill_constant([1], "int64", 0)
            ids = fluid.layers.array_write(fluid.data("ids", [None, 1], "int64", lod_level=2), i)
            self.assertRaises(TypeError, fluid.layers.beam_search_decode, np.ones([2, 1], "int64"), ids, 2, 1)
            self.assertRaises(TypeError, fluid.layers.beam_search_decode, ids, np.ones([2, 1], "float32"), 2, 1)


class TestRnnCellOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            cell = fluid.layers.GRUCell(4)
            x = fluid.data("x", [None, 3], "float32")

            def test_input():
                cell(np.ones([2, 3], "float32"), fluid.data("h", [None, 4], "float32"))

            def test_states():
                cell(x, np.ones([2, 4], "float32"))

            self.assertRaises((TypeError, AttributeError), test_input)
            self.assertRaises((TypeError, AttributeError), test_states)


if __name__ == "__main__":
    unittest.main()
