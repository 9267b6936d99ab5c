"""Reads lines of handwritten digits, with convolutions, a GRU in both directions over the columns, and CTC.

    line [1, 8, 56] -> convolutions -> im2sequence -> GRU both ways -> scores of ten digits and a blank -> warpctc

The labels do not contain the positions of the digits: CTC finds them. The figures are the edit distance per
digit after ctc_greedy_decoder, and the share of lines without errors. The baseline cuts a line at columns without ink
and takes the known image that is nearest to each part. The model is saved, loaded and tested again.

Data: the handwritten digits of scikit-learn, 8 x 8 pixels each, 3 to 6 of them side by side; some touch. No digit of
a test line occurs in a training line.

Expected output: an error rate far below the baseline's.
"""
import os
import time

import numpy
import sequence_data

HIGH, WIDE, BLANK, WIDTH, BATCH = 8, 56, 10, 48, 32


def line(images, labels, random):
    """(pixels [8, 56], digits): the ink of neighbors may touch or overlap by a column."""
    pixels, expected = numpy.zeros((HIGH, WIDE), "float32"), []
    at = random.randint(0, 3)
    for _ in range(random.randint(3, 7)):
        i = random.randint(len(images))
        columns = numpy.flatnonzero(images[i].any(axis=0))
        ink = images[i][:, columns[0]:columns[-1] + 1]
        if at + ink.shape[1] > WIDE:
            break
        place = pixels[:, at:at + ink.shape[1]]
        numpy.maximum(place, ink, out=place)
        expected.append(int(labels[i]))
        at += ink.shape[1] + random.randint(-1, 4)
    return pixels, expected


def lines(images, labels, count, seed):
    random = numpy.random.RandomState(seed)
    return [line(images, labels, random) for _ in range(count)]


def cut_and_nearest(images, labels, pixels):
    """The baseline."""
    def padded(ink):
        wide = numpy.zeros((HIGH, HIGH))
        ink = ink[:, :HIGH]
        begin = (HIGH - ink.shape[1]) // 2
        wide[:, begin:begin + ink.shape[1]] = ink
        return wide.ravel()

    inked = numpy.concatenate([[0], pixels.any(axis=0), [0]])
    bounds = numpy.flatnonzero(numpy.diff(inked))
    flat = images.reshape(len(images), -1)
    return [int(labels[((flat - padded(pixels[:, a:b])) ** 2).sum(axis=1).argmin()])
            for a, b in zip(bounds[::2], bounds[1::2])]


def network(fluid, pixels):
    """Scores of the digits and the blank, from left to right."""
    L = fluid.layers
    image = L.scale(L.reshape(pixels, [-1, 1, HIGH, WIDE]), 1 / 16.0)
    image = L.conv2d(image, 16, 3, padding=1, act="relu", param_attr="conv1", bias_attr="conv1_bias")
    image = L.pool2d(image, [2, 1], "max", [2, 1])
    image = L.conv2d(image, 32, 3, padding=1, act="relu", param_attr="conv2", bias_attr="conv2_bias")
    image = L.pool2d(image, 2, "max", 2)
    columns = L.im2sequence(image, filter_size=[HIGH // 4, 1], stride=[1, 1])
    ways = [L.dynamic_gru(L.fc(columns, 3 * WIDTH, param_attr="%s_in" % name, bias_attr="%s_in_bias" % name), WIDTH,
                          param_attr="%s_gru" % name, bias_attr="%s_gru_bias" % name, is_reverse=name == "back")
            for name in ("forth", "back")]
    return L.fc(ways, BLANK + 1, param_attr=["score_forth", "score_back"], bias_attr="score_bias")


def train(fluid, executor, known, passes):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        pixels = fluid.data("pixels", [None, HIGH * WIDE])
        digits = fluid.data("digits", [None, 1], "int32", lod_level=1)
        loss = fluid.layers.mean(fluid.layers.warpctc(network(fluid, pixels), digits, blank=BLANK))
        rate = fluid.layers.piecewise_decay([passes * (len(known) // BATCH) * 2 // 3], [0.003, 0.0005])
        fluid.optimizer.Adam(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)
    executor.run(startup)
    random = numpy.random.RandomState(2)
    for number in range(passes):
        losses = []
        for some in sequence_data.batches(known, BATCH, random):
            feed = {"pixels": numpy.stack([image.ravel() for image, _ in some]),
                    "digits": sequence_data.joined(fluid, [digits for _, digits in some], "int32")}
            losses.append(executor.run(main, feed=feed, fetch_list=[loss])[0])
        print("pass %d, loss: %.4f" % (number + 1, numpy.mean(losses)))


def reader(fluid):
    """(program, the digits of each line)."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        scores = network(fluid, fluid.data("pixels", [None, HIGH * WIDE]))
        return program, fluid.layers.ctc_greedy_decoder(scores, blank=BLANK)


def read(fluid, executor, program, target, images):
    found = []
    for some in sequence_data.batches(images, 100):
        out, = executor.run(program, feed={"pixels": numpy.stack([image.ravel() for image in some])},
                            fetch_list=[target], return_numpy=False)
        found += sequence_data.apart(out)
    return found


def report(fluid, name, got, expected):
    print("%s digit error rate: %.4f" % (name, sequence_data.error_rate(fluid, got, expected)))
    print("%s lines without an error: %.4f" % (name, sequence_data.exact_match(got, expected)))


def main(arguments):
    fluid = arguments.fluid
    images, labels = sequence_data.digits()
    print("data: scikit-learn's digits, %d images in lines" % len(images))
    of_train, of_test = sequence_data.parts(list(range(len(images))), share=0.25)
    known = lines(images[of_train], labels[of_train], 1500 if arguments.fast else 3000, seed=1)
    test = lines(images[of_test], labels[of_test], 500, seed=2)
    expected = [digits for _, digits in test]
    sequence_data.write(arguments.out, "pixels.txt", [pixels.ravel() for pixels, _ in test])
    sequence_data.write(arguments.out, "digits.txt", expected)
    guessed = [cut_and_nearest(images[of_train], labels[of_train], pixels) for pixels, _ in test]
    report(fluid, "cut and nearest,", guessed, expected)
    executor, begin = fluid.Executor(fluid.CPUPlace()), time.time()
    train(fluid, executor, known, 10 if arguments.fast else 20)
    print("trained in %.0f s" % (time.time() - begin))
    program, target = reader(fluid)
    report(fluid, "CTC", read(fluid, executor, program, target, [pixels for pixels, _ in test]), expected)
    folder = os.path.join(arguments.out, "model")
    schema = sequence_data.ROW % ("pixels", HIGH * WIDE - 1)
    sequence_data.save(fluid, folder, ["pixels"], target, executor, program, schema)
    with fluid.scope_guard(fluid.Scope()):
        program, _, (target,) = fluid.io.load_inference_model(folder, executor)
        report(fluid, "CTC, loaded,", read(fluid, executor, program, target, [pixels for pixels, _ in test]), expected)


if __name__ == "__main__":
    main(sequence_data.parsed(__doc__))
