"""Calls of functions of files, feeders, executors, readers, guards and programs: see call_cases.py."""
import os
import tempfile

import numpy as np
from call_cases import CASES, case, net


def started(fluid):
    """An executor that has run the startup program of a net: (executor, input, loss)."""
    x, loss = net(fluid)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    return executor, x, loss


def batch():
    return {"x": np.ones([4, 3], "float32"), "y": np.ones([4, 1], "float32")}


def files(name, names, saved=None):
    """A function of fluid.io on a new folder; ``saved`` names the function that writes what it reads."""
    def make(fluid):
        executor, _, loss = started(fluid)
        folder, main = tempfile.mkdtemp(), fluid.default_main_program()
        if saved == "save_inference_model":
            fluid.io.save_inference_model(folder, ["x"], [_inferred(loss)], executor)
        elif saved:
            getattr(fluid.io, saved)(executor, folder, main)
        values = {"executor": executor, "dirname": folder, "main_program": main, "vars": main.all_parameters(),
                  "filename": None, "feeded_var_names": ["x"], "target_vars": [_inferred(loss)]}
        return getattr(fluid.io, name), {key: values[key] for key in names.split()}
    CASES["io." + name] = make


def _inferred(loss):
    """The output of the layer of :func:`net`."""
    block = loss.block
    return block.var([op for op in block.ops if op.type == "elementwise_add"][0].output("Out")[0])


files("save_vars", "executor dirname main_program vars filename")
files("save_params", "executor dirname main_program filename")
files("save_persistables", "executor dirname main_program filename")
files("load_vars", "executor dirname main_program vars filename", "save_persistables")
files("load_params", "executor dirname main_program filename", "save_params")
files("load_persistables", "executor dirname main_program filename", "save_persistables")
files("save_inference_model", "dirname feeded_var_names target_vars executor main_program")
files("load_inference_model", "dirname executor", "save_inference_model")


@case("save")
def _(fluid):
    started(fluid)
    return fluid.save, dict(program=fluid.default_main_program(), model_path=os.path.join(tempfile.mkdtemp(), "model"))


def _saved(fluid):
    executor = started(fluid)[0]
    path = os.path.join(tempfile.mkdtemp(), "model")
    fluid.save(fluid.default_main_program(), path)
    return executor, path


@case("load")
def _(fluid):
    executor, path = _saved(fluid)
    return fluid.load, dict(program=fluid.default_main_program(), model_path=path, executor=executor, var_list=None)


@case("io.load_program_state")
def _(fluid):
    return fluid.io.load_program_state, dict(model_path=_saved(fluid)[1], var_list=None)


@case("io.set_program_state")
def _(fluid):
    path = _saved(fluid)[1]
    return fluid.io.set_program_state, dict(program=fluid.default_main_program(),
                                            state_dict=fluid.io.load_program_state(path))


@case("DataFeeder")
def _(fluid):
    x = net(fluid)[0]
    return fluid.DataFeeder, dict(feed_list=[x], place=fluid.CPUPlace(), program=None)


@case("DataFeeder.feed")
def _(fluid):
    x = net(fluid)[0]
    return fluid.DataFeeder([x], fluid.CPUPlace()).feed, dict(iterable=[[np.ones(3, "float32")]] * 2)


@case("Executor")
def _(fluid):
    return fluid.Executor, dict(place=fluid.CPUPlace())


@case("Executor.run")
def _(fluid):
    executor, _, loss = started(fluid)
    return executor.run, dict(program=fluid.default_main_program(), feed=batch(), fetch_list=[loss], scope=None,
                              return_numpy=True, use_program_cache=False, feed_var_name="feed", fetch_var_name="fetch")


@case("Executor.run.items")
def _(fluid):
    executor, _, loss = started(fluid)
    return lambda fed, fetched: executor.run(feed=dict(batch(), x=fed), fetch_list=[fetched]), dict(
        fed=batch()["x"], fetched=loss)


@case("CompiledProgram")
def _(fluid):
    net(fluid)
    return fluid.CompiledProgram, dict(program_or_graph=fluid.default_main_program(), build_strategy=None)


