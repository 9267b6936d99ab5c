"""Layers of images and regions."""
import unittest

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.core as core
from paddle.fluid import Program, program_guard


class TestPad2dOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_variable():
                fluid.layers.pad2d(input=np.random.random((2, 2, 2, 2)).astype("float32"), paddings=[1, 1, 1, 1])

            self.assertRaises(TypeError, test_variable)
            data = fluid.data(name="data", shape=[None, 3, 20, 20], dtype="float16")
            fluid.layers.pad2d(input=data, paddings=[1, 1, 1, 1])


class TestResizeOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3, 6, 6], "float32")
            self.assertRaises(TypeError, fluid.layers.resize_bilinear, x, 4)
            self.assertRaises(ValueError, fluid.layers.image_resize, x, [4, 4], resample=3)
            self.assertRaises(TypeError, fluid.layers.image_resize, x, [4, 4], align_corners=1)


class TestGridSamplerOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 3, 6, 6], "float32")
            grid = fluid.data("grid", [2, 6, 6, 2], "float32")
            self.assertRaises(TypeError, fluid.layers.grid_sampler, np.ones([2, 3, 6, 6], "float32"), grid)
            self.assertRaises(TypeError, fluid.layers.grid_sampler, x, np.ones([2, 6, 6, 2], "float32"))
            self.assertRaises(TypeError, fluid.layers.grid_sampler, fluid.data("i", [2, 3, 6, 6], "int32"), grid)


class TestAffineGridOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.affine_grid, np.ones([2, 2, 3], "float32"), [2, 3, 4, 4])
            self.assertRaises(TypeError, fluid.layers.affine_grid, fluid.data("i", [2, 2, 3], "int32"), [2, 3, 4, 4])


class TestUnfoldOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.unfold, np.ones([2, 3, 6, 6], "float32"), 2)
            self.assertRaises(TypeError, fluid.layers.unfold, fluid.data("i", [2, 3, 6, 6], "int32"), 2)


class TestCropTensorOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data(name="x", shape=[6, 6], dtype="float32")

            def test_input_type():
                fluid.layers.crop_tensor(np.random.random((2, 3)), [1, 1], [0, 0])

            def test_shape_type():
                fluid.layers.crop_tensor(x, 3)

            def test_shape_value():
                fluid.layers.crop_tensor(x, [2.5, 3])

            def test_offsets_type():
                fluid.layers.crop_tensor(x, [3, 3], offsets=1.5)

            for test in (test_input_type, test_shape_type, test_shape_value, test_offsets_type):
                self.assertRaises((TypeError, AttributeError), test)


class TestYoloOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 14, 8, 8], "float32")
            size = fluid.data("size", [2, 2], "int32")
            anchors = [10, 13, 16, 30]
            self.assertRaises(TypeError, fluid.layers.yolo_box, 1, size, anchors, 2, 0.01, 32)
            self.assertRaises(TypeError, fluid.layers.yolo_box, x, 1, anchors, 2, 0.01, 32)
            self.assertRaises(TypeError, fluid.layers.yolo_box, x, size, 10, 2, 0.01, 32)
            self.assertRaises(TypeError, fluid.layers.yolo_box, x, size, anchors, 2.5, 0.01, 32)
            self.assertRaises(TypeError, fluid.layers.yolo_box, x, size, anchors, 2, 1, 32)


class TestRegionsOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 8, 6, 6], "float32")
            rois = fluid.data("rois", [None, 4], "float32", lod_level=1)
            self.assertRaises(TypeError, fluid.layers.psroi_pool, x, rois, 2.5, 1.0, 2, 2)
            self.assertRaises(TypeError, fluid.layers.prroi_pool, x, 3, 0.25, 2, 2)
            self.assertIsInstance(core.op_support_gpu("roi_pool"), bool)


class TestBoxCoderOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            boxes = fluid.data("boxes", [None, 4], "float32")
            target = fluid.data("target", [None, 4], "float32")
            self.assertRaises(TypeError, fluid.layers.box_coder, boxes, 3, target)


class TestPriorBoxOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [2, 8, 6, 6], "int32")
            self.assertRaises(TypeError, fluid.layers.prior_box, x, fluid.data("im", [2, 3, 32, 32], "float32"), [4.0])


if __name__ == "__main__":
    unittest.main()
