"""Programs that decode and recur, and what Paddle 1.8.5 computes with them.

    decoder_values.py --fluid paddle.fluid      records data/decoder_values.json.gz

All parameters are drawn from their names, so that both implementations begin alike. Runs on Python 3.7 and later.
"""
import argparse
import gzip
import importlib
import json
import os
import warnings
import zlib

import numpy as np
from layer_cases import decoders as made
from repository import DATA

RECORD = os.path.join(DATA, "decoder_values.json.gz")
RANDOM = np.random.RandomState(3)
H, X = RANDOM.uniform(-1, 1, (4, 6)).astype("float32"), RANDOM.uniform(-1, 1, (4, 5, 4)).astype("float32")
LENGTHS, START = np.array([5, 2, 0, 3], "int64"), np.zeros(4, "int64")
WORDS, NEXT = (RANDOM.randint(2, 10, (4, 5)).astype("int64") for _ in range(2))
#: name: (function of fluid and layers that returns what is fetched, feeds, steps)
VALUES = {}


def _cell(f, L, lstm):
    """A cell and its first states."""
    h = L.scale(f.data("h", [None, 6]), 1.0)
    return (L.LSTMCell(hidden_size=6), [h, L.scale(h, 0.5)]) if lstm else (L.GRUCell(hidden_size=6), h)


def _beams(size, lstm, with_ids, **k):
    def build(f, L):
        cell, first = _cell(f, L, lstm)
        decoder = L.BeamSearchDecoder(cell, 0, 1, size, made.emb(f), made.out(L))
        ids, last, lengths = L.dynamic_decode(decoder, inits=first, return_length=True, **k)
        found = [last.log_probs, L.cast(last.finished, "int32")]
        return found + [last.lengths, last.cell_states, lengths, ids] if with_ids else found
    return build


def _basic(f, L, cell, train, time_major=False):
    if not train:
        return L.BasicDecoder(cell, L.GreedyEmbeddingHelper(made.emb(f), f.data("s", [None], "int64"), 1), made.out(L))
    words, lengths = L.scale(f.data("x", [None, None, 4]), 1.0), f.data("len", [None], "int64")
    return L.BasicDecoder(cell, L.TrainingHelper(words, lengths, time_major), made.out(L))


def _tokens(train, lstm, time_major, **k):
    def build(f, L):
        cell, first = _cell(f, L, lstm)
        return L.dynamic_decode(_basic(f, L, cell, train, time_major), inits=first, return_length=True, **k)
    return build


def _taught(lstm, impute):
    """The loss of a decoder that is trained with a helper."""
    def build(f, L):
        cell, _ = _cell(f, L, lstm)
        h = L.fc(f.data("h2", [None, 6]), 6)
        words = f.embedding(f.data("w", [None, None], "int64"), [10, 4], param_attr="emb")
        lengths = f.data("len", [None], "int64")
        decoder = L.BasicDecoder(cell, L.TrainingHelper(words, lengths), made.out(L))
        (out, _), _, _ = L.dynamic_decode(decoder, [h, h] if lstm else h, return_length=True, impute_finished=impute)
        y = f.data("y", [None, None], "int64")
        mask = L.sequence_mask(lengths, maxlen=L.shape(y)[1], dtype="float32")
        loss = L.reduce_mean(L.squeeze(L.softmax_with_cross_entropy(out, L.unsqueeze(y, [2])), [2]) * mask)
        f.optimizer.Adam(0.05).minimize(loss)
        return [loss]
    return build


def _attending(f, L):
    """Two cells, of which the first sees what the state of the second attends to."""
    class Attending(L.RNNCell):
        def __init__(self):
            self.first, self.second = L.GRUCell(6, name="first"), L.LSTMCell(6, name="second")

        def call(self, inputs, states, source, keys):
            query = L.unsqueeze(L.fc(states["l"][0], 6, bias_attr=False, param_attr="query"), [1])
            weights = L.softmax(L.matmul(query, keys, transpose_y=True))
            context = L.squeeze(L.matmul(weights, source), [1])
            outputs, g = self.first(L.concat([inputs, context], 1), states["g"])
            outputs, l = self.second(outputs, states["l"])
            return L.concat([outputs, context], 1), {"g": g, "l": l}

    source, h = L.scale(f.data("x", [None, 5, 4]), 1.0), L.scale(f.data("h", [None, 6]), 1.0)
    keys = L.fc(source, 6, num_flatten_dims=2, param_attr="keys", bias_attr=False)
    return Attending(), source, keys, {"g": h, "l": [h, L.scale(h, 0.3)]}


