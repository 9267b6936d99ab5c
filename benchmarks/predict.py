"""PREDICT: answers of a saved model: rows per second of one caller, with p50 and p99 of a call in the note.

    predict.py --save       writes the models, a CTR-DNN and a convolutional net, to the folder of BENCH_DATA
    predict.py --fluid anabranch.fluid | paddle.fluid | onnxruntime

All engines read the same files, which this project saves, untrained, and exports to ONNX. The "loss" that is compared
is the mean of an answer's probabilities, each weighted by its index.
"""
import os
import sys
import time

import numpy as np

import common
import w08e_ctr_dnn_files as files

CASES = [dict(model=model, rows=rows, threads=threads)
         for model in ("ctr", "fashion") for rows in (1, 64) for threads in (1, 2)]


def inputs_of(model, rows):
    draw = np.random.RandomState(rows)
    if model == "ctr":
        return {"dense": draw.normal(size=(rows, 13)).astype("float32"),
                "ids": draw.randint(0, 100000, (rows, 26)).astype("int64")}
    return {"image": draw.normal(size=(rows, 1, 28, 28)).astype("float32")}


def anabranch_engine(folder, threads):
    import anabranch
    predictor = anabranch.Predictor(folder, num_threads=threads)
    return lambda given: predictor.run(given)


def onnx_engine(folder, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(folder + ".onnx", options, providers=["CPUExecutionProvider"])
    return lambda given: session.run(None, given)


def paddle_engine(folder, threads):
    """Zero-copy, as the fastest way that 1.8.5 has."""
    from paddle.fluid.core import AnalysisConfig, create_paddle_predictor
    config = AnalysisConfig(folder)
    config.disable_gpu()
    config.switch_use_feed_fetch_ops(False)
    config.switch_specify_input_names(True)
    config.set_cpu_math_library_num_threads(threads)
    predictor = create_paddle_predictor(config)
    names, outs = predictor.get_input_names(), predictor.get_output_names()

    def run(given):
        for name in names:
            tensor = predictor.get_input_tensor(name)
            tensor.copy_from_cpu(given[name])
        predictor.zero_copy_run()
        return [predictor.get_output_tensor(name).copy_to_cpu() for name in outs]
    return run


ENGINES = {"anabranch": anabranch_engine, "onnxruntime": onnx_engine, "paddle": paddle_engine}


def folder():
    return os.path.join(files.cache_directory(), "models")


def prepare(module, case, config):
    run = ENGINES[module.__name__.split(".")[0]](os.path.join(folder(), case["model"]), case["threads"])
    given = inputs_of(case["model"], case["rows"])

    def step():
        answer = np.asarray(run(given)[0])
        return float(np.mean(answer * np.arange(1, answer.size + 1).reshape(answer.shape)))
    taken = [seconds(run, given) for _ in range(300)]
    note = "p50 %.1f us, p99 %.1f us" % tuple(1e6 * np.percentile(taken, (50, 99)))
    return step, case["rows"], dict(note=note)


def seconds(run, given):
    begin = time.perf_counter()
    run(given)
    return time.perf_counter() - begin


def save_models(folder):
    os.makedirs(folder, exist_ok=True)
    import anabranch.fluid as fluid
    from anabranch.exporting.command import export_onnx

    def ctr():
        dense, ids = fluid.data("dense", [None, 13]), fluid.data("ids", [None, 26], "int64")
        rows = fluid.embedding(ids, [100000, 10])
        hidden = fluid.layers.concat([fluid.layers.reshape(rows, [-1, 260]), dense], 1)
        for size in (400, 400, 400):
            hidden = fluid.layers.fc(hidden, size, act="relu")
        return ["dense", "ids"], fluid.layers.fc(hidden, 2, act="softmax")

    def fashion():
        hidden = fluid.data("image", [None, 1, 28, 28])
        for filters in (20, 50):
            hidden = fluid.layers.conv2d(hidden, filters, 5, bias_attr=False)
            hidden = fluid.layers.pool2d(fluid.layers.batch_norm(hidden, act="relu"), 2, "max", 2)
        return ["image"], fluid.layers.fc(fluid.layers.fc(hidden, 128, act="relu"), 10, act="softmax")

    for name, build in (("ctr", ctr), ("fashion", fashion)):
        main, startup = fluid.Program(), fluid.Program()
        startup.random_seed = 1
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            names, out = build()
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            fluid.io.save_inference_model(os.path.join(folder, name), names, [out], exe, main)
        export_onnx(os.path.join(folder, name), os.path.join(folder, name + ".onnx"))


def engine(args):
    return common.Engine("onnxruntime", ("exe cache",)) if args.fluid == "onnxruntime" else common.Fluid(
        args.fluid, ("exe cache",))


if __name__ == "__main__":
    if "--save" in sys.argv:
        save_models(folder())
    else:
        common.main("PREDICT", "rows/s", CASES, prepare, None, engine)
