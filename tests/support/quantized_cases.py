"""The passes of fluid.contrib.slim.quantization in the order in which scripts apply them, on the nets of
quantized_nets.py. Runs on Python 3.7 and later."""
import base64
import os
import sys
from tempfile import TemporaryDirectory as temporary_folder

from quantized_nets import NETS, STEPS, batch_of, described, fill, values_of
from repository import TESTS

#: name: (kind of the scales of activations, kind of the scales of weights)
KINDS = {"abs_max": ("abs_max", "abs_max"), "range": ("range_abs_max", "abs_max"),
         "moving": ("moving_average_abs_max", "abs_max"),
         "channels": ("moving_average_abs_max", "channel_wise_abs_max"),
         "channels_range": ("range_abs_max", "channel_wise_abs_max")}


def graph_of(fluid, program, for_test):
    return fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)


def build(fluid, net):
    """(main, startup, test, loss, result) of a net that SGD trains."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss, result = NETS[net](fluid)
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.05).minimize(loss)
    return main, startup, test, loss, result


def made_by(fluid, net, kind):
    """dict: programs, values and results of a net after each pass of one kind."""
    slim, place, scope = fluid.contrib.slim.quantization, fluid.CPUPlace(), fluid.core.Scope()
    activations, weights = KINDS[kind]
    main, startup, test, loss, result = build(fluid, net)
    exe, found = fluid.Executor(place), {}
    with fluid.scope_guard(scope), fluid.unique_name.guard():
        exe.run(startup)
        fill(fluid, scope, main)
        transform = slim.QuantizationTransformPass(
            scope=scope, place=place, activation_quantize_type=activations, weight_quantize_type=weights)
        graphs = [graph_of(fluid, main, False), graph_of(fluid, test, True)]
        for graph in graphs:
            transform.apply(graph)
        training, testing = [graph.to_program() for graph in graphs]
        found["transformed"], found["transformed_test"] = described(training), described(testing)
        found["losses"] = [float(exe.run(training, feed=batch_of(main, step), fetch_list=[loss.name])[0][0])
                           for step in range(STEPS)]
        found["trained"] = values_of(scope, training)
        found["tested"] = exe.run(testing, feed=batch_of(test, 9), fetch_list=[result.name])[0].ravel().tolist()
        slim.QuantizationFreezePass(scope=scope, place=place, weight_quantize_type=weights).apply(graphs[1])
        frozen = graphs[1].to_program()
        found["frozen"], found["frozen_values"] = described(frozen), values_of(scope, frozen)
        found["answers"] = exe.run(frozen, feed=batch_of(test, 9), fetch_list=[result.name])[0].ravel().tolist()
        slim.ConvertToInt8Pass(scope=scope, place=place).apply(graphs[1])
        small = graphs[1].to_program()
        found["int8"], found["int8_values"] = described(small), values_of(scope, small)
        slim.TransformForMobilePass().apply(graphs[1])
        found["mobile"] = described(graphs[1].to_program())
    return found


def outputs_of(fluid, net):
    """dict: AddQuantDequantPass and the passes of output scales, on one net."""
    slim, place, scope = fluid.contrib.slim.quantization, fluid.CPUPlace(), fluid.core.Scope()
    main, startup, test, loss, result = build(fluid, net)
    exe, found = fluid.Executor(place), {}
    with fluid.scope_guard(scope), fluid.unique_name.guard():
        exe.run(startup)
        fill(fluid, scope, main)
        graphs = [graph_of(fluid, main, False), graph_of(fluid, test, True)]
        slim.AddQuantDequantPass(scope=scope, place=place, is_full_quantized=True).apply(graphs[0])
        slim.AddQuantDequantPass(scope=scope, place=place).apply(graphs[1])
        found["both"], found["both_test"] = [described(graph.to_program()) for graph in graphs]
        graphs = [graph_of(fluid, main, False), graph_of(fluid, test, True)]
        slim.OutScaleForTrainingPass(scope=scope, place=place).apply(graphs[0])
        training = graphs[0].to_program()
        found["out_scale"] = described(training)
        found["losses"] = [float(exe.run(training, feed=batch_of(main, step), fetch_list=[loss.name])[0][0])
                           for step in range(STEPS)]
        found["trained"] = values_of(scope, training)
        slim.OutScaleForInferencePass(scope=scope).apply(graphs[1])
        found["out_thresholds"] = described(graphs[1].to_program())
    return found


#: name: (net, arguments of PostTrainingQuantization)
AFTER = {
    "kl": ("conv_bn", {"algo": "KL"}), "abs_max": ("conv_bn", {"algo": "abs_max"}),
    "min_max": ("conv", {"algo": "min_max"}), "full": ("conv_bn", {"algo": "abs_max", "is_full_quantize": True}),
    "average": ("depthwise", {"algo": "abs_max", "weight_quantize_type": "abs_max",
                              "activation_quantize_type": "moving_average_abs_max"}),
    "embedding": ("embedding", {"algo": "KL", "weight_bits": 16}), "activations": (
        "conv", {"algo": "abs_max", "quantizable_op_type": ["pool2d", "conv2d"]})}
#: name: arguments of quantize_weight_to_int
WEIGHTS = {"channels": {}, "whole": {"weight_bits": 16, "weight_quantize_type": "abs_max"},
           "clipped": {"weight_quantize_type": "abs_max", "threshold_rate": 0.05}}


def saved(fluid, net, folder, exe):
    """Saves a net for inference, and returns (the names of its feeds, its training program)."""
    main, startup, test, loss, result = build(fluid, net)
    with fluid.scope_guard(fluid.core.Scope()):
        exe.run(startup)
        fill(fluid, fluid.global_scope(), main)
        feeds = [name for name in ("x", "ids") if name in test.global_block().vars]
        fluid.io.save_inference_model(folder, feeds, [test.global_block().var(result.name)], exe, test)
    return feeds, main


def quantized_after(fluid, net, arguments, folder):
    """dict: the program of PostTrainingQuantization, its values, and its answers after it has been saved."""
    exe, found = fluid.Executor(fluid.CPUPlace()), {}
    feeds, main = saved(fluid, net, folder, exe)
    batches = [batch_of(main, step) for step in range(STEPS)]

    def samples():
        return ([batch[name][row] for name in feeds] for batch in batches for row in range(len(batch["label"])))

    scope = fluid.core.Scope()
    with fluid.scope_guard(scope), fluid.unique_name.guard():
        after = fluid.contrib.slim.quantization.PostTrainingQuantization(
            executor=exe, scope=scope, model_dir=folder, sample_generator=samples, batch_size=len(batches[0]["label"]),
            **arguments)
        program = after.quantize()
        found["program"], found["values"] = described(program), values_of(scope, program)
        after.save_quantized_model(os.path.join(folder, "quantized"))
    with fluid.scope_guard(fluid.core.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(os.path.join(folder, "quantized"), exe)
        feed = {name: batch_of(main, 9)[name] for name in feeds}
        found["answers"] = exe.run(program, feed, fetches)[0].ravel().tolist()
    return found


def small_weights(fluid, arguments, folder):
    """dict: what WeightQuantization writes for a net: the marked operators, the bytes of each file, the numbers of the
    test model."""
    exe, found = fluid.Executor(fluid.CPUPlace()), {}
    saved(fluid, "conv", folder, exe)
    to = os.path.join(folder, "small")
    fluid.contrib.slim.quantization.WeightQuantization(folder).quantize_weight_to_int(
        to, quantizable_op_type=["conv2d", "mul"], generate_test_model=True, **arguments)
    model = os.path.join(to, "quantized_model")
    found["bytes"] = {name: os.path.getsize(os.path.join(model, name)) for name in sorted(os.listdir(model))
                      if name != "__model__"}
    with fluid.scope_guard(fluid.core.Scope()):
        program = fluid.io.load_inference_model(os.path.join(to, "test_model"), exe)[0]
        found["attributes"] = [
            [op.type, {name: op.attr(name) for name in op.attr_names
                       if name.endswith("_quant_scale") or name in ("quantization_type", "quantize_weight_bits")}]
            for op in program.global_block().ops if op.type in ("conv2d", "mul")]
        found["numbers"] = values_of(fluid.global_scope(), program)
    return found


def saved_integers(fluid, net, kind, folder):
    """Saves a frozen net with int8 weights, and returns the answers of the frozen net for the batch that is fed."""
    slim, place, scope = fluid.contrib.slim.quantization, fluid.CPUPlace(), fluid.core.Scope()
    activations, weights = KINDS[kind]
    main, startup, test, loss, result = build(fluid, net)
    exe = fluid.Executor(place)
    with fluid.scope_guard(scope), fluid.unique_name.guard():
        exe.run(startup)
        fill(fluid, scope, main)
        graphs = [graph_of(fluid, main, False), graph_of(fluid, test, True)]
        for graph in graphs:
            slim.QuantizationTransformPass(
                scope=scope, place=place, activation_quantize_type=activations,
                weight_quantize_type=weights).apply(graph)
        training = graphs[0].to_program()
        for step in range(STEPS):
            exe.run(training, feed=batch_of(main, step), fetch_list=[loss.name])
        slim.QuantizationFreezePass(scope=scope, place=place, weight_quantize_type=weights).apply(graphs[1])
        answers = exe.run(graphs[1].to_program(), feed=batch_of(test, 9), fetch_list=[result.name])[0]
        slim.ConvertToInt8Pass(scope=scope, place=place).apply(graphs[1])
        small = graphs[1].to_program()
        feeds = [name for name in ("x", "ids") if name in small.global_block().vars]
        fluid.io.save_inference_model(folder, feeds, [small.global_block().var(result.name)], exe, small)
    return answers.ravel().tolist()


def files_of(folder):
    """{name: bytes as text} of the files of a model, without call stacks, which name files of the machine."""
    sys.path.insert(0, os.path.join(TESTS, "saved_models"))
    from wire import without_stacks
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        found[name] = base64.b64encode(without_stacks(content) if name == "__model__" else content).decode()
    return found


#: (net, kind of the scales) of the models that 1.8.5 saves with int8 weights.
SAVED = (("conv_bn", "channels"), ("depthwise", "range"), ("embedding", "moving"))


def record_all(fluid):
    """{case: what it makes}"""
    found = {"%s %s" % (net, kind): made_by(fluid, net, kind) for net in NETS for kind in KINDS}
    found.update(("%s outputs" % net, outputs_of(fluid, net)) for net in NETS)
    for name, (net, arguments) in AFTER.items():
        with temporary_folder() as folder:
            found["after " + name] = quantized_after(fluid, net, arguments, folder)
    for name, arguments in WEIGHTS.items():
        with temporary_folder() as folder:
            found["weights " + name] = small_weights(fluid, arguments, folder)
    for net, kind in SAVED:
        with temporary_folder() as folder:
            answers = saved_integers(fluid, net, kind, folder)
            found["saved %s %s" % (net, kind)] = {"answers": answers, "files": files_of(folder)}
    return found
