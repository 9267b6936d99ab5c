"""What Python raises about the arguments of a layer is an error of the package; what the caller's code raises is not.
"""

import pytest

import anabranch.fluid as fluid

L = fluid.layers


@pytest.fixture(autouse=True)
def x():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield fluid.data("x", [None, 4])


CALLS = [
    (TypeError, "relu: name must be str or None, got int", lambda x: L.relu(x, name=5)),
    (TypeError, "fc: num_flatten_dims must be int, got 0.5", lambda x: L.fc(x, 3, num_flatten_dims=0.5)),
    (ValueError, "sums: list index out of range", lambda x: L.sums([])),
    (ValueError, "cast: .*dtype", lambda x: L.cast(x, x)),
    (TypeError, "fc: input and size must be given", lambda x: L.fc()),
    (AssertionError, "split: there must be at most 65536 parts, got 2147483648", lambda x: L.split(x, 2**31, 0)),
    (TypeError, "glu: input must be a Variable, got int", lambda x: fluid.nets.glu(5)),
    (Exception, "attribute dim must be a 64-bit integer, got a", lambda x: op(x, "reduce_sum", dim=["a"])),
    (Exception, "attribute dim must be a 64-bit integer, got None", lambda x: op(x, "reduce_sum", dim=[None])),
    (Exception, "attribute dim must be a 64-bit integer, got 0.5", lambda x: op(x, "reduce_sum", dim=[0.5])),
]


def op(x, type, **attrs):
    out = x.block.create_var(name="out")
    x.block.append_op(type=type, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out


@pytest.mark.parametrize("error, text, call", CALLS, ids=[c[1][:30] for c in CALLS])
def test_errors_are_ours_and_name_the_argument(x, error, text, call):
    with pytest.raises(fluid.core.EnforceNotMet, match=text) as raised:
        call(x)
    assert isinstance(raised.value, error)


def test_whole_floats_are_numbers(x):
    assert op(x, "reduce_sum", dim=[1.0], keep_dim=False).shape == (-1,)


def test_errors_of_the_callers_code_pass_through(x):
    class Mine(TypeError):
        pass

    def branch():
        raise Mine("mine")

    with pytest.raises(Mine):
        L.cond(L.reduce_sum(x) > 0.0, branch, lambda: x)
    with pytest.raises(ZeroDivisionError) as raised:
        L.cond(L.reduce_sum(x) > 0.0, lambda: 1 / 0, lambda: x)
    assert type(raised.value) is ZeroDivisionError


def test_every_way_to_a_layer_leads_to_the_same_function():
    from anabranch.fluid.layers.nn import relu

    assert relu is L.relu
    assert L.relu.__wrapped__.__module__.startswith("anabranch.fluid.layers")
