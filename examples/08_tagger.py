"""Finds the words of a text without spaces, with a tagger and a CRF.

    letters and their neighbors -> GRU both ways -> scores of four tags -> linear_chain_crf, crf_decoding

A tag says whether a letter is the first, an inner or the last letter of a word, or a word by itself. The figure is the
F1 score of the words, from chunk_eval. One baseline takes the longest known word first (maximum matching); the other
takes the best tag of each letter from the same scores. The model is saved, loaded and tested again.

Data: the beginning of Jane Austen's Persuasion, without its spaces; a tenth of the sentences is held out.

Expected output: an F1 score well above that of maximum matching.
"""
import os
import time

import numpy
import sequence_data

BEGIN, INSIDE, END, SINGLE = range(4)
EDGE, LETTERS, EMBEDDING, WIDTH, BATCH = 26, 27, 24, 64, 16


def tagged(words):
    """(letters, tags) of a sentence."""
    tags = [tag for word in words
            for tag in ([SINGLE] if len(word) == 1 else [BEGIN] + [INSIDE] * (len(word) - 2) + [END])]
    return [ord(c) - ord("a") for c in "".join(words)], tags


def cut(letters, tags):
    """The words that tags make of letters."""
    words = [[letters[0]]]
    for letter, before, tag in zip(letters[1:], tags, tags[1:]):
        if before in (END, SINGLE) or tag in (BEGIN, SINGLE):
            words.append([])
        words[-1].append(letter)
    return ["".join(chr(c + ord("a")) for c in word) for word in words]


def longest_first(known, words):
    """The baseline: from left to right the longest word that is known, else a letter."""
    text, found = "".join(words), []
    while text:
        found.append(next((text[:n] for n in range(min(20, len(text)), 1, -1) if text[:n] in known), text[0]))
        text = text[len(found[-1]):]
    return tagged(found)[1]


def network(fluid, letters):
    """Scores of the tags of each letter."""
    L = fluid.layers
    rows = L.embedding(letters, [LETTERS, EMBEDDING], param_attr="letter_rows")
    near = L.sequence_conv(rows, 2 * WIDTH, filter_size=5, act="relu", param_attr="near", bias_attr="near_bias")
    ways = [L.dynamic_gru(L.fc(near, 3 * WIDTH, param_attr="%s_in" % name, bias_attr="%s_in_bias" % name), WIDTH,
                          param_attr="%s_gru" % name, bias_attr="%s_gru_bias" % name, is_reverse=name == "back")
            for name in ("forth", "back")]
    return L.fc(ways, 4, param_attr=["score_forth", "score_back"], bias_attr="score_bias")


def inputs(fluid):
    return [fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("letters", "tags")]


def train(fluid, executor, sentences, passes):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        letters, tags = inputs(fluid)
        costs = fluid.layers.linear_chain_crf(network(fluid, letters), tags, param_attr=fluid.ParamAttr("follows"))
        loss = fluid.layers.mean(costs)
        steps = passes * (len(sentences) // BATCH + 1)
        rate = fluid.layers.piecewise_decay([steps * 2 // 3], [0.003, 0.0005])
        fluid.optimizer.Adam(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)
    executor.run(startup)
    random = numpy.random.RandomState(2)
    for number in range(passes):
        losses = []
        for some in sequence_data.batches(sentences, BATCH, random):
            feed = {name: sequence_data.joined(fluid, part) for name, part in zip(("letters", "tags"), zip(*some))}
            losses.append(executor.run(main, feed=feed, fetch_list=[loss])[0])
        print("pass %d, loss: %.4f" % (number + 1, numpy.mean(losses)))


def tagger(fluid):
    """(program, the tags by the CRF, the best tags of each letter by itself)."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        scores = network(fluid, inputs(fluid)[0])
        fluid.layers.create_parameter([6, 4], "float32", attr=fluid.ParamAttr("follows"))
        path = fluid.layers.crf_decoding(scores, param_attr=fluid.ParamAttr("follows"))
        best = fluid.layers.lod_reset(fluid.layers.reshape(fluid.layers.argmax(scores, axis=1), [-1, 1]), scores)
    return program, path, best


def tags_of(fluid, executor, program, target, sentences):
    found = []
    for some in sequence_data.batches([letters for letters, _ in sentences], 64):
        out, = executor.run(program, feed={"letters": sequence_data.joined(fluid, some)}, fetch_list=[target],
                            return_numpy=False)
        found += sequence_data.apart(out)
    return found


def f1(fluid, got, expected):
    """F1 of the words; both ends of a word must be right."""
    program, metric = fluid.Program(), fluid.metrics.ChunkEvaluator()
    with fluid.program_guard(program, fluid.Program()):
        mine, right = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("mine", "right"))
        counts = fluid.layers.chunk_eval(mine, right, "IOBES", 1)[3:]
    feed = {"mine": sequence_data.joined(fluid, got), "right": sequence_data.joined(fluid, expected)}
    metric.update(*fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=list(counts)))
    return numpy.ravel(metric.eval()[2])[0]


def main(arguments):
    fluid = arguments.fluid
    sentences = sequence_data.sentences()
    print("data: Persuasion by Jane Austen, %d sentences" % len(sentences))
    known, held_out = sequence_data.parts(sentences)
    known = known[:400] if arguments.fast else known
    test = [tagged(words) for words in held_out]
    expected = [tags for _, tags in test]
    sequence_data.write(arguments.out, "letters.txt", [letters for letters, _ in test])
    sequence_data.write(arguments.out, "tags.txt", expected)
    vocabulary = {word for words in known for word in words}
    print("maximum matching, F1: %.4f" % f1(fluid, [longest_first(vocabulary, words) for words in held_out], expected))
    executor, begin = fluid.Executor(fluid.CPUPlace()), time.time()
    train(fluid, executor, [tagged(words) for words in known], 4 if arguments.fast else 8)
    print("trained in %.0f s" % (time.time() - begin))
    program, path, best = tagger(fluid)
    print("best tag of each letter, F1: %.4f" % f1(fluid, tags_of(fluid, executor, program, best, test), expected))
    print("CRF, F1: %.4f" % f1(fluid, tags_of(fluid, executor, program, path, test), expected))
    folder = os.path.join(arguments.out, "model")
    sequence_data.save(fluid, folder, ["letters"], path, executor, program, sequence_data.SEQUENCE % "letters")
    with fluid.scope_guard(fluid.Scope()):
        program, _, (path,) = fluid.io.load_inference_model(folder, executor)
        got = tags_of(fluid, executor, program, path, test)
    print("CRF, loaded, F1: %.4f" % f1(fluid, got, expected))
    print("for example:", " ".join(cut(test[0][0], got[0])))


if __name__ == "__main__":
    main(sequence_data.parsed(__doc__))
