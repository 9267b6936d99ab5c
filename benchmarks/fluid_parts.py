"""Parts of the Fluid scripts: equal initial weights, the program that a configuration asks for, the training step."""
import itertools

import numpy as np


def train_job(fluid, build, feeds, config, own_weights=True, applied=False):
    """Builds, initializes and returns step() -> loss, one step of training per call.

    `build()` appends the model and its optimizer to the default program and returns the loss, or the loss and
    {feed name: variable} for state which each step passes to the next one. `own_weights`: whether set_weights runs, or a
    function that selects the parameters for it. `applied`: the model is not trained but run as its users run it, with the
    statistics it has.
    """
    train, startup = fluid.Program(), fluid.Program()
    train.random_seed = startup.random_seed = 1
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        built = build()
    loss, carried = built if isinstance(built, tuple) else (built, {})
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    if own_weights:
        set_weights(fluid, train, own_weights if callable(own_weights) else is_matrix)
    program, options = compiled(fluid, train.clone(for_test=True) if applied else train, loss, config)
    cycle = None if hasattr(feeds, "__next__") else len(feeds)                   # an iterator is endless
    feeds = itertools.cycle(feeds) if cycle else feeds
    fetches, state = [loss] + list(carried.values()), {}

    def step():
        values = exe.run(program, feed=dict(next(feeds), **state), fetch_list=fetches, **options)
        state.update(zip(carried, values[1:]))
        return values[0]
    step.cycle = cycle
    return step


def compiled(fluid, program, loss, config):
    """The program to run and the options of Executor.run that a configuration asks for."""
    words = config.split()
    if "exe" in words:
        return program, dict(use_program_cache="cache" in words)
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    if "reduce" in words:
        build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    if "fuse" in words:
        build.fuse_all_optimizer_ops = build.fuse_elewise_add_act_ops = True
    if "bf16" in words:                                        # operands of products, in this engine only
        build.use_bfloat16 = True
    execution.num_iteration_per_drop_scope = 100
    if "single" in words:
        execution.num_threads = 1
    places = fluid.cpu_places(2 if "cp2" in words else 1)
    return fluid.CompiledProgram(program).with_data_parallel(
        loss_name=loss.name, build_strategy=build, exec_strategy=execution, places=places), {}


def is_matrix(parameter):
    return len(parameter.shape) > 1


def set_weights(fluid, program, selects=is_matrix):
    """Gives every engine the same matrices: the n-th one of the model is weight(n, shape)."""
    matrices = [p for p in program.global_block().all_parameters() if selects(p)]
    order = getattr(fluid, "created", None)         # Paddle 3's new IR lists them in another order
    if order:
        matrices.sort(key=lambda p: order.index(p.name))
    for index, parameter in enumerate(matrices):
        tensor = fluid.global_scope().find_var(parameter.name).get_tensor()
        tensor.set(weight(index, parameter.shape), fluid.CPUPlace())


def weight(index, shape):
    """Uniform in +-sqrt(6 / (rows + columns)), convolutions counting their window; seeded by `index`."""
    window = int(np.prod(shape[2:]))
    bound = np.sqrt(6.0 / ((shape[0] + shape[1]) * window))
    return ((np.random.RandomState(index).random_sample(shape) * 2 - 1) * bound).astype("float32")