def _attended_search(size, **k):
    def build(f, L):
        cell, source, keys, first = _attending(f, L)
        decoder = L.BeamSearchDecoder(cell, 0, 1, size, made.emb(f), made.out(L))
        source, keys = (decoder.tile_beam_merge_with_batch(x, size) for x in (source, keys))
        ids, last, lengths = L.dynamic_decode(decoder, inits=first, max_step_num=7, return_length=True, source=source,
                                              keys=keys, **k)
        return [ids, last.log_probs, lengths, last.cell_states]
    return build


def _attended_training(impute):
    def build(f, L):
        cell, source, keys, first = _attending(f, L)
        words = f.embedding(f.data("w", [None, None], "int64"), [10, 4], param_attr="emb")
        decoder = L.BasicDecoder(cell, L.TrainingHelper(words, f.data("len", [None], "int64")), made.out(L))
        (out, _), _ = L.dynamic_decode(decoder, inits=first, source=source, keys=keys, impute_finished=impute)
        loss = L.reduce_mean(L.softmax_with_cross_entropy(out, L.unsqueeze(f.data("y", [None, None], "int64"), [2])))
        f.optimizer.Adam(0.02).minimize(loss)
        return [loss]
    return build


def _cells(lstm, lengths, time_major, reverse, first, trained):
    def build(f, L):
        x = L.fc(f.data("x", [5, None, 4] if time_major else [None, 5, 4]), 4, num_flatten_dims=2)
        cell, states = _cell(f, L, lstm)
        outputs, last = L.rnn(cell, x, initial_states=states if first else None, time_major=time_major,
                              sequence_length=f.data("len", [None], "int64") if lengths else None, is_reverse=reverse)
        if not trained:
            return [outputs, last]
        loss = L.reduce_mean(L.square(outputs))
        f.optimizer.SGD(0.5).minimize(loss)
        return [loss]
    return build


def _contrib(layer, trained, with_lengths, with_first, **k):
    def build(f, L):
        first = [f.data(n, [None, None, 6]) for n in "hc"] if with_first else [None, None]
        x = f.data("x", [None, 5, 4] if k["batch_first"] else [5, None, 4])
        if trained:
            x = L.fc(x, 4, num_flatten_dims=2)
        run = getattr(f.contrib.layers, "basic_" + layer)
        lengths = f.data("len", [None], "int64") if with_lengths else None
        found = run(x, *first[:1 + (layer == "lstm")], hidden_size=6, sequence_length=lengths, **k)
        if not trained:
            return found
        loss = L.reduce_mean(L.square(found[0])) + L.reduce_mean(found[1])
        f.optimizer.SGD(0.5).minimize(loss)
        return [loss]
    return build


def _book(f, L, **k):
    """The loss of the decoder of the book, trained."""
    label = f.data("y", [None, 1], "int64", lod_level=1)
    loss = L.mean(L.cross_entropy(made.taught(f, L, **k), label))
    f.optimizer.Adagrad(0.1).minimize(loss)
    return [loss]


def _list():
    feed = {"h": H}
    for size in (1, 3, 5):
        for lstm in (False, True):
            for impute in (False, True):
                # where states are kept, beams have equal scores; 1.8.5 does not promise which of them comes first
                with_ids = size == 1 or not impute
                for time_major, is_test in ((False, False), (True, True)):
                    VALUES["beam_%d_%d%d%d" % (size, lstm, impute, is_test)] = _beams(
                        size, lstm, with_ids, max_step_num=9, impute_finished=impute, output_time_major=time_major,
                        is_test=is_test), feed, 1
    for train in (False, True):
        for lstm in (False, True):
            for impute in (False, True):
                for turned in (False, True):
                    more = {"x": X.transpose(1, 0, 2) if turned else X, "len": LENGTHS} if train else {"s": START}
                    VALUES["tokens_%d%d%d%d" % (train, lstm, impute, turned)] = _tokens(
                        train, lstm, turned, max_step_num=8, impute_finished=impute, is_test=turned,
                        output_time_major=turned), dict(feed, **more), 1
    for lstm in (False, True):
        for impute in (False, True):
            VALUES["taught_%d%d" % (lstm, impute)] = _taught(lstm, impute), {
                "h": H, "h2": H, "w": WORDS, "y": NEXT, "len": np.array([5, 2, 4, 3], "int64")}, 6


