"""Nets of tests/models at sizes that people train: found by name, grown, built and run (models.py, model_side.py).

A net is grown in three ways, each of which the builder may refuse: `sizes`, the constants of its module (words, hidden
units, lengths); `wide`, a factor for the channels of convolutions; `times`, how often the rows of a batch are repeated.
Images have `pixels` times the side. Python 3.7 is the oldest interpreter that must read this file.
"""
import contextlib
import importlib
import inspect
import os
import re
import sys

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "models")
PARTS = ("harness", "image_inputs", "sequence_inputs", "click_inputs", "detection_parts", "segmentation_parts", "measures")

#: Constants of modules, of the size that public programs give them. The others stay a tenth.
SIZES = {
    "click_inputs": dict(IDS=10000, DENSE=13, D=16),
    "nets_agents": dict(OBS=16, BATCH=64),
    "nets_decoding": dict(VOCAB=2000, HIDDEN=128, BATCH=32),
    "nets_graphs": dict(NODES=512, FEATURES=64, HIDDEN=64),
    "nets_interest": dict(ITEMS=5000, CATS=500, D=32),
    "nets_language": dict(VOCAB=5000, HIDDEN=200, BATCH=20, STEPS=20),
    "nets_matching": dict(VOCAB=5000, D=64),
    "nets_old_habits": dict(VOCAB=2000, D=64, H=64),
    "nets_reading": dict(VOCAB=5000, D=64, H=64),
    "nets_sessions": dict(ITEMS=2000, D=64, BATCH=64),
    "nets_speech": dict(),
    "nets_tagging": dict(VOCAB=5000),
    "nets_transformer": dict(VOCAB=2000, MODEL=128, HEADS=8, INNER=512, LENGTH=32, BATCH=16),
    "nets_translation": dict(VOCAB=2000, WORD=64, HIDDEN=128),
    "nets_words": dict(VOCAB=2000, D=64),
    "nets_gan": dict(NOISE=64),
}
#: Tried in this order, the largest first.
GROWTHS = [dict(sizes=s, pixels=p, wide=w, times=t)
           for s, p, w, t in ((True, 2, 6, 8), (True, 1, 6, 8), (True, 1, 1, 16), (True, 1, 1, 1), (False, 1, 1, 16),
                              (False, 1, 1, 1))]
CONVOLUTIONS = ("conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "deformable_conv")
MOST_CHANNELS = 1024


def modules():
    """{net: the module that has it}"""
    found = {}
    for file in sorted(os.listdir(FOLDER)):
        if file.startswith("nets_") and file.endswith(".py"):
            with open(os.path.join(FOLDER, file)) as text:
                found.update((name, file[:-3]) for name in re.findall(r'^@net\("(\w+)"', text.read(), re.M))
    return found


def load(name, growth):
    """The Net of that name, whose module is read again, with the constants of `growth`."""
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    for module in [m for m in sys.modules if m.startswith("nets_") or m in PARTS]:
        del sys.modules[module]
    parts = [importlib.import_module(part) for part in PARTS]
    if growth["pixels"] > 1:
        grow_images(sys.modules["image_inputs"], growth["pixels"])
    for part in parts:
        vars(part).update(SIZES.get(part.__name__, {}) if growth["sizes"] else {})
    module = importlib.import_module(modules()[name])
    for own in [m for m in sys.modules if m.startswith("nets_")] if growth["sizes"] else ():
        vars(sys.modules[own]).update(SIZES.get(own, {}))
    assert name in sys.modules["harness"].NETS, "{} is not in {}".format(name, module.__name__)
    return sys.modules["harness"].NETS[name]


def grow_images(module, pixels):
    images, inputs = module.images, module.inputs
    module.images = lambda name, size, *more, **options: images(name, size * pixels, *more, **options)
    module.inputs = lambda fluid, size: inputs(fluid, size * pixels)


@contextlib.contextmanager
def widened(fluid, factor):
    """Convolutions that are built inside have `factor` times the channels; depthwise ones stay depthwise."""
    originals = {name: getattr(fluid.layers, name) for name in CONVOLUTIONS if factor > 1}

    def wide(original):
        signature = inspect.signature(original)

        def conv(*given, **named):
            bound = signature.bind(*given, **named)
            a = bound.arguments
            groups = a.get("groups") or 1
            if groups > 1 and groups * factor == a["input"].shape[1]:
                a["groups"] = groups * factor
            a["num_filters"] = int(a["num_filters"]) * factor
            if a["num_filters"] > MOST_CHANNELS:
                raise ValueError("{} channels".format(a["num_filters"]))
            return original(*bound.args, **bound.kwargs)
        return conv

    for name, original in originals.items():
        setattr(fluid.layers, name, wide(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(fluid.layers, name, original)


def repeated(value, times):
    """The rows of a batch, `times` over: of an array, or of (array, sequence lengths)."""
    if isinstance(value, tuple):
        array, lengths = value
        return np.concatenate([np.asarray(array)] * times), [list(level) * times for level in lengths]
    return np.concatenate([np.asarray(value)] * times)


class Work:
    """A net that is built and initialized; run() is one step of it."""

    def __init__(self, fluid, name, growth):
        self.fluid, net = fluid, load(name, growth)
        if not fluid.__name__.startswith("paddle"):     # a net that shows what 1.8.5 omits must omit it here, too
            fluid.set_flags({"FLAGS_fluid_exact": "1.8.5" if net.exact else ""})
        with widened(fluid, growth["wide"]):
            self.trained = sys.modules["harness"].Trained(net, fluid)
        built = self.trained.built
        runs = built.get("runs") or [dict(program=self.trained.main, fetch=built["fetch"])]
        self.steps = [[(run["program"], self.feed(run, step, growth["times"]), run["fetch"]) for run in runs]
                      for step in range(net.steps)]
        self.number, self.cached = 0, True

    def feed(self, run, step, times):
        given, result = run.get("feed"), {}
        for name, value in (given if callable(given) else self.trained.built["feed"])(step).items():
            if given is not None and not callable(given) and name not in given:
                continue
            var = run["program"].global_block().vars.get(name)
            if times > 1 and var is not None and len(var.shape) and (var.shape[0] or -1) < 0:
                value = repeated(value, times)
            if isinstance(value, tuple):
                value = self.fluid.create_lod_tensor(np.asarray(value[0]), value[1], self.fluid.CPUPlace())
            result[name] = value
        return result

    def start(self, described):
        """Gives the parameters the values that follow from `described` (measures.describe)."""
        self.trained.restart(described)
        self.number = 0

    def describe(self):
        return sys.modules["measures"].describe(self.trained)

    def run(self):
        """One step: the sum of its first fetch."""
        first = None
        executor, step = self.trained.executor, self.steps[self.number % len(self.steps)]
        self.number += 1
        with self.fluid.scope_guard(self.trained.scope):
            for program, feed, fetch in step:
                rows = executor.run(program, feed=feed, fetch_list=fetch, return_numpy=False,
                                    use_program_cache=self.cached)
                first = rows[0] if first is None else first
        return first

    def losses(self, steps):
        return [float(np.array(self.run()).astype("float64").sum()) for _ in range(steps)]