@case("CompiledProgram.with_data_parallel")
def _(fluid):
    executor, _, loss = started(fluid)
    program = fluid.CompiledProgram(fluid.default_main_program())

    def call(**given):
        compiled = program.with_data_parallel(**given)
        executor.run(compiled, feed=batch(), fetch_list=[loss])
    return call, dict(loss_name=loss.name, build_strategy=None, exec_strategy=None, share_vars_from=None,
                      places=[fluid.CPUPlace()])


@case("DataLoader.from_generator")
def _(fluid):
    x = net(fluid)[0]
    return fluid.io.DataLoader.from_generator, dict(feed_list=[x], capacity=4, use_double_buffer=True, iterable=True,
                                                    return_list=False)


def loader(name, **more):
    def make(fluid):
        made = fluid.io.DataLoader.from_generator([net(fluid)[0]], 4)
        return getattr(made, name), dict(more, reader=lambda: iter(()), places=[fluid.CPUPlace()])
    CASES["DataLoader." + name] = make


loader("set_sample_generator", batch_size=2, drop_last=True)
loader("set_sample_list_generator")
loader("set_batch_generator")


@case("create_lod_tensor")
def _(fluid):
    return fluid.create_lod_tensor, dict(data=np.ones([4, 2], "float32"), recursive_seq_lens=[[1, 3]],
                                         place=fluid.CPUPlace())


@case("create_random_int_lodtensor")
def _(fluid):
    return fluid.create_random_int_lodtensor, dict(recursive_seq_lens=[[1, 3]], base_shape=[2],
                                                   place=fluid.CPUPlace(), low=0, high=3)


def entered(name, function, **more):
    """A context manager that is entered and left."""
    def make(fluid):
        def call(**given):
            with function(fluid)(**given):
                pass
        return call, {k: v(fluid) if callable(v) else v for k, v in more.items()}
    CASES[name] = make


entered("program_guard", lambda f: f.program_guard, main_program=lambda f: f.Program(),
        startup_program=lambda f: f.Program())
entered("scope_guard", lambda f: f.scope_guard, scope=lambda f: f.core.Scope())
entered("name_scope", lambda f: f.name_scope, prefix="a")
entered("device_guard", lambda f: f.device_guard, device="cpu")
entered("unique_name.guard", lambda f: f.unique_name.guard, new_generator="a")


def simple(name, **more):
    """A function without a net."""
    def make(fluid):
        function = fluid
        for part in name.split("."):
            function = getattr(function, part)
        return function, more
    CASES[name] = make


simple("cpu_places", device_count=2)
simple("set_flags", flags={"FLAGS_eager_delete_tensor_gb": 1.0})
simple("get_flags", flags=["FLAGS_eager_delete_tensor_gb"])
simple("unique_name.generate", key="a")
simple("unique_name.switch", new_generator=None)
simple("require_version", min_version="1.0.0", max_version=None)
simple("io.batch", reader=lambda: iter(range(4)), batch_size=2, drop_last=False)


@case("Program.clone")
def _(fluid):
    net(fluid)
    return fluid.default_main_program().clone, dict(for_test=False)


@case("Program.to_string")
def _(fluid):
    net(fluid)
    return fluid.default_main_program().to_string, dict(throw_on_error=True, with_details=False)


@case("Program.parse_from_string")
def _(fluid):
    net(fluid)
    return fluid.Program.parse_from_string, dict(binary_str=fluid.default_main_program().desc.serialize_to_string())


@case("Block.create_var")
def _(fluid):
    return fluid.default_main_program().global_block().create_var, dict(
        name="v", shape=[2, 3], dtype="float32", lod_level=0, persistable=False, stop_gradient=False)


@case("Block.append_op")
def _(fluid):
    x, block = fluid.data("x", [None, 3]), fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype="float32")
    return block.append_op, dict(type="relu", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"use_cudnn": False})


@case("DistributeTranspiler.transpile")
def _(fluid):
    fluid.optimizer.SGD(0.1).minimize(net(fluid)[1])
    return fluid.DistributeTranspiler().transpile, dict(
        trainer_id=0, program=fluid.default_main_program(), pservers="127.0.0.1:6174", trainers=1, sync_mode=True,
        startup_program=fluid.default_startup_program())
