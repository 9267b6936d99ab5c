"""Mistakes whose built-in class in Fluid 1.8.5 differs from that of Anabranch: each error belongs to both."""
import pickle

import pytest

import anabranch.fluid as fluid
from anabranch.fluid import layers as L
from anabranch.fluid.errors import InvalidValue, NotFound, also


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


def data():
    return fluid.data("x", [None, 4])


def block():
    return fluid.default_main_program().global_block()


def feed(value):
    data()
    fluid.Executor(fluid.CPUPlace()).run(feed={"x": value})


CASES = {  # what is called -> (class of Fluid 1.8.5, class before, words)
    "append_op": (lambda: block().append_op(type="no_such"), ValueError, NotImplementedError, "there is no op no_such"),
    "block": (lambda: fluid.default_main_program().block(5), IndexError, ValueError, "index must be below 1, got 5"),
    "_remove_var": (lambda: block()._remove_var("none"), KeyError, LookupError, "no variable none"),
    "_remove_op": (lambda: block()._remove_op(4), IndexError, ValueError, "index must be below 0, got 4"),
    "feed": (lambda: feed("abc"), ValueError, TypeError, "feed of x: the value must be an array"),
    "step": (lambda: data()[::0], AssertionError, ValueError, "a step must not be 0"),
    "loss": (lambda: fluid.backward.append_backward(3), TypeError, AssertionError, "loss must be a Variable"),
    "load": (lambda: fluid.load(fluid.default_main_program(), "none/a"), ValueError, FileNotFoundError, "exists"),
    "average": (lambda: fluid.optimizer.ExponentialMovingAverage("a"), ValueError, TypeError, "decay must be a float"),
    "concat": (lambda: L.concat([]), IndexError, ValueError, "at least one Variable"),
    "slice": (lambda: L.slice(data(), [0], 0, [1]), ValueError, TypeError, "starts must be a list, tuple or Variable"),
    "strided_slice": (lambda: L.strided_slice(data(), [0], [0], 1, [1]), ValueError, TypeError, "ends must be"),
    "sums": (lambda: L.sums([]), IndexError, ValueError, "sums"),
    "batch_norm": (lambda: L.batch_norm(fluid.data("x", [4])), IndexError, ValueError, "batch_norm"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_belongs_to_both_classes(name):
    call, theirs, ours, words = CASES[name]
    with pytest.raises(fluid.core.EnforceNotMet, match=words) as found:
        call()
    assert isinstance(found.value, theirs) and isinstance(found.value, ours)
    assert type(found.value).__name__ == ("EnforceNotMet" if name == "append_op" else theirs.__name__)


def test_blocks_count_from_the_end_too():
    main = fluid.default_main_program()
    assert main.block(-1) is main.block(0)
    with pytest.raises(IndexError):
        main.block(-2)


def test_an_error_of_two_classes_can_be_pickled():
    again = pickle.loads(pickle.dumps(also(NotFound, KeyError)("no x")))  # noqa: S301  made here
    assert isinstance(again, KeyError) and again.message == "no x"
    assert also(InvalidValue, ValueError) is InvalidValue and also(NotFound, KeyError).__qualname__ == "NotFound"
