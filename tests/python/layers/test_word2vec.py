"""anabranch.word2vec.skip_gram against its formula in NumPy: losses, and both tables after a step."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.word2vec import skip_gram

VOCABULARY, DIM, N, W, K = 30, 6, 5, 4, 3


def reference(context, centre, negatives, present, words, outs, shared):
    """(loss of each window, gradient of words, gradient of outs), pair by pair."""
    losses, grad_words, grad_outs = numpy.zeros((N, 1)), numpy.zeros_like(words), numpy.zeros_like(outs)
    for i in range(N):
        for w in range(W):
            drawn = negatives[i] if shared else negatives[i, w * K:(w + 1) * K]
            for target, sign in [(centre[i, 0], 1.0)] + [(k, -1.0) for k in drawn]:
                x = sign * words[context[i, w]].dot(outs[target])
                losses[i] += present[i, w] * numpy.log1p(numpy.exp(-x))
                slope = -present[i, w] * sign / (1 + numpy.exp(x))
                grad_words[context[i, w]] += slope * outs[target]
                grad_outs[target] += slope * words[context[i, w]]
    return losses, grad_words, grad_outs


@pytest.mark.parametrize("shared", (False, True))
@pytest.mark.parametrize("with_present", (False, True))
def test_a_step_is_that_of_the_formula(shared, with_present):
    random = numpy.random.RandomState(3)
    feed = dict(context=random.randint(0, VOCABULARY, (N, W)), centre=random.randint(0, VOCABULARY, (N, 1)),
                negatives=random.randint(0, VOCABULARY, (N, K if shared else W * K)))
    if with_present:
        feed["present"] = random.randint(0, 2, (N, W)).astype("float32")
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        inputs = {name: fluid.data(name, [None, value.shape[1]], str(value.dtype)) for name, value in feed.items()}
        loss = skip_gram(inputs["context"], inputs["centre"], inputs["negatives"], VOCABULARY, DIM,
                         inputs.get("present"), shared)
        fluid.optimizer.SGD(1.0).minimize(fluid.layers.reduce_sum(loss))
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(startup, scope=scope)
    tables = {name: random.uniform(-1, 1, (VOCABULARY, DIM)) for name in ("word_vectors", "context_vectors")}
    for name, value in tables.items():
        scope.find_var(name).get_tensor().set(value.astype("float32"), fluid.CPUPlace())
    got, = executor.run(main, feed=feed, fetch_list=[loss], scope=scope)
    losses, grad_words, grad_outs = reference(feed["context"], feed["centre"], feed["negatives"],
                                              feed.get("present", numpy.ones((N, W))), tables["word_vectors"],
                                              tables["context_vectors"], shared)
    numpy.testing.assert_allclose(got, losses, rtol=1e-5)
    for name, grad in (("word_vectors", grad_words), ("context_vectors", grad_outs)):
        after = numpy.array(scope.find_var(name).get_tensor())
        numpy.testing.assert_allclose(after, tables[name] - grad, rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        context, centre = fluid.data("context", [None, 4], "int64"), fluid.data("centre", [None, 1], "int64")
        seven, eight = fluid.data("seven", [None, 7], "int64"), fluid.data("eight", [None, 8], "int64")
        for arguments in ((context, centre, seven, 9, 4), (context, context, eight, 9, 4),
                          (context, centre, eight, 0, 4), (context, centre, eight, 9, 0)):
            with pytest.raises(ValueError):
                skip_gram(*arguments)
        assert skip_gram(context, centre, eight, 9, 4).shape == (-1, 1)