def _list_cells():
    feed = {"x": X, "h": H, "w": WORDS, "y": NEXT, "len": np.array([5, 3, 4, 2], "int64")}
    for size in (1, 2, 4):
        VALUES["attended_%d" % size] = _attended_search(size), feed, 1
    VALUES["attended_4_test"] = _attended_search(4, is_test=True, output_time_major=True), feed, 1
    for impute in (False, True):
        VALUES["attended_training_%d" % impute] = _attended_training(impute), feed, 5
    for lstm in (False, True):
        for lengths in (False, True):
            for time_major in (False, True):
                for reverse in (False, True):
                    # with several initial states 1.8.5 does not return
                    for first in (False, True)[:2 - lstm]:
                        for trained in (False, True):
                            how = lstm, lengths, time_major, reverse, first, trained
                            feed = {"x": X.transpose(1, 0, 2) if time_major else X, "h": H, "len": LENGTHS}
                            VALUES["cells_%d%d%d%d%d%d" % how] = _cells(*how), feed, 1 + 2 * trained


def _list_contrib():
    for layer in ("gru", "lstm"):
        for n in (1, 2):
            for bi in (False, True):
                for lengths in (False, True):
                    for trained, first, steps in ((False, False, 1), (False, True, 1), (True, False, 4)):
                        batch_first = not first
                        feed = {"x": X if batch_first else X.transpose(1, 0, 2), "len": LENGTHS}
                        states = np.resize(H, ((1 + bi) * n, 4, 6))
                        feed.update({"h": states, "c": states[::-1] * 0.5} if first else {})
                        VALUES["%s_%d%d%d%d%d" % (layer, n, bi, lengths, trained, first)] = _contrib(
                            layer, trained, lengths, first, num_layers=n, bidirectional=bi, batch_first=batch_first), \
                            feed, steps


def _translator(f, L):
    """The encoder of the book and the cell of its decoder."""
    words = L.embedding(f.data("src", [None, 1], "int64", lod_level=1), [20, 6])
    source = L.sequence_last_step(L.dynamic_gru(L.fc(words, 24), 8))
    c = f.contrib.decoder
    cell = c.StateCell(inputs={"x": None}, states={"h": c.InitState(init=source, need_reorder=True)}, out_state="h")
    cell.state_updater(lambda cell: cell.set_state(
        "h", L.fc([cell.get_state("h"), cell.get_input("x")], 8, act="tanh")))
    return cell


def _translation(f, L, searches):
    """The loss of the book's translator; or the sentences that it finds, with the same parameters."""
    cell = _translator(f, L)
    if searches:
        return made.searched(f, L, dict(beam_size=3, topk_size=20, max_len=6), cell)
    words = L.embedding(f.data("w", [None, 1], "int64", lod_level=1), [20, 6])
    decoder = f.contrib.decoder.TrainingDecoder(cell)
    with decoder.block():
        cell.compute_state(inputs={"x": decoder.step_input(words)})
        score = L.fc(cell.get_state("h"), 20, act="softmax")
        cell.update_states()
        decoder.output(score)
    loss = L.mean(L.cross_entropy(decoder(), f.data("y", [None, 1], "int64", lod_level=1)))
    f.optimizer.Adam(0.05).minimize(loss)
    return [loss]


def book(fluid, steps=40):
    """The translator of the book is trained to spell three words and then spells them."""
    sources, targets = [[4, 5], [6, 7, 8], [9]], [[0, 10, 11, 12, 1], [0, 13, 14, 1], [0, 15, 1]]
    place, scope = fluid.CPUPlace(), (fluid.core.Scope if hasattr(fluid.core, "Scope") else fluid.Scope)()
    rows = lambda lists: fluid.create_lod_tensor(
        np.array([[x] for each in lists for x in each], "int64"), [[len(each) for each in lists]], place)
    first = lambda dtype, value: fluid.create_lod_tensor(np.full((3, 1), value, dtype), [[1] * 3, [1] * 3], place)
    feeds = {"src": rows(sources), "w": rows([t[:-1] for t in targets]), "y": rows([t[1:] for t in targets])}
    found, executor = [], fluid.Executor(place)
    with fluid.scope_guard(scope):
        for searches in (False, True):
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup), fluid.unique_name.guard():
                fetched = _translation(fluid, fluid.layers, searches)
            if searches:
                feeds = {"src": feeds["src"], "ii": first("int64", 0), "is": first("float32", 0)}
            else:
                executor.run(startup)
                set_parameters(fluid, main, scope)
            for _ in range(1 if searches else steps):
                found += executor.run(main, feed=feeds, fetch_list=fetched, return_numpy=False)
    return [[np.array(v), [list(level) for level in v.recursive_sequence_lengths()]] for v in found]


