"""Trains word vectors with word2vec: skip-gram with negative sampling, with independent negatives and with shared ones.

Data: the novels of Jane Austen if the Debian package r-cran-janeaustenr is installed, otherwise a synthetic text with
topics. The quality is an AUC: how often two neighboring words of held-out text score higher than a word and one drawn
at random.

Expected output: for both kinds of negatives, an AUC of pairs above 0.6 and the speed in words per second; for the
novels also the nearest words of some words.
"""
import os
import re
import time

import clicks
import numpy

import anabranch.fluid as fluid
from anabranch.datasets import criteo, r_packages
from anabranch.word2vec import skip_gram

NEGATIVES, WINDOW, DIM, RARE = 5, 5, 64, 5
NOVELS = ("emma", "mansfieldpark", "northangerabbey", "persuasion", "prideprejudice", "sensesensibility")
SCHEMA = "columns tab\nword = 0\nnear = 1\n"


def text(fast):
    """(ids of the words in order, the words by id, name of the data)."""
    try:
        novels = NOVELS[4:5] if fast else NOVELS
        lines = [line or "" for novel in novels for line in r_packages.load("janeaustenr", novel)]
    except LookupError:
        return generated(100000 if fast else 400000) + ("synthetic (Debian's r-cran-janeaustenr is not installed)",)
    found, ids, counts = numpy.unique(re.findall("[a-z]+", " ".join(lines).lower()), return_inverse=True,
                                      return_counts=True)
    order = numpy.argsort(-counts)
    order = order[counts[order] >= RARE]
    rank = numpy.full(len(found), -1)
    rank[order] = numpy.arange(len(order))
    ids = rank[ids]
    return ids[ids >= 0], list(found[order]), "Jane Austen (r-cran-janeaustenr)"


def generated(count, topics=20, words=50):
    """Synthetic: stretches of 20 words, most of them of one topic."""
    random = numpy.random.RandomState(2)
    topic = numpy.repeat(random.randint(0, topics, count // 20), 20)
    topic = numpy.where(random.random_sample(len(topic)) < 0.7, topic, random.randint(0, topics, len(topic)))
    ids = topic + topics * (numpy.minimum(random.geometric(0.08, len(topic)), words) - 1)
    return ids, ["t%dw%d" % (i % topics, i // topics) for i in range(topics * words)]


def windows(ids, random, vocabulary, batch, shared):
    """Batches of windows in random order: all words around a centre, up to a random reach of 1 to 5."""
    share = numpy.bincount(ids, minlength=vocabulary) ** 0.75
    table = numpy.repeat(numpy.arange(vocabulary), numpy.ceil(share / share.sum() * 1e6).astype("int64"))
    offsets = numpy.array([k for k in range(-WINDOW, WINDOW + 1) if k])
    for centres in numpy.array_split(random.permutation(len(ids)), max(1, len(ids) // batch)):
        at = centres[:, None] + offsets
        reach = random.randint(1, WINDOW + 1, (len(centres), 1))
        present = (abs(offsets) <= reach) & (at >= 0) & (at < len(ids))
        drawn = table[random.randint(0, len(table), (len(centres), NEGATIVES * (1 if shared else len(offsets))))]
        yield dict(context=numpy.where(present, ids[at % len(ids)], 0), centre=ids[centres][:, None], negatives=drawn,
                   present=present.astype("float32"))


def build(vocabulary, shared):
    """Loss and inputs of a window."""
    context = fluid.data("context", [None, 2 * WINDOW], "int64")
    centre = fluid.data("centre", [None, 1], "int64")
    negatives = fluid.data("negatives", [None, NEGATIVES * (1 if shared else 2 * WINDOW)], "int64")
    present = fluid.data("present", [None, 2 * WINDOW])
    loss = fluid.layers.mean(skip_gram(context, centre, negatives, vocabulary, DIM, present, shared))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return loss


def score(vocabulary):
    """The saved model: the probability [n, 1] that two words stand near each other."""
    word, near = fluid.data("word", [None, 1], "int64"), fluid.data("near", [None, 1], "int64")
    left = fluid.embedding(word, [vocabulary, DIM], param_attr="word_vectors")
    right = fluid.embedding(near, [vocabulary, DIM], param_attr="context_vectors")
    product = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(left, right), dim=2)
    return [word, near], fluid.layers.sigmoid(product)


def pairs_auc(folder, held_out, vocabulary):
    """AUC of true pairs of neighbors against random ones, by the saved model."""
    random = numpy.random.RandomState(5)
    word, near = held_out[:-1], held_out[1:]
    other = held_out[random.randint(0, len(held_out), len(word))]
    scope, executor = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        program, _, fetches = fluid.io.load_inference_model(folder, executor)
    true, false = (executor.run(program, feed={"word": word[:, None], "near": n[:, None]}, fetch_list=fetches,
                                scope=scope)[0] for n in (near, other))
    return criteo.auc(numpy.concatenate([true, false]), numpy.repeat([1, 0], len(word)))


def nearest(scope, words, shown):
    vectors = numpy.array(scope.find_var("word_vectors").get_tensor())
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    for word in shown:
        if word in words:
            best = numpy.argsort(-vectors.dot(vectors[words.index(word)]))[1:6]
            print("%s: %s" % (word, ", ".join(words[i] for i in best)))


def train(shared, ids, words, arguments):
    """Trains one way and prints how good and how fast it is."""
    way = "shared" if shared else "independent"
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = build(len(words), shared)
        executor = fluid.Executor(fluid.CPUPlace())
        executor.run(startup)
        held_out, ids, random = ids[-len(ids) // 10:], ids[:-len(ids) // 10], numpy.random.RandomState(3)
        passes, spent = 3 if arguments.fast else 5, 0.0
        for _ in range(passes):
            for batch in windows(ids, random, len(words), 200, shared):
                began = time.monotonic()
                executor.run(main, feed=batch, fetch_list=[loss])
                spent += time.monotonic() - began
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            feeds, target = score(len(words))
            model = os.path.join(arguments.out, "model_" + way)
            clicks.save(model, feeds, target, executor, fluid.default_main_program(), SCHEMA)
        print("%s negatives, AUC of pairs: %.4f" % (way, pairs_auc(model, held_out, len(words))))
        print("%s negatives, words a second in training: %d" % (way, passes * len(ids) / spent))
        nearest(scope, words, ("sister", "happy", "horses", "letter"))


def main(arguments):
    ids, words, name = text(arguments.fast)
    print("data: %s, %d words, %d different ones" % (name, len(ids), len(words)))
    for shared in (False, True):
        train(shared, ids, words, arguments)


if __name__ == "__main__":
    main(clicks.parsed(__doc__))
