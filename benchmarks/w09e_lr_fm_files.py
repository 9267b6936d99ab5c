"""W9e: W9 from files: the models of W9 trained by train_from_dataset, one pass after another. Examples per second.

`text`: QueueDataset over MultiSlot text. `cache`: the same over parsed files (an engine that keeps them).
`memory`: InMemoryDataset, loading and local shuffle included. threads=N: reading and training threads.
`quality`: the log-loss on held-out examples after the first pass.
"""
import os

import numpy as np

import common
import w08e_ctr_dnn_files as files
from w09_lr_fm import CASES, EXAMPLES, FEATURES, examples, log_loss, score

FILES = 4
CONFIGS = ("text threads1", "text threads2", "memory threads2", "cache threads1", "cache threads2")


def text_files(directory):
    """The training examples as MultiSlot lines, written once per directory."""
    paths = [os.path.join(directory, "hashed-%d-%d.txt" % (EXAMPLES, i)) for i in range(FILES)]
    if not all(map(os.path.exists, paths)):
        for path, ids, labels in zip(paths, *(np.array_split(part, FILES) for part in examples("train"))):
            with open(path + files.PART, "w") as file:
                for row, label in zip(ids, labels[:, 0]):
                    file.write("%d %s 1 %d\n" % (FEATURES, " ".join(map(str, row)), label))
            os.rename(path + files.PART, path)
    return paths


def prepare(fluid, case, config):
    train, startup = fluid.Program(), fluid.Program()
    train.random_seed = startup.random_seed = 1
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        ids, label = fluid.data("ids", [None, FEATURES], "int64"), fluid.data("label", [None, 1])
        logit = score(fluid, case["model"], ids)
        test = train.clone(for_test=True)
        loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, label))
        fluid.optimizer.Adagrad(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    directory = files.cache_directory()
    kind, threads = config.split()[0], 2 if "threads2" in config.split() else 1

    def one_pass():
        made = fluid.DatasetFactory().create_dataset("InMemoryDataset" if kind == "memory" else "QueueDataset")
        made.set_use_var([ids, label])
        made.set_batch_size(case["batch"])
        made.set_thread(threads)
        made.set_filelist(text_files(directory))
        if kind == "cache":
            made.set_cache(os.path.join(directory, "cache"))
        if kind == "memory":
            made.load_into_memory()
            made.local_shuffle()
        exe.train_from_dataset(train, made, thread=threads)

    text_files(directory)
    one_pass()
    held_ids, held_labels = examples("test")
    logits = exe.run(test, feed=dict(ids=held_ids, label=held_labels), fetch_list=[logit])[0]
    return one_pass, EXAMPLES, dict(quality={"log-loss": log_loss(logits, held_labels)})


if __name__ == "__main__":
    common.fluid_main("W9e", "examples/s", CASES, prepare, configs=CONFIGS, quick=("text threads2",))
