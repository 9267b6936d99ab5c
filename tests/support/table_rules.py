"""Training of a growable table with each of its rules, in one process and on servers, and what is in the table then."""
import numpy as np

import anabranch.fluid as fluid
from anabranch import _core

STEPS, WIDTH, SAMPLES, IDS = 20, 6, 16, 32
LIMIT = 256 << 10
RULES = {
    "count": {"admit_count": 3},
    "probability": {"admit_probability": 0.3},
    "age": {"expire_after": 4},
    "lru": {"max_bytes": LIMIT},
    "lfu": {"max_bytes": LIMIT, "evict": "lfu"},
    "full": {"max_bytes": LIMIT, "evict": False},
    "score": {"score": fluid.ShowClickScore(delete_threshold=0.25, shrink_every=5), "max_bytes": LIMIT},
    "several": {"admit_probability": 0.9, "expire_after": 7, "max_bytes": LIMIT},
}


def network(rules, optimizer=lambda: fluid.optimizer.Adagrad(0.1)):
    """(main, startup, loss) of a regression over the sums of rows."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        y, counts = fluid.data("y", [None, 1]), fluid.data("counts", [None, 2])
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        table = fluid.GrowableTable("table", fluid.initializer.Uniform(-1, 1, seed=3), **rules)
        rows = fluid.layers.embedding(ids, [-1, WIDTH], is_sparse=True, param_attr=table)
        pooled = fluid.layers.sequence_pool(rows, "sum")
        if "score" in rules:
            pooled = fluid.layers.continuous_value_model(pooled, counts, use_cvm=False)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(pooled, 1), y))
        optimizer().minimize(loss)
    return main, startup, loss


def feed_of(step, rows=(0, SAMPLES)):
    """Samples [begin, end) of a batch: ids of a Zipf distribution that drifts, some of them new in each step."""
    random, (begin, end) = np.random.RandomState(step), rows
    ids = (random.zipf(1.3, (SAMPLES, IDS)) + 40 * step) % 5000
    ids[:, -20:] = random.randint(0, 2 ** 60, (SAMPLES, 20))
    clicks = random.randint(0, 2, SAMPLES)
    chosen = ids[begin:end].reshape(-1, 1).astype("int64")
    return {"ids": fluid.create_lod_tensor(chosen, [[IDS] * (end - begin)], fluid.CPUPlace()),
            "y": random.rand(SAMPLES, 1).astype("float32")[begin:end],
            "counts": np.stack([np.ones(SAMPLES), clicks], 1).astype("float32")[begin:end]}


def rows_in(path):
    """Key -> the bytes of its row in a file: when it was last seen, its numbers, moments and counts."""
    with open(path, "rb") as file:
        data = file.read()
    width, moments, rows = np.frombuffer(data, "int64", 3, 8).tolist()
    size = (len(data) - 96) // max(rows, 1)
    assert size * rows == len(data) - 96 and size in (12 + 4 * width * (1 + moments), 16 + 4 * width * (1 + moments))
    return {data[at:at + 8]: data[at + 8:at + size] for at in range(96, len(data), size)}


def held(scope, name="table"):
    return _core.growable_table(scope.find_var(name))


def saved(scope, path, name="table"):
    with _core.FileSet() as files:
        held(scope, name).save(str(path), True, files)
    return rows_in(path)


def local(rules, replicas, path, steps=STEPS, **settings):
    """The rows after training in one process, and the statistics of the table."""
    main, startup, loss = network(rules, **settings)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    program = main if replicas == 1 else fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, places=fluid.cpu_places(replicas))
    for step in range(steps):
        feeds = [feed_of(step, share(r, replicas)) for r in range(replicas)]
        exe.run(program, feed=feeds if replicas > 1 else feeds[0], fetch_list=[loss], scope=scope)
    return saved(scope, path), held(scope).statistics()


def share(trainer, trainers):
    return SAMPLES * trainer // trainers, SAMPLES * (trainer + 1) // trainers
