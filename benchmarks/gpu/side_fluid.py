"""G1-G4 in anabranch.fluid on CUDAPlace(0). Matrices begin as benchmarks/fluid_parts says, on all sides."""
import itertools

import numpy as np

import cases
import fluid_parts
import anabranch.fluid as fluid


def classified(x, size):
    label = fluid.data("label", [None, 1], "int64")
    logits = fluid.layers.fc(x, size)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, label)), ["label"]


def resnet(case):
    import w21_imagenet as w21
    image = fluid.data("image", [None, 3, case["size"], case["size"]])
    x = w21.resnet50(fluid, image, w21.STAGES[:case["stages"]])
    x = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
    loss, names = classified(x, cases.CLASSES)
    return loss, ["image"] + names, fluid.optimizer.Momentum(0.01, 0.9)


def ctr(case):
    import w08_ctr_dnn
    dense, slots, label = w08_ctr_dnn.inputs(fluid)
    x = w08_ctr_dnn.ctr_dnn(fluid, dense, slots, case["rows"], case["width"])
    loss = fluid.layers.mean(fluid.layers.cross_entropy(x, label))
    return loss, None, fluid.optimizer.Adam(1e-3, lazy_mode=True)


def mlp(case):
    x = fluid.data("image", [None, 784])
    for _ in range(2):
        x = fluid.layers.fc(x, 200, act="relu")
    loss, names = classified(x, 10)
    return loss, ["image"] + names, fluid.optimizer.Adam(1e-3)


def chain(case):
    import w13_executor_overhead
    x = fluid.data("x", [1], "float32")
    return fluid.layers.mean(w13_executor_overhead.chain(fluid, x, case["ops"])), ["x"], None


def bert(case):
    w07 = cases.encoder(case)
    words = fluid.data("words", [None, w07.POSITIONS], "int64")
    positions = fluid.data("positions", [None, w07.POSITIONS], "int64")
    places = fluid.data("places", [None], "int64")
    x = fluid.layers.reshape(w07.encoder(fluid, words, positions), [-1, w07.WIDTH])
    x = fluid.layers.fc(fluid.layers.gather(x, places), size=w07.WIDTH, act="gelu")
    loss, names = classified(fluid.layers.layer_norm(x), w07.VOCABULARY)
    return loss, None, fluid.optimizer.Adam(1e-4)


MODELS = {"G1": resnet, "G1d": resnet, "G2": ctr, "G3a": mlp, "G3b": chain, "G4": bert}
MIXED = ("G1", "G1d", "G4")


def feeds(case, names):
    if case["name"] == "G3b":
        return [dict(x=np.ones(1, "float32"))]
    if case["name"] == "G2":
        import w08_ctr_dnn
        return [w08_ctr_dnn.feed(*sample) for sample in cases.batches(case)]
    if case["name"] == "G4":
        row = np.tile(np.arange(cases.encoder(case).POSITIONS), (case["batch"], 1))
        return [dict(words=w, positions=row, places=p, label=a) for w, p, a in cases.batches(case)]
    return [dict(zip(names, sample)) for sample in cases.batches(case)]


def mixed(optimizer):
    """bfloat16 does not need scaling of the loss. These operators compute in float32 for any input and write."""
    lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_white_list=["softmax", "gelu", "layer_norm"])
    return fluid.contrib.mixed_precision.decorate(optimizer, lists, init_loss_scaling=1.0,
                                                  use_dynamic_loss_scaling=False, dtype="bfloat16")


def pinned(feed):
    """The arrays of a batch in memory from which devices copy by themselves."""
    tensors = {}
    for name, array in feed.items():
        tensors[name] = fluid.LoDTensor()
        tensors[name].set(array, fluid.CUDAPinnedPlace())
    return tensors


def loaded(program, batches):
    """Endless batches from arrays in pageable memory, through a DataLoader that copies them to the device ahead."""
    names = list(batches[0])
    loader = fluid.io.DataLoader.from_generator([program.global_block().var(name) for name in names], capacity=4)
    loader.set_batch_generator(lambda: ([batch[name] for name in names] for batch in itertools.cycle(batches)),
                               fluid.cuda_places()[:1])
    return (batch[0] for batch in loader())


def prepare(case, options):
    """steps(n) runs n steps and waits for them; the last loss."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, names, optimizer = MODELS[case["name"]](case)
        if optimizer and case["name"] in MIXED and not options.float32:
            optimizer = mixed(optimizer)
        if optimizer:
            optimizer.minimize(loss)
    exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
    exe.run(startup, scope=scope)
    with fluid.scope_guard(scope):
        fluid_parts.set_weights(fluid, main)
    batches = feeds(case, names)
    endless = loaded(main, batches) if case.get("loader") else itertools.cycle([pinned(feed) for feed in batches])

    def steps(n):
        for _ in range(n - 1):
            exe.run(main, feed=next(endless), fetch_list=[], scope=scope)
        return float(np.mean(exe.run(main, feed=next(endless), fetch_list=[loss], scope=scope)[0]))
    return steps
