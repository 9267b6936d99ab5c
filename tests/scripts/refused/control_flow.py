"""Loops, branches and arrays."""
import unittest

import numpy as np

import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid import Program, program_guard


class TestWhileOpError(unittest.TestCase):
    def test_bad_input_type(self):
        with program_guard(Program()):
            self.assertRaises(TypeError, layers.While, [1])
            self.assertRaises(TypeError, layers.While, fluid.data("floats", [1], "float64"))
            self.assertRaises(TypeError, layers.While, fluid.data("two", [2, 2], "bool"))


class TestWhileLoopOpError(unittest.TestCase):
    def test_errors(self):
        def cond(i):
            return layers.less_than(i, ten)

        def body(i):
            return layers.increment(i)

        with program_guard(Program(), Program()):
            data = layers.fill_constant([1], "int64", 1)
            ten = layers.fill_constant([1], "int64", 10)
            self.assertRaises(TypeError, layers.while_loop, data, body, [data])
            self.assertRaises(TypeError, layers.while_loop, cond, data, [data])
            self.assertRaises(TypeError, layers.while_loop, cond, body, data)
            self.assertRaises(ValueError, layers.while_loop, cond, body, [])
            self.assertRaises(TypeError, layers.while_loop, lambda i: 1, body, [data])
            self.assertRaises(TypeError, layers.while_loop, lambda i: layers.increment(i), body, [data])


class TestCondOpError(unittest.TestCase):
    def test_errors(self):
        def one():
            return layers.fill_constant([1], "float32", 1.0)

        with program_guard(Program(), Program()):
            flag = fluid.data("flag", [1], "bool")
            self.assertRaises(TypeError, layers.cond, 3, one, one)
            self.assertRaises(TypeError, layers.cond, flag, 1, one)
            self.assertRaises(TypeError, layers.cond, flag, one, [one])


class TestCaseOpError(unittest.TestCase):
    def test_errors(self):
        def one():
            return layers.fill_constant([1], "float32", 1.0)

        with program_guard(Program(), Program()):
            flag = layers.less_than(layers.fill_constant([1], "float32", 1.0), layers.fill_constant([1], "float32", 2.0))
            self.assertRaises(TypeError, layers.case, 1, one)
            self.assertRaises(TypeError, layers.case, [one], one)
            self.assertRaises(TypeError, layers.case, [(flag, 2)], one)
            self.assertRaises(TypeError, layers.case, [(1, one)], one)
            self.assertRaises(TypeError, layers.case, [(flag, one)], 1)


class TestSwitchCaseOpError(unittest.TestCase):
    def test_errors(self):
        def one():
            return layers.fill_constant([1], "float32", 1.0)

        with program_guard(Program(), Program()):
            index = layers.fill_constant([1], "int32", 1)
            floats = layers.fill_constant([1], "float32", 1)
            self.assertRaises(TypeError, layers.switch_case, 1, {1: one}, one)
            self.assertRaises(TypeError, layers.switch_case, floats, {1: one}, one)
            self.assertRaises(TypeError, layers.switch_case, index, {"a": one}, one)
            self.assertRaises(TypeError, layers.switch_case, index, {1: 1}, one)
            self.assertRaises(TypeError, layers.switch_case, index, {1: one}, 1)
            self.assertRaises(ValueError, layers.switch_case, index, [(1, one), (1, one)], one)


class TestSwitchOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            def test_condition_type():
                with layers.Switch() as switch:
                    with switch.case(1):
                        pass

            def test_condition_dtype():
                x = fluid.data("x", [1], "float32")
                with layers.Switch() as switch:
                    with switch.case(x):
                        pass

            self.assertRaises(TypeError, test_condition_type)
            self.assertRaises(TypeError, test_condition_dtype)


class TestIfElseOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, layers.IfElse, np.ones([2, 1], "bool"))


class TestDynamicRNNOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = layers.data("x", [4], dtype="float32", lod_level=1)
            rnn = layers.DynamicRNN()
            with rnn.block():
                self.assertRaises(TypeError, rnn.step_input, x=np.ones([2, 4], "float32"))
                now = rnn.step_input(x)
                self.assertRaises(TypeError, rnn.static_input, x=np.ones([2, 4], "float32"))
                self.assertRaises(TypeError, rnn.memory, init=np.ones([2, 4], "float32"))
                before = rnn.memory(shape=[4], value=0.0)
                self.assertRaises(TypeError, rnn.update_memory, before, np.ones([2, 4], "float32"))
                self.assertRaises(TypeError, rnn.update_memory, 1, now)
                after = layers.elementwise_add(now, before)
                rnn.update_memory(before, after)
                rnn.output(after)
            rnn()


class TestStaticRNNOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            x = fluid.data("x", [5, 2, 4], "float32")
            rnn = layers.StaticRNN()
            with rnn.step():
                self.assertRaises(TypeError, rnn.step_input, np.ones([5, 2, 4], "float32"))
                now = rnn.step_input(x)
                before = rnn.memory(shape=[-1, 4], batch_ref=now)
                self.assertRaises(TypeError, rnn.update_memory, before, 1)
                self.assertRaises(TypeError, rnn.step_output, 1)
                after = layers.elementwise_add(now, before)
                rnn.update_memory(before, after)
                rnn.step_output(after)
            rnn()


class TestArrayOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            i = layers.fill_constant([1], "int64", 0)
            x = fluid.data("x", [2, 3], "float32")
            array = layers.array_write(x, i)
            self.assertRaises(TypeError, layers.array_write, np.ones([2, 3]), i)
            self.assertRaises(TypeError, layers.array_write, x, 0)
            self.assertRaises(TypeError, layers.array_write, x, layers.fill_constant([1], "float32", 0))
            self.assertRaises(TypeError, layers.array_write, x, i, x)
            self.assertRaises(TypeError, layers.array_read, x, i)
            self.assertRaises(TypeError, layers.array_read, array, 0)
            self.assertRaises(TypeError, layers.array_length, x)
            self.assertRaises(TypeError, layers.create_array, 3)


class TestPrintOpError(unittest.TestCase):
    def test_errors(self):
        with program_guard(Program(), Program()):
            self.assertRaises(TypeError, layers.Print, np.ones([2, 3]))
            self.assertRaises(TypeError, layers.Print, fluid.data("x", [2, 3], "float16"))


if __name__ == "__main__":
    unittest.main()
