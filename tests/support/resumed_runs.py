"""A training run that saves itself: python resumed_runs.py KIND REPLICAS FOLDER RESULT. Writes how many steps there
were and a hash of all that was learned."""
import hashlib
import os
import sys

import numpy as np

import anabranch
import anabranch.fluid as fluid

EPOCHS, EVERY, ROWS = 3, 7, 12


def dense():
    """Dropout, batch_norm, AUC's counts, Adam and a schedule."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    hidden = fluid.layers.dropout(fluid.layers.batch_norm(fluid.layers.fc(x, 16, act="relu")), 0.3)
    chance = fluid.layers.fc(hidden, 2, act="softmax")
    zero = fluid.layers.fill_constant_batch_size_like(y, [-1, 1], "float32", 0)
    label = fluid.layers.cast(fluid.layers.less_than(zero, y), "int64")
    fluid.layers.auc(chance, label, num_thresholds=63)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(chance, label))
    fluid.optimizer.Adam(fluid.layers.exponential_decay(0.05, 7, 0.8)).minimize(loss)
    return loss


def sparse(**rules):
    """An embedding with sparse gradients and a growable table."""
    ids, y = fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1])
    table = fluid.GrowableTable("grows", fluid.initializer.Uniform(-0.5, 0.5), **rules)
    rows = [fluid.layers.sequence_pool(fluid.layers.embedding(ids, size, is_sparse=True, param_attr=attr), "sum")
            for size, attr in (([500, 4], "fixed"), ([-1, 4], table))]
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(fluid.layers.concat(rows, 1), 1), y))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return loss


def delta():
    """The same with checkpoints of changed rows; rows go."""
    return sparse(expire_after=4)


def batches():
    """Other ones in every epoch: NumPy's numbers go on."""
    for _ in range(25):
        rows = np.random.normal(size=(ROWS, 6)).astype("float32")
        yield {"x": rows, "y": rows.sum(1, keepdims=True)}


def dataset(folder):
    """Text files of ids, read into memory."""
    draw, names = np.random.RandomState(3), []
    for part in range(2):
        names.append(os.path.join(folder, "part-%d" % part))
        with open(names[-1], "w") as file:
            for _ in range(130):
                ids = draw.randint(0, 500, draw.randint(1, 5))
                file.write("%d %s 1 %.3f\n" % (len(ids), " ".join(map(str, ids)), draw.normal()))
    made = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    block = fluid.default_main_program().global_block()
    made.set_use_var([block.var("ids"), block.var("y")])
    made.set_batch_size(ROWS)
    made.set_thread(1)
    made.set_filelist(names)
    return made


def trained(kind, replicas, run, exe, main, loss, folder):
    """Trains to the end; the output after each step gives the test random moments to kill the process."""
    program = main
    if replicas > 1:
        program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(replicas))
    run = anabranch.Checkpoints(run, program, exe, every=EVERY, keep=2, delta=3 if kind == "delta" else 0)
    if kind == "dense":
        for _ in run.epochs(EPOCHS):
            for batch in run.steps(batches()):
                exe.run(program, feed=batch, fetch_list=[loss])
                print("step", flush=True)
    else:
        data = dataset(folder)
        data.load_into_memory()
        for _ in run.epochs(EPOCHS):
            data.local_shuffle()
            exe.train_from_dataset(main, data, checkpoints=run, fetch_list=[loss], print_period=1)
    return run


def main():
    kind, replicas, run, result = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    np.random.seed(4)
    program, startup = fluid.default_main_program(), fluid.default_startup_program()
    program.random_seed = startup.random_seed = 11
    loss = {"dense": dense, "sparse": sparse, "delta": delta}[kind]()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    done = trained(kind, replicas, run, exe, program, loss, os.path.dirname(result))
    digest = hashlib.sha256()
    for variable in sorted(program.list_vars(), key=lambda v: v.name):
        if fluid.io.is_persistable(variable) and variable.name != "grows":
            digest.update(np.array(fluid.global_scope().find_var(variable.name).get_tensor()).tobytes())
    if kind != "dense":
        table = fluid.GrowableTable("grows")
        keys = np.sort(table.keys(fluid.global_scope()))
        digest.update(keys.tobytes() + table.rows(keys, fluid.global_scope()).tobytes())
    with open(result, "w") as file:
        file.write("%d %s" % (done.step, digest.hexdigest()))


if __name__ == "__main__":
    main()
