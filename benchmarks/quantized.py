"""QUANTIZED: rows per second of a small MobileNet and a CTR-DNN, in float and quantized after training.

    quantized.py --save --fluid anabranch.fluid    trains the models, quantizes them, and prints accuracy and sizes
    quantized.py --save --fluid paddle.fluid       quantizes the same models with Fluid 1.8.5
    quantized.py --fluid anabranch.fluid | paddle.fluid
                                                   measures; 1.8.5 runs the program that it has quantized itself

The "loss" that is compared is the mean of the probabilities of an answer, each weighted by its index. Python 3.7 is the
oldest interpreter that must read this file.
"""
import importlib
import os
import sys

import numpy as np
import small_models
import w08e_ctr_dnn_files as files

import common
import predict

CASES = [dict(model=model, kind=kind, rows=rows, threads=1)
         for model in small_models.MODELS for kind in ("float", "quantized") for rows in (1, 64)]


def folder_of(model, kind, module):
    engine = module.split(".")[0] if kind != "float" else ""
    return os.path.join(files.cache_directory(), "quantized", "_".join(part for part in (model, kind, engine) if part))


def prepare(module, case, config):
    folder = folder_of(case["model"], case["kind"], module.__name__)
    run = predict.ENGINES[module.__name__.split(".")[0]](folder, case["threads"])
    given = small_models.MODELS[case["model"]][1](case["rows"], 6000)
    given.pop("label")

    def step():
        answer = np.asarray(run(given)[0])
        return float(np.mean(answer * np.arange(1, answer.size + 1).reshape(answer.shape)))
    return step, case["rows"]


def size_of(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def save(module):
    """Trains each model once, quantizes it with an engine, and prints what that costs."""
    fluid = importlib.import_module(module)
    for name in small_models.MODELS:
        trained, quantized = folder_of(name, "float", module), folder_of(name, "quantized", module)
        if not os.path.isdir(trained):
            small_models.train(fluid, name, trained)
        small_models.quantize(fluid, name, trained, quantized)
        for kind, folder in (("float", trained), ("quantized", quantized)):
            common.emit("QUANTIZED", module, "", "KL", "%s %s: %s" % (
                name, kind, "accuracy" if name == "mobile" else "AUC"), small_models.measure(fluid, name, folder), "")
        for kind, folder in (("float", trained), ("quantized", quantized), ("int8", quantized + "_int8")):
            common.emit("QUANTIZED", module, "", "KL", "%s %s: size" % (name, kind), size_of(folder), "bytes")


if __name__ == "__main__":
    if "--save" in sys.argv:
        save(sys.argv[sys.argv.index("--fluid") + 1])
    else:
        common.main("QUANTIZED", "rows/s", CASES, prepare, None,
                    lambda args: common.Fluid(args.fluid, ("exe cache",)))