def _list_named():
    levels = [[3, 1, 4]]
    rows = np.resize(WORDS, (8, 1)), np.resize(NEXT, (8, 1))
    source = np.resize(np.concatenate([H, H * 0.3], 1), (3, 8)).astype("float32")
    feed = {"ctx": source, "w": (rows[0], levels), "y": (rows[1], levels)}
    for two in (False, True):
        for reorder in (False, True):
            VALUES["book_train_%d%d" % (two, reorder)] = (
                lambda f, L, two=two, reorder=reorder: _book(f, L, two=two, reorder=reorder)), feed, 6
    one = [[1, 1, 1], [1, 1, 1]]
    feed = {"ctx": source, "ii": (np.zeros((3, 1), "int64"), one), "is": (np.ones((3, 1), "float32"), one)}
    for size in (1, 2, 3, 5):
        for two in (False, True):
            VALUES["book_search_%d%d" % (size, two)] = (lambda f, L, size=size, two=two: made.searched(
                f, L, dict(beam_size=size), two=two)), feed, 1
    VALUES["book"] = book
    VALUES["book_search_own"] = made.own_search, feed, 1
    VALUES["book_search_input"] = (lambda f, L: made.further(f, L, topk_size=5, beam_size=2, max_len=6)), dict(
        feed, z=source[:, :4]), 1
    VALUES["book_static"] = made.static, {"ctx": source, "e": (np.resize(X, (8, 6)), levels),
                                         "zz": (np.resize(X, (6, 3)), [[2, 2, 2]])}, 1


_list()
_list_cells()
_list_contrib()
_list_named()


def set_parameters(fluid, program, scope):
    """Numbers that follow from the names."""
    for parameter in program.all_parameters():
        tensor = scope.find_var(parameter.name).get_tensor()
        random = np.random.RandomState(zlib.crc32(parameter.name.encode()) % 100000)
        tensor.set(random.uniform(-0.6, 0.6, np.array(tensor).shape).astype("float32"), fluid.CPUPlace())


def compute(fluid, case):
    """[[values, lengths of sequences]] of all that the case fetches, of all steps."""
    if callable(case):
        return case(fluid)
    build, feeds, steps = case
    main, startup = fluid.Program(), fluid.Program()
    scope = (fluid.core.Scope if hasattr(fluid.core, "Scope") else fluid.Scope)()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope), \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fetched = made.leaves(build(fluid, fluid.layers))
        place = fluid.CPUPlace()
        executor = fluid.Executor(place)
        executor.run(startup)
        set_parameters(fluid, main, scope)
        feed = {k: fluid.create_lod_tensor(v[0], v[1], place) if isinstance(v, tuple) else v for k, v in feeds.items()}
        found = [v for _ in range(steps) for v in executor.run(main, feed=feed, fetch_list=fetched, return_numpy=False)]
    return [[np.array(v), [list(level) for level in v.recursive_sequence_lengths()]] for v in found]


def recorded(path=RECORD):
    """{case: what 1.8.5 computes}."""
    with gzip.open(path, "rt") as f:
        return json.load(f)


def _rounded(value):
    return [float("%.7g" % v) for v in value.ravel()] if value.dtype.kind == "f" else value.ravel().tolist()


def differences(fluid, case, expected):
    """How what the case computes here differs from what was recorded, value by value."""
    ours = compute(fluid, case)
    if len(ours) != len(expected):
        return ["%d values, expected %d" % (len(ours), len(expected))]
    found = []
    for k, ((value, levels), (shape, dtype, numbers, expected_levels)) in enumerate(zip(ours, expected)):
        if (list(value.shape), str(value.dtype), levels) != (shape, dtype, expected_levels):
            found.append("value %d: %s %s %s, expected %s %s %s" % (k, value.shape, value.dtype, levels, shape, dtype,
                                                                    expected_levels))
        elif not np.allclose(value.ravel().astype("float64"), numbers, rtol=1e-5, atol=1e-5):
            found.append("value %d: %s, expected %s" % (k, value.ravel().tolist(), numbers))
    return found


def main(values, path, document):
    """Records all cases of ``values`` with the implementation that --fluid names."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fluid", required=True)
    fluid = importlib.import_module(parser.parse_args().fluid)
    record = {name: [[list(v.shape), str(v.dtype), _rounded(v), levels] for v, levels in compute(fluid, case)]
              for name, case in values.items()}
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main(VALUES, RECORD, __doc__)
