"""Losses."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestCrossEntropyOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
                lab1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
                fluid.layers.cross_entropy(x1, lab1)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="int32")
                lab2 = fluid.layers.data(name="lab2", shape=[3, 4, 5, 6], dtype="int32")
                fluid.layers.cross_entropy(x2, lab2)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSoftmaxWithCrossEntropyOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [2, 1], "int64")
            self.assertRaises((TypeError, AttributeError), fluid.layers.softmax_with_cross_entropy,
                              np.ones([2, 3], "float32"), label)


class TestSigmoidCrossEntropyOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                tensor = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
                fluid.layers.sigmoid_cross_entropy_with_logits(tensor, tensor)

            def test_dtype():
                x2 = fluid.layers.data(name="x2", shape=[3, 4], dtype="int32")
                lab2 = fluid.layers.data(name="lab2", shape=[3, 4], dtype="int32")
                fluid.layers.sigmoid_cross_entropy_with_logits(x2, lab2)

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_dtype)


class TestSquareErrorOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_input_type():
                label = fluid.data("label1", [2, 3], "float32")
                fluid.layers.square_error_cost(np.ones([2, 3], "float32"), label)

            def test_label_type():
                x = fluid.data("x1", [2, 3], "float32")
                fluid.layers.square_error_cost(x, np.ones([2, 3], "float32"))

            self.assertRaises(TypeError, test_input_type)
            self.assertRaises(TypeError, test_label_type)


class TestMSEOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_type():
                fluid.layers.mse_loss(np.ones([2, 3], "float32"), fluid.data("y", [2, 3], "float32"))

            def test_dtype():
                x = fluid.data("x", [2, 3], "int32")
                fluid.layers.mse_loss(x, x)

            self.assertRaises(TypeError, test_type)
            self.assertRaises(TypeError, test_dtype)


class TestLogLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [2, 1], "float32")
            self.assertRaises(TypeError, fluid.layers.log_loss, np.ones([2, 1], "float32"), label)
            self.assertRaises(TypeError, fluid.layers.log_loss, fluid.data("x", [2, 1], "int32"), label)
            self.assertRaises(TypeError, fluid.layers.log_loss, fluid.data("y", [2, 1], "float64"), label)


class TestHuberLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            xw, lw = np.random.random((6, 6)).astype("float32"), np.random.random((6, 6)).astype("float32")
            xr = fluid.data(name="xr", shape=[None, 6], dtype="float32")
            lr = fluid.data(name="lr", shape=[None, 6], dtype="float32")
            self.assertRaises(TypeError, fluid.layers.huber_loss, xr, lw, 1.0)
            self.assertRaises(TypeError, fluid.layers.huber_loss, xw, lr, 1.0)
            xw2 = fluid.data(name="xw2", shape=[None, 6], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.huber_loss, xw2, lr, 1.0)


class TestSmoothL1OpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            y = fluid.data("y", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.smooth_l1, np.ones([2, 3], "float32"), y)
            self.assertRaises(TypeError, fluid.layers.smooth_l1, fluid.data("x", [2, 3], "int32"), y)


class TestKLDivLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            target = fluid.data("target", [2, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.kldiv_loss, np.ones([2, 3], "float32"), target)
            self.assertRaises(TypeError, fluid.layers.kldiv_loss, fluid.data("x", [2, 3], "int32"), target)


class TestRankLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [16, 1], "float32")
            left = fluid.data("left", [16, 1], "float32")
            right = fluid.data("right", [16, 1], "float32")
            array = np.random.random((16, 1)).astype("float32")
            self.assertRaises(TypeError, fluid.layers.rank_loss, label=array, left=left, right=right)
            self.assertRaises(TypeError, fluid.layers.rank_loss, label=label, left=array, right=right)
            self.assertRaises(TypeError, fluid.layers.rank_loss, label=label, left=left, right=array)


class TestMarginRankLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [16, 1], "float32")
            self.assertRaises((TypeError, AttributeError), fluid.layers.margin_rank_loss, label, 1, label)
            self.assertRaises((TypeError, AttributeError), fluid.layers.margin_rank_loss, label, label, 1)


class TestBprLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [2, 1], "int64")
            self.assertRaises(TypeError, fluid.layers.bpr_loss, np.ones([2, 3], "float32"), label)


class TestNPairLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            anchor = fluid.data("anchor", [2, 4], "float32")
            positive = fluid.data("positive", [2, 4], "float32")
            labels = fluid.data("labels", [2], "float32")
            array = np.ones([2, 4], "float32")
            self.assertRaises(TypeError, fluid.layers.npair_loss, array, positive, labels)
            self.assertRaises(TypeError, fluid.layers.npair_loss, anchor, array, labels)
            self.assertRaises(TypeError, fluid.layers.npair_loss, anchor, positive, np.ones([2], "float32"))
            self.assertRaises(TypeError, fluid.layers.npair_loss, fluid.data("i", [2, 4], "int32"), positive, labels)


class TestCenterLossOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x2", [16, 4], "float32")
            label = fluid.data("l1", [16, 1], "int64")
            self.assertRaises(AssertionError, fluid.layers.center_loss, x, label, num_classes=3, alpha=3,
                              param_attr=None)


if __name__ == "__main__":
    unittest.main()
