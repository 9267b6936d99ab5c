"""Answers of a saved model beside ONNX Runtime and Paddle 1.8.5: p50 and p99 of one call, rows/s; 1 and 64 rows; 1 and 2
threads. The same files for all: the model is trained by nobody, saved here and exported to ONNX.

    python benchmarks/predict.py [--seconds 1] [--rounds 7] [--threads 1 2]

Each engine lives in a process of its own; in every round each measures for so many seconds, in changing order. The line
of an engine gives medians over the rounds; the ratio is the median of its p50 by ours in the same round, above 1: ours is
faster. BENCH_FLUID18_PYTHON names the interpreter of 1.8.5; what is not installed is left out.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- in the process of an engine

def inputs_of(model, rows):
    import numpy as np
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


ENGINES = {"anabranch": anabranch_engine, "onnxruntime": onnx_engine, "paddle 1.8.5": paddle_engine}


def child(engine, folder, model, rows, threads):
    import numpy as np
    run, given = ENGINES[engine](folder, threads), inputs_of(model, rows)
    answer = np.asarray(run(given)[0])
    for _ in range(50):
        run(given)
    print(json.dumps({"ready": answer.ravel()[:8].tolist()}), flush=True)
    for line in sys.stdin:
        taken, end = [], time.perf_counter() + float(line)
        now = time.perf_counter()
        while now < end:
            run(given)
            after = time.perf_counter()
            taken.append(after - now)
            now = after
        print(json.dumps({"p50": float(np.percentile(taken, 50)), "p99": float(np.percentile(taken, 99)),
                          "rows_s": rows * len(taken) / sum(taken)}), flush=True)


# ---- beside each other

def save_models(folder):
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


class Engine:
    def __init__(self, name, python, folder, model, rows, threads):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), GLOG_v="0")
        if name != "anabranch":
            environment.pop("PYTHONPATH", None)
        self.name = name
        self.child = subprocess.Popen([python, os.path.abspath(__file__), "--child", name, os.path.join(folder, model), model,
                                       str(rows), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, universal_newlines=True, env=environment, cwd=folder)
        self.answer = (self.line() or {}).get("ready")

    def line(self):
        for line in self.child.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return None

    def measure(self, seconds):
        self.child.stdin.write("%g\n" % seconds)
        self.child.stdin.flush()
        return self.line()

    def end(self):
        self.child.kill()
        self.child.communicate()


def compared(folder, model, rows, threads, args):
    """Lines of one table: engine -> medians."""
    import numpy as np
    pythons = {"anabranch": sys.executable, "onnxruntime": sys.executable,
               "paddle 1.8.5": os.environ.get("BENCH_FLUID18_PYTHON")}
    engines = [Engine(name, python, folder, model, rows, threads) for name, python in pythons.items() if python]
    ready = [e for e in engines if e.answer is not None]
    for e in ready:
        if not np.allclose(e.answer, ready[0].answer, rtol=1e-3, atol=1e-5):
            raise SystemExit("%s answers otherwise: %s, %s" % (e.name, e.answer, ready[0].answer))
    found = {e.name: [] for e in ready}
    for k in range(args.rounds):
        for e in ready[k % len(ready):] + ready[:k % len(ready)]:
            found[e.name].append(e.measure(args.seconds))
    for e in engines:
        e.end()
    for name, results in found.items():
        ratios = [theirs["p50"] / ours["p50"] for theirs, ours in zip(results, found["anabranch"])]
        middle = {key: float(np.median([r[key] for r in results])) for key in results[0]}
        print("%-8s %3d rows %d threads  %-13s p50 %8.1f us  p99 %8.1f us  %9.0f rows/s  ratio %5.2f (%.2f to %.2f)" % (
            model, rows, threads, name, 1e6 * middle["p50"], 1e6 * middle["p99"], middle["rows_s"], np.median(ratios),
            min(ratios), max(ratios)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--models", nargs="*", default=["ctr", "fashion"])
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        engine, folder, model, rows, threads = args.child
        return child(engine, folder, model, int(rows), int(threads))
    with tempfile.TemporaryDirectory() as folder:
        save_models(folder)
        for model in args.models:
            for rows in (1, 64):
                for threads in args.threads:
                    compared(folder, model, rows, threads, args)


if __name__ == "__main__":
    main()
