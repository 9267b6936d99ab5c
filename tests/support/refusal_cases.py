"""Calls of layers that the cases of layer_cases/ do not make: readers, distributions, files, methods of classes."""
from layer_cases.common import I, S, X

CASES = {}


def case(name, fn):
    CASES["more_" + name] = fn


def rows(f):
    """A Variable of selected rows."""
    return f.default_main_program().global_block().create_var(
        name="rows", shape=[7, 4], dtype="float32", type=f.core.VarDesc.VarType.SELECTED_ROWS)


def made(f, name, shape=(2, 3), dtype="float32"):
    return f.default_main_program().current_block().create_var(name=name, shape=list(shape), dtype=dtype)


def decoded(f, L):
    i = L.fill_constant([1], "int64", 0)
    ids = L.array_write(S(f, None, 1, n="ids", d="int64", lod=2), i)
    scores = L.array_write(S(f, None, 1, n="scores", lod=2), i)
    return L.beam_search_decode(ids, scores, 4, 1)


def read(f, L):
    reader = L.py_reader(4, [[-1, 3], [-1, 1]], ["float32", "int64"])
    return L.read_file(L.double_buffer(reader))


def distribution(cls, *numbers):
    def build(f, L):
        one, two = getattr(L, cls)(*numbers), getattr(L, cls)(*[n + 0.5 for n in numbers])
        held = getattr(L, cls)(X(f, 2, n="p"), X(f, 2, n="q"))
        x = X(f, 2, n="v")
        return [one.sample([2], 0), one.entropy(), one.log_prob(x), held.sample([2], 0), held.entropy(),
                held.log_prob(x)] + ([one.kl_divergence(two)] if cls == "Normal" else [])
    return build


def static_rnn(f, L):
    x = f.data("x", [5, 4, 3])
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(init=f.data("h", [4, 3]))
        by_shape = rnn.memory(shape=[-1, 3], batch_ref=now)
        rnn.update_memory(before, L.elementwise_add(now, before))
        rnn.update_memory(by_shape, L.elementwise_add(now, by_shape))
        rnn.step_output(before)
        rnn.output(before, by_shape)
    return rnn()


def dynamic_rnn(f, L):
    x = S(f, None, 4)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, fixed = rnn.step_input(x), rnn.static_input(S(f, None, 4, n="fixed"))
        before, own = rnn.memory(init=X(f, n="h")), rnn.memory(shape=[4], value=0.5)
        rnn.update_memory(before, L.elementwise_add(now, before))
        rnn.update_memory(own, L.elementwise_add(now, own))
        rnn.output(before, own)
    return rnn(), fixed


def many(f, L):
    """Layers that are called with one more Variable than elsewhere."""
    x, i = X(f, 3, 4), I(f, 2, 1)
    L.fill_constant([2], "float32", 1.0, out=made(f, "o1", (2,)))
    L.fill_constant(i, "float32", 1.0)
    L.ones_like(x, made(f, "o2"))
    L.zeros_like(x, made(f, "o3"))
    L.equal(x, x, made(f, "o4", dtype="bool"))
    for name in ("and", "or", "xor"):
        b = X(f, 3, n="b" + name, d="bool")
        getattr(L, "logical_" + name)(b, b, made(f, "o" + name, (3,), "bool"))
    return x


def outputs(f, L):
    """Layers that write into a Variable of the caller."""
    x = X(f, 3, 4)
    L.addcmul(x, x, x, out=made(f, "o1"))
    L.full([2, 3], 1.0, out=made(f, "o2"))
    L.full_like(x, 1.0, made(f, "o3"))
    L.kron(x, x, made(f, "o4"))
    L.log1p(x, made(f, "o5"))
    L.logsumexp(x, out=made(f, "o6"))
    return x


def numbers(f, L):
    """Layers that take a Variable instead of a number."""
    one, two, steps = [L.fill_constant([1], "float32", n) for n in (1.0, 2.0, 3.0)]
    count, im = L.fill_constant([1], "int32", 3), X(f, None, 3, 8, 8, n="im")
    L.range(one, two, steps, "float32")
    L.arange(one, two, steps, "float32")
    L.linspace(one, two, count, "float32")
    L.random_crop(im, [3, 4, 4], I(f, 1, n="seed"))
    L.image_resize(im, [count, count])
    L.image_resize(im, scale=two)
    L.image_resize(im, [4, 4], actual_shape=f.data("extents", [2], "int32"))
    L.resize_nearest(im, scale=two)
    L.resize_nearest(im, [4, 4], actual_shape=f.data("extents", [2], "int32"))
    L.pad2d(im, f.data("borders", [4], "int32"))
    return im


def rates(f, L):
    """Schedules of a Variable."""
    return [getattr(L, name + "_decay")(L.create_global_var([1], 0.1, "float32", True, name=name), *more)
            for name, more in (("exponential", (4, 0.5)), ("natural_exp", (4, 0.5)), ("inverse_time", (4, 0.5)),
                               ("polynomial", (4,)), ("cosine", (4, 2)))]


case("row_conv", lambda f, L: L.row_conv(S(f, None, 4), 2))
case("decoded", decoded)
case("merge", lambda f, L: L.get_tensor_from_selected_rows(L.merge_selected_rows(rows(f))))
case("load", lambda f, L: L.load(made(f, "o"), "file"))
case("load_half", lambda f, L: L.load(made(f, "o"), "file", True))
case("reader", read)
case("reader_by_data", lambda f, L: L.read_file(L.create_py_reader_by_data(4, [X(f), I(f)])))
case("py_func", lambda f, L: L.py_func(lambda x: x, X(f, 2, 3), made(f, "o")))
case("py_func_list", lambda f, L: L.py_func(lambda x, y: x, [X(f, 2, 3), X(f, 2, 3, n="y")], [made(f, "o")]))
case("randn", lambda f, L: L.randn([2, 3]))
case("randn_out", lambda f, L: L.randn([2, 3], made(f, "o")))
case("uniform", distribution("Uniform", 0.0, 1.0))
case("normal", distribution("Normal", 0.0, 1.0))
case("categorical", lambda f, L: (lambda a, b: [a.entropy(), a.kl_divergence(b)])(
    L.Categorical(X(f, 2, n="p")), L.Categorical(X(f, 2, n="q"))))
case("diagonal", lambda f, L: (lambda a, b: [a.entropy(), a.kl_divergence(b)])(
    L.MultivariateNormalDiag(X(f, 2, n="p"), X(f, 2, 2, n="s")),
    L.MultivariateNormalDiag(X(f, 2, n="q"), X(f, 2, 2, n="t"))))
case("static_rnn", static_rnn)
case("dynamic_rnn", dynamic_rnn)
case("many", many)
case("outputs", outputs)
case("numbers", numbers)
case("rates", rates)
case("noam", lambda f, L: L.noam_decay(L.fill_constant([1], "float32", 4.0), L.fill_constant([1], "float32", 4.0)))
