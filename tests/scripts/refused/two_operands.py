"""Arithmetic, comparisons and logic of two tensors."""
import unittest

import numpy as np

import paddle.fluid as fluid
from paddle.fluid import Program, program_guard


class ElementwiseErrors:
    def test_errors(self):
        layer = getattr(fluid.layers, self.name)
        with program_guard(Program(), Program()):
            x1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            y1 = fluid.create_lod_tensor(np.array([-1, 3, 5, 5]), [[1, 1, 1, 1]], fluid.CPUPlace())
            self.assertRaises(TypeError, layer, x1, y1)
            x2 = fluid.layers.data(name="x2", shape=[3, 4, 5, 6], dtype="uint8")
            y2 = fluid.layers.data(name="y2", shape=[3, 4, 5, 6], dtype="uint8")
            self.assertRaises(TypeError, layer, x2, y2)


class TestElementwiseAddOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_add"


class TestElementwiseSubOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_sub"


class TestElementwiseMulOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_mul"


class TestElementwiseDivOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_div"


class TestElementwiseMaxOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_max"


class TestElementwiseMinOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_min"


class TestElementwisePowOpError(ElementwiseErrors, unittest.TestCase):
    name = "elementwise_pow"


class TestElementwiseFloorDivOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [3, 4], "bool")
            y = fluid.data("y", [3, 4], "bool")
            self.assertRaises(TypeError, fluid.layers.elementwise_floordiv, x, y)
            self.assertRaises(TypeError, fluid.layers.elementwise_mod, x, y)


def compared(name):
    class Cls(unittest.TestCase):
        def test_errors(self):
            layer = getattr(fluid.layers, name)
            with program_guard(Program(), Program()):
                x = fluid.layers.data(name="x", shape=[2], dtype="int32")
                y = fluid.layers.data(name="y", shape=[2], dtype="int32")
                a = fluid.layers.data(name="a", shape=[2], dtype="int16")
                b = fluid.layers.data(name="b", shape=[2], dtype="bool")
                self.assertRaises(TypeError, layer, x, np.zeros([2], "int32"))
                self.assertRaises(TypeError, layer, x=x, y=y, cond=[1])
                self.assertRaises(TypeError, layer, x=x, y=a)
                self.assertRaises(TypeError, layer, x=a, y=y)
                if name not in ("equal", "not_equal"):
                    self.assertRaises(TypeError, layer, x=b, y=b)
                layer(x, y)

    Cls.__name__ = "Test_%s_OpError" % name
    return Cls


for _name in ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"):
    globals()["Test_" + _name] = compared(_name)


class TestLogicalOpError(unittest.TestCase):
    def test_errors(self):
        for name in ("logical_and", "logical_or", "logical_xor"):
            layer = getattr(fluid.layers, name)
            with program_guard(Program(), Program()):
                x = fluid.data("x", [3], "bool")
                self.assertRaises(TypeError, layer, x, [True, False, True])
                self.assertRaises(TypeError, layer, np.ones([3], "bool"), x)
                self.assertRaises(TypeError, layer, x, x, 1)
                layer(x, x)

    def test_not(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, fluid.layers.logical_not, 1)
            self.assertRaises(TypeError, fluid.layers.logical_not, fluid.data("x", [3], "bool"), 1)


if __name__ == "__main__":
    unittest.main()
