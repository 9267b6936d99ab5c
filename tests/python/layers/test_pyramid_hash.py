"""The gradient of embeddings of word sequences: each number goes back to where it was found."""
import numpy as np

import anabranch.fluid as fluid

# Where 1.8.5 finds the two parts of the embeddings of [1, 2], [2, 3], [3, 4], [1, 2, 3] and [2, 3, 4].
PLACES = [(3, 95), (64, 72), (53, 26), (66, 78), (84, 83)]


def test_the_gradient_goes_where_the_numbers_were_found():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        words, table = fluid.data("words", [None, 1], "int32", lod_level=1), fluid.data("w", [104, 1])
        table.stop_gradient = False
        block = program.global_block()
        outs = {slot: [block.create_var(name=slot)] for slot in ("Out", "DropPos", "X_Temp_Out")}
        block.append_op(type="pyramid_hash", inputs={"X": [words], "W": [table]}, outputs=outs,
                        attrs={"num_emb": 8, "space_len": 100, "rand_len": 4, "pyramid_layer": 3, "is_training": 1})
        weights = fluid.data("weights", [None, 8])
        gradient, = fluid.gradients([fluid.layers.reduce_sum(block.var("Out") * weights)], [table])
    feed = {"words": fluid.create_lod_tensor(np.array([[1], [2], [3], [4]], "int32"), [[4]], fluid.CPUPlace()),
            "w": np.zeros((104, 1), "float32"), "weights": np.arange(40, dtype="float32").reshape(5, 8)}
    expected = np.zeros(104, "float32")
    for row, pair in zip(feed["weights"], PLACES):
        for k, place in enumerate(pair):
            expected[place:place + 4] += row[4 * k:4 * k + 4]
    got = fluid.Executor().run(program, feed=feed, fetch_list=[gradient])[0]
    np.testing.assert_array_equal(got.ravel(), expected)
