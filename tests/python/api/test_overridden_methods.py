"""Classes of scripts that derive from Fluid's and override the methods that those of Fluid 1.8.5 call."""
import io
import sys

import numpy
import pytest

import anabranch.fluid as fluid
import anabranch.fluid.incubate.data_generator as generators
from anabranch.fluid import layers

FEED = {"x": numpy.arange(12).reshape(4, 3).astype("float32") / 12}
HALF = fluid.initializer.Constant(0.5)


@pytest.fixture(autouse=True)
def own_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def started():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def value(name):
    return numpy.array(fluid.global_scope().find_var(name).get_tensor())


def test_an_initializer_asks_for_the_fans_of_a_variable():
    class Fans(fluid.initializer.Initializer):
        def __call__(self, var, block):
            fan_in, fan_out = self._compute_fans(var)
            return block._prepend_op(type="fill_constant", outputs={"Out": var}, attrs={
                "shape": list(var.shape), "dtype": int(var.dtype), "value": float(10 * fan_in + fan_out)})

    layers.create_parameter([3, 2], "float32", name="matrix", default_initializer=Fans())
    layers.create_parameter([2, 1, 1, 3], "float32", name="filter", default_initializer=Fans())
    started()
    assert value("matrix").flat[0] == 32 and value("filter").flat[0] == 36


class Scaled(fluid.clip.GradientClipBase):
    """Halves gradients as an argument of an optimizer, and quarters them as a clip of parameters."""

    def _static_clip(self, params_grads):
        found = []
        for param, grad in params_grads:
            if self._need_clip_func is None or self._need_clip_func(param):
                with param.block.program._optimized_guard([param, grad]):
                    grad = layers.scale(grad, 0.5)
            found.append((param, grad))
        return found

    def _process_context(self, context, param, grad):
        context.setdefault("seen", []).append(param.name)
        self.context = context

    def _create_operators(self, param, grad):
        assert sorted(self.context["seen"]) == ["b", "w"]  # the calls for all parameters come first
        return param, layers.scale(grad, 0.25)


@pytest.mark.parametrize("how, factor_of_w, factor_of_b", [
    ("argument", 0.5, 0.5), ("attached", 0.25, 0.25), ("chosen", 0.5, 1.0), ("none", 1.0, 1.0)])
def test_a_clip(how, factor_of_w, factor_of_b):
    loss = layers.mean(layers.fc(fluid.data("x", [None, 3]), 2, param_attr=fluid.ParamAttr("w", HALF), bias_attr="b"))
    if how == "attached":
        fluid.clip.set_gradient_clip(Scaled())
    clip = {"argument": Scaled(), "chosen": Scaled(lambda param: param.name == "w")}.get(how)
    fluid.optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
    started().run(feed=FEED)
    numpy.testing.assert_allclose(value("b"), -0.5 * factor_of_b, rtol=1e-6)
    means = FEED["x"].mean(0)[:, None] / 2
    numpy.testing.assert_allclose(value("w"), 0.5 - factor_of_w * numpy.tile(means, [1, 2]), rtol=1e-5)


def test_a_clip_that_overrides_nothing_says_what_to_override():
    loss = layers.mean(layers.fc(fluid.data("x", [None, 3]), 2))
    with pytest.raises(NotImplementedError, match="Nothing must override _static_clip"):
        fluid.optimizer.SGD(1.0, grad_clip=type("Nothing", (fluid.clip.GradientClipBase,), {})()).minimize(loss)


def test_names_of_older_clips():
    assert fluid.clip.ClipByValue is fluid.clip.GradientClipByValue
    assert fluid.clip.ClipByNorm is fluid.clip.GradientClipByNorm
    assert fluid.clip.ClipByGlobalNorm is fluid.clip.GradientClipByGlobalNorm


