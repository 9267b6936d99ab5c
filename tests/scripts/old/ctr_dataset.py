from __future__ import print_function

import os

import numpy as np
import paddle.fluid as fluid

SLOTS, VOCAB, EMB = 4, 50, 6


def write_files(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
    rng = np.random.RandomState(6)
    for part in range(2):
        with open(os.path.join(folder, "part-%d" % part), "w") as f:
            for _ in range(40):
                slots = [rng.randint(1, VOCAB, rng.randint(1, 4)) for _ in range(SLOTS)]
                dense = rng.rand(3)
                click = int(sum(s.min() for s in slots) < 45)
                text = "3 " + " ".join("%.4f" % d for d in dense)
                for s in slots:
                    text += " %d " % len(s) + " ".join(str(v) for v in s)
                f.write(text + " 1 %d\n" % click)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def ctr_dnn_model():
    dense = fluid.layers.data(name="dense_input", shape=[3], dtype='float32')
    slots = [fluid.layers.data(name="C" + str(i), shape=[1], lod_level=1, dtype='int64') for i in range(1, SLOTS + 1)]
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')

    def embedding_layer(input):
        emb = fluid.layers.embedding(
            input=input, is_sparse=True, size=[VOCAB, EMB],
            param_attr=fluid.ParamAttr(name="SparseFeatFactors", initializer=fluid.initializer.Uniform()))
        return fluid.layers.sequence_pool(input=emb, pool_type='average')
    concated = fluid.layers.concat(list(map(embedding_layer, slots)) + [dense], axis=1)
    fc1 = fluid.layers.fc(input=concated, size=16, act='relu', param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Normal(scale=1.0 / np.sqrt(concated.shape[1]))))
    predict = fluid.layers.fc(input=fc1, size=2, act='softmax')
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.reduce_sum(cost)
    accuracy = fluid.layers.accuracy(input=predict, label=label)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=predict, label=label, num_thresholds=2**12, slide_steps=20)
    return [dense] + slots + [label], avg_cost, auc_var, batch_auc_var, accuracy


def main(kind):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        inputs, avg_cost, auc_var, batch_auc_var, accuracy = ctr_dnn_model()
        fluid.optimizer.Adam(learning_rate=1e-2, lazy_mode=True).minimize(avg_cost)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        dataset = fluid.DatasetFactory().create_dataset(kind)
        dataset.set_use_var(inputs)
        dataset.set_pipe_command("cat")
        dataset.set_batch_size(10)
        dataset.set_thread(1)
        filelist = write_files("ctr_data")
        dataset.set_filelist(filelist)
        if kind == "InMemoryDataset":
            dataset.load_into_memory()
            print("size", dataset.get_memory_data_size())
        for epoch in range(3):
            exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset, debug=False)
            table = np.array(fluid.global_scope().find_var("SparseFeatFactors").get_tensor())
            print("epoch %d table %.6f" % (epoch, np.abs(table).sum()))
        if kind == "InMemoryDataset":
            dataset.release_memory()
        model_dir = os.path.join("ctr_models", kind)
        fluid.io.save_persistables(executor=exe, dirname=model_dir, main_program=fluid.default_main_program())
        print(len(os.listdir(model_dir)))


if __name__ == '__main__':
    main("QueueDataset")
    main("InMemoryDataset")
