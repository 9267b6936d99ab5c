"""Recurrent layers on a simulated device learn what they learn on the CPU, and no recurrent operator is left there."""
import os

import forks
import pytest
from device_recurrent_runs import check
from device_runs import pytestmark, run  # noqa: F401
from repository import ROOT

LAYERS = """
# Both directions, one upon the other.
def lstms(x):
    for depth, peepholes in enumerate((True, False)):
        sums = layers.fc(x, 4 * 5)
        ahead = layers.dynamic_lstm(sums, 4 * 5, use_peepholes=peepholes)
        back, cells = layers.dynamic_lstm(sums, 4 * 5, is_reverse=True, use_peepholes=peepholes,
                                          candidate_activation="relu", cell_activation="identity")
        x = layers.concat([ahead[0], back, cells], axis=1)
    return x

def grus(x):
    for origin in (False, True):
        sums = layers.fc(x, 3 * 5)
        ahead = layers.dynamic_gru(sums, 5, origin_mode=origin)
        back = layers.dynamic_gru(sums, 5, is_reverse=True, candidate_activation="relu", bias_attr=False)
        x = layers.concat([ahead, back], axis=1)
    return x

# The last state of an encoder is the first one of a decoder.
def passed_on(x):
    last = layers.sequence_last_step(layers.dynamic_gru(layers.fc(x, 3 * 5), 5))
    first = layers.fc(last, 5, act="tanh")
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 4 * 5), 4 * 5, h_0=first, c_0=layers.fc(last, 5))
    return layers.concat([hidden, layers.dynamic_gru(layers.fc(x, 3 * 5), 5, h_0=first)], axis=1)

def projected(x):
    sums = layers.fc(x, 4 * 5)
    plain, cells = layers.dynamic_lstmp(sums, 4 * 5, 3, proj_activation="identity")
    cut, _ = layers.dynamic_lstmp(sums, 4 * 5, 7, is_reverse=True, use_peepholes=False, cell_clip=0.3, proj_clip=0.2)
    return layers.concat([plain, cells, cut], axis=1)
"""


@pytest.mark.parametrize("order", ["random", "starved"])
@pytest.mark.parametrize("net", ["lstms", "grus", "passed_on", "projected"])
def test_layers_over_sequences_learn_what_they_learn_on_the_cpu(net, order):
    check(LAYERS + f"same(over_sequences({net}))", simdevice_order=order)


def test_the_smallest_batches():
    check(LAYERS + """
def feeds(*all_lengths):
    r = np.random.RandomState(2)
    return [{"x": fluid.create_lod_tensor(r.rand(sum(lengths), 6).astype("float32"), [lengths], fluid.CPUPlace())}
            for lengths in all_lengths]
for net in (lstms, grus):
    same(over_sequences(net), steps=5, feeds=feeds([1], [1, 1], [3], [0, 2, 0], [9, 1]))
""")


@pytest.mark.parametrize("options", [{"is_bidirec": True}, {}, {"is_bidirec": True, "dropout_prob": 0.4},
                                     {"dropout_prob": 1.0}])
def test_a_stacked_lstm_of_a_dense_batch(options):
    check(f"""
def model():
    x = fluid.data("x", [4, 3, 6])
    ways = {2 if options.get("is_bidirec") else 1}
    h, c = (layers.fc(fluid.data(name, [3, 6]), 3 * ways * 5) for name in ("h", "c"))
    h, c = (layers.transpose(layers.reshape(v, [3, 3 * ways, 5]), [1, 0, 2]) for v in (h, c))
    made = layers.lstm(layers.fc(x, 6, num_flatten_dims=2), h, c, 4, 5, 3, **{options!r})
    loss = layers.sums([layers.mean(layers.square(value)) for value in made])
    fluid.optimizer.SGD(0.2).minimize(loss)
    rows = lambda rng, *shape: rng.normal(0, 1, shape).astype("float32")
    return loss, lambda rng: {{"x": rows(rng, 4, 3, 6), "h": rows(rng, 3, 6), "c": rows(rng, 3, 6)}}
same(model)
""")


@pytest.mark.parametrize("net", ["lstms", "grus", "passed_on", "projected"])
def test_batches_of_equal_lengths_are_captured_in_graphs(net):
    check(LAYERS + f"""
def feeds(seed, lengths, count=5):
    r = np.random.RandomState(seed)
    return [{{"x": fluid.create_lod_tensor(r.rand(sum(lengths), 6).astype("float32"), [lengths], fluid.CPUPlace())}}
            for _ in range(count)]

def launched(batches):
    out, said = learn(over_sequences({net}), fluid.CUDAPlace(0), steps=len(batches), feeds=batches)
    found = re.search(r"in (\\d+) graphs?, launched (\\d+) times?", said)
    return out, found and tuple(map(int, found.groups()))

assert launched(feeds(1, [3, 1, 4]))[1] == (1, 4)  # the first run goes node by node
batches = feeds(1, [3, 1, 4]) + feeds(2, [2, 6, 5, 1]) + feeds(3, [3, 1, 4])
by_graphs, graphs = launched(batches)
assert graphs[1] >= 8, graphs
fluid.set_flags({{"FLAGS_device_graphs": 0}})
by_nodes, none = launched(batches)
assert none is None
for a, b in zip(by_graphs, by_nodes):
    np.testing.assert_array_equal(a, b)
""")


PLUGIN_API = os.path.join(ROOT, "src", "device", "plugin_api.h")
PLANS = f"""
import ctypes

# Counts the calls of one of the plug-in's functions from now on.
class Counted:
    def __init__(self, name, *types):
        text = open({PLUGIN_API!r}).read()
        table = text.split("typedef struct ab_device_api")[1]
        members = re.findall(r"^  (?:int|size_t) \\(\\*(\\w+)\\)\\(", table, re.M)
        plugin = ctypes.CDLL({forks.plugin()!r})
        plugin.anabranch_device_1.restype = ctypes.c_void_p
        at = plugin.anabranch_device_1() + 16 + 8 * members.index(name)  # after size, flags and name
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        place = ctypes.c_void_p.from_address(at)
        self.calls, function = 0, kind(place.value)
        def count(*arguments):
            self.calls += 1
            return function(*arguments)
        self.kept = kind(count)
        place.value = ctypes.cast(self.kept, ctypes.c_void_p).value
"""


@pytest.mark.parametrize("net", ["lstms", "grus", "projected"])
def test_products_are_planned_once_for_each_number_of_rows(net):
    """The steps of the third batch have numbers of rows that are new after the first step; those of no later one."""
    check(LAYERS + PLANS + f"""
fluid.set_flags({{"FLAGS_device_graphs": 0}})
pointer = ctypes.c_void_p
plans = Counted("library_plan", ctypes.c_int, pointer, pointer, ctypes.c_size_t, pointer, pointer)
class Lazy:
    def __init__(self, values):
        self.values = values
    def __getitem__(self, _):
        return next(self.values)
seen, r = [], np.random.RandomState(2)
def feeds():
    for lengths in ([4, 3, 1], [1, 3, 4], [4, 2, 2], [6, 1, 1], [4, 4], [2, 2, 4], [8]):
        seen.append(plans.calls)
        yield {{"x": fluid.create_lod_tensor(r.rand(8, 6).astype("float32"), [lengths], fluid.CPUPlace())}}
learn(over_sequences({net}), fluid.CUDAPlace(0), steps=7, feeds=Lazy(feeds()))
seen.append(plans.calls)
assert 0 < seen[1] == seen[2] < seen[3] and len(set(seen[3:])) == 1, seen
""")