def test_a_regularizer():
    class Scaled(fluid.regularizer.WeightDecayRegularizer):
        def __call__(self, param, grad, block):
            decay = block.create_var(dtype="float32", shape=param.shape)
            block.append_op(type="scale", inputs={"X": param}, outputs={"Out": decay}, attrs={"scale": 0.25})
            return decay

    loss = layers.mean(layers.fc(fluid.data("x", [None, 3]), 2, bias_attr=False, param_attr=fluid.ParamAttr("w", HALF)))
    fluid.optimizer.SGD(1.0, regularization=Scaled()).minimize(loss)
    started().run(feed={"x": numpy.zeros((1, 3), "float32")})
    numpy.testing.assert_allclose(value("w"), 0.5 - 0.125)


def test_an_optimizer():
    class Own(fluid.optimizer.Optimizer):
        def __init__(self, learning_rate):
            super().__init__(learning_rate=learning_rate)
            self.type = "own"

        def _create_accumulators(self, block, parameters):
            for param in parameters:
                self._add_accumulator("moment", param, fill_value=1.0)

        def _append_optimize_op(self, block, param_and_grad):
            moment = self._get_accumulator("moment", param_and_grad[0])
            return block.append_op(
                type="momentum", attrs={"mu": 0.5, "use_nesterov": False},
                inputs={"Param": param_and_grad[0], "Grad": param_and_grad[1], "Velocity": moment,
                        "LearningRate": self._create_param_lr(param_and_grad)},
                outputs={"ParamOut": param_and_grad[0], "VelocityOut": moment})

        def _finish_update(self, block, parameters_and_grads):
            self.finished = [param.name for param, _ in parameters_and_grads]

    attr = fluid.ParamAttr("w", HALF, learning_rate=2.0)
    loss = layers.mean(layers.fc(fluid.data("x", [None, 3]), 2, param_attr=attr, bias_attr=False))
    own = Own(0.1)
    own.minimize(loss)
    started().run(feed={"x": numpy.zeros((1, 3), "float32")})
    numpy.testing.assert_allclose(value("w"), 0.5 - 0.2 * 0.5)
    assert own.finished == ["w"]


class ByShape(fluid.initializer.Initializer):
    """Numbers that depend on the shape only."""

    def __call__(self, var, block):
        numbers = numpy.random.RandomState(sum(var.shape)).randn(*var.shape).astype("float32")
        return fluid.initializer.NumpyArrayInitializer(numbers)(var, block)


def decoded(kind, output_scale=1.0):
    """The decoder, and its tokens, scores and lengths."""
    attr = fluid.ParamAttr(initializer=ByShape())
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        decoder = kind(
            layers.GRUCell(6, attr, attr), start_token=0, end_token=1, beam_size=2,
            embedding_fn=lambda ids: fluid.embedding(ids, [8, 4], param_attr=attr),
            output_fn=lambda h: output_scale * layers.fc(h, 8, num_flatten_dims=2, param_attr=attr, bias_attr=attr))
        tokens, states = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]), max_step_num=4)
        feed = {"h": numpy.arange(12).reshape(2, 6).astype("float32") / 12}
        return decoder, started().run(feed=feed, fetch_list=[tokens, states.log_probs, states.lengths])


def test_a_beam_search_decoder():
    calls = []

    def counted(name):
        def method(self, *args):
            calls.append(name)
            return getattr(layers.BeamSearchDecoder, name)(self, *args)
        return method

    names = ("_merge_batch_beams", "_split_batch_beams", "_expand_to_beam_size", "_mask_probs", "_gather")
    counting = type("Counting", (layers.BeamSearchDecoder,), {name: counted(name) for name in names})
    decoder, _ = decoded(counting)
    assert {name: calls.count(name) for name in names} == dict(zip(names, (2, 2, 1, 1, 4)))  # as in 1.8.5
    assert (decoder.kinf, decoder.vocab_size) == (1e9, 8)
    assert decoder.vocab_size_tensor.shape == (1,) and decoder.noend_mask_tensor.shape == (8,)

    class Doubled(layers.BeamSearchDecoder):
        def _beam_search_step(self, time, logits, next_cell_states, beam_state):
            return super()._beam_search_step(time, logits * 2.0, next_cell_states, beam_state)

    for own, built_in in zip(decoded(Doubled)[1], decoded(layers.BeamSearchDecoder, output_scale=2.0)[1]):
        numpy.testing.assert_array_equal(own, built_in)
    assert (decoded(Doubled)[1][1] != decoded(layers.BeamSearchDecoder)[1][1]).all()


