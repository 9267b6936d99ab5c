"""Embeddings, one-hot vectors, metrics, ids."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class TestEmbeddingOpError(unittest.TestCase):
    def test_layers(self):
        with program_guard(Program(), Program()):
            input_data = np.random.randint(0, 10, (4, 1)).astype("int64")

            def test_variable():
                fluid.layers.embedding(input=input_data, size=(10, 64))

            def test_input_dtype():
                fluid.layers.embedding(input=fluid.data("x1", [4, 1], "float32"), size=(10, 64))

            def test_param_dtype():
                fluid.layers.embedding(input=fluid.data("x2", [4, 1], "int64"), size=(10, 64), dtype="int64")

            self.assertRaises(TypeError, test_variable)
            self.assertRaises(TypeError, test_input_dtype)
            self.assertRaises(TypeError, test_param_dtype)
            fluid.layers.embedding(input=fluid.data("x3", [4, 1], "int64"), size=(10, 64), dtype="float16")

    def test_fluid(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.embedding, np.zeros([4, 1], "int64"), (10, 64))
            self.assertRaises(TypeError, fluid.embedding, fluid.data("x1", [4], "float32"), (10, 64))
            self.assertRaises(TypeError, fluid.embedding, fluid.data("x2", [4], "int64"), (10, 64), dtype="int64")
            self.assertRaises(TypeError, fluid.embedding, fluid.data("x3", [4], "int32"), (10, 64))


class TestOneHotOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            array = np.zeros([4, 1], "int32")
            self.assertRaises(TypeError, fluid.one_hot, array, 4)
            self.assertRaises(TypeError, fluid.layers.one_hot, array, 4)
            self.assertRaises(TypeError, fluid.layers.one_hot, fluid.data("x2", [4, 1], "float32"), 4)


class TestDataOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.data, name=1, shape=[2, 25], dtype="bool")
            self.assertRaises(TypeError, fluid.data, name="x", shape=1, dtype="bool")
            self.assertRaises(TypeError, fluid.layers.data, name=1, shape=[2, 25])
            self.assertRaises(TypeError, fluid.layers.data, name="y", shape=1)


class TestAccuracyOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([[-1]]), [[1]], fluid.CPUPlace())
            label = fluid.layers.data(name="label", shape=[1], dtype="int64")
            self.assertRaises(TypeError, fluid.layers.accuracy, x1, label)
            x2 = fluid.layers.data(name="x2", shape=[4], dtype="int32")
            self.assertRaises(TypeError, fluid.layers.accuracy, x2, label)
            x3 = fluid.layers.data(name="x3", shape=[4], dtype="float16")
            fluid.layers.accuracy(input=x3, label=label)


class TestAucOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_type1():
                fluid.layers.auc(np.ones([2, 2], "float32"), fluid.data("label1", [2, 1], "int64"))

            def test_type2():
                fluid.layers.auc(fluid.data("x2", [2, 2], "float32"), np.ones([2, 1], "int64"))

            self.assertRaises((TypeError, AttributeError), test_type1)
            self.assertRaises((TypeError, ValueError), test_type2)


class TestMeanIouOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [4, 5], "int32")
            self.assertRaises(TypeError, fluid.layers.mean_iou, np.zeros([4, 5], "int32"), x, 3)
            self.assertRaises(TypeError, fluid.layers.mean_iou, x, fluid.data("y", [4, 5], "float32"), 3)


class TestHsigmoidOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [4, 1], "int64")
            x = fluid.data("x", [4, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.hsigmoid, 1, label, 2)
            self.assertRaises(TypeError, fluid.layers.hsigmoid, fluid.data("i", [4, 3], "int32"), label, 2)
            self.assertRaises(TypeError, fluid.layers.hsigmoid, x, 1, 2)
            self.assertRaises(TypeError, fluid.layers.hsigmoid, x, fluid.data("f", [4, 1], "int32"), 2)


class TestNCEOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            label = fluid.data("label", [4, 1], "int64")
            x = fluid.data("x", [4, 3], "float32")
            self.assertRaises(TypeError, fluid.layers.nce, np.ones([4, 3], "float32"), label, 5)
            self.assertRaises(TypeError, fluid.layers.nce, x, np.ones([4, 1], "int64"), 5)
            self.assertRaises(TypeError, fluid.layers.nce, fluid.data("i", [4, 3], "int32"), label, 5)


class TestCtcOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            logits = fluid.data("logits", [None, 5], "float32", lod_level=1)
            label = fluid.data("label", [None, 1], "int32", lod_level=1)
            self.assertRaises(TypeError, fluid.layers.warpctc, np.ones([4, 5], "float32"), label)
            self.assertRaises(TypeError, fluid.layers.warpctc, logits, np.ones([4, 1], "int32"))
            self.assertRaises(TypeError, fluid.layers.ctc_greedy_decoder, np.ones([4, 5], "float32"), 0)
            self.assertRaises(TypeError, fluid.layers.edit_distance, np.ones([4, 1], "int64"), label)


class TestCrfOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            emission = fluid.data("emission", [None, 5], "float32", lod_level=1)
            label = fluid.data("label", [None, 1], "int64", lod_level=1)
            attr = fluid.ParamAttr(name="crfw")
            self.assertRaises(TypeError, fluid.layers.linear_chain_crf, np.ones([4, 5], "float32"), label, attr)
            self.assertRaises(TypeError, fluid.layers.linear_chain_crf, emission, np.ones([4, 1], "int64"), attr)
            self.assertRaises(TypeError, fluid.layers.crf_decoding, np.ones([4, 5], "float32"), attr)


class TestGradientsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3], "float32")
            x.stop_gradient = False
            y = fluid.layers.reduce_sum(x)
            self.assertRaises(TypeError, fluid.gradients, "y", x)
            self.assertRaises(TypeError, fluid.gradients, y, "x")
            self.assertRaises(TypeError, fluid.backward.append_backward, "y")
            self.assertRaises(TypeError, fluid.backward.append_backward, y, parameter_list=x)
            self.assertRaises(TypeError, fluid.backward.append_backward, y, callbacks=lambda: 1)


if __name__ == "__main__":
    unittest.main()