def test_a_decoder_with_its_own_step():
    class Own(layers.BeamSearchDecoder):
        def step(self, time, inputs, states, **kwargs):
            each = layers.utils.map_structure
            outputs, cell_states = self.cell(each(self._merge_batch_beams, inputs),
                                             each(self._merge_batch_beams, states.cell_states), **kwargs)
            outputs, cell_states = each(self._split_batch_beams, outputs), each(self._split_batch_beams, cell_states)
            found, states = self._beam_search_step(time=time, logits=self.output_fn(outputs),
                                                   next_cell_states=cell_states, beam_state=states)
            return found, states, self.embedding_fn(found.predicted_ids), states.finished

    for own, built_in in zip(decoded(Own)[1], decoded(layers.BeamSearchDecoder)[1]):
        numpy.testing.assert_array_equal(own, built_in)


def test_an_evaluator():
    class Total(fluid.evaluator.Evaluator):
        def __init__(self, x):
            super().__init__("total")
            self.total = self._create_state(dtype="float32", shape=[1], suffix="total")
            layers.sums([self.total, layers.reduce_sum(x)], out=self.total)

        def eval(self, executor, eval_program=None):
            program = eval_program or fluid.Program()
            with fluid.program_guard(program):
                total = fluid.evaluator._clone_var_(program.current_block(), self.total)
                return executor.run(program, fetch_list=[total])[0]

    total = Total(fluid.data("x", [None, 3]))
    exe = started()
    total.reset(exe)
    for _ in range(2):
        exe.run(feed=FEED)
    assert total.eval(exe).tolist() == [11.0] and total.states == [total.total]
    total.reset(exe)
    assert total.eval(exe).tolist() == [0.0]


def test_a_data_generator(monkeypatch):
    class Own(generators.DataGenerator):
        def _gen_str(self, line):
            return " ".join(map(str, line)) + "\n"

        def generate_sample(self, line):
            return lambda: iter([[int(number) for number in line.split()]])

    own = Own()
    own._set_line_limit(1)
    assert own._line_limit == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("3 4\n5 6\n"))
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    own.run_from_stdin()
    assert sys.stdout.getvalue() == "3 4\n5 6\n"
    with pytest.raises(ValueError, match="line_limit must be an int of at least 1, got 0"):
        own._set_line_limit(0)


def test_a_distribution_of_a_script():
    from anabranch.fluid.layers import distributions

    class Own(distributions.Distribution):
        def sample(self):
            return 3

    assert isinstance(distributions.Normal(0.0, 1.0), distributions.Distribution) and Own().sample() == 3
    for method in (Own().entropy, lambda: Own().log_prob(1), lambda: Own().kl_divergence(1)):
        with pytest.raises(NotImplementedError, match="Own has no"):
            method()


def test_an_optimizer_chooses_what_gets_no_gradient():
    class Frozen(fluid.optimizer.SGDOptimizer):
        def _get_no_grad_set(self, loss, no_grad_set=None):
            return super()._get_no_grad_set(loss, no_grad_set) | {"w"}

    loss = layers.mean(layers.fc(fluid.data("x", [None, 3]), 2, param_attr="w", bias_attr="b"))
    assert [param.name for param, _ in Frozen(0.1).minimize(loss)[1]] == ["b"]
