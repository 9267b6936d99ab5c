"""Interpreters of the engines: named by the environment, or installed into build/rivals."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RIVALS = os.path.join(ROOT, "build", "rivals")

PYTHON3 = ("python3.11", "python3.12", "python3.13", "python3.10")
TOOLS = ("numpy", "gensim", "scikit-learn", "vowpalwabbit", "onnxruntime")
#: Engine -> (environment variable, folder in build/rivals, interpreters that can run it, packages).
KNOWN = dict(
    product=("BENCH_PRODUCT_PYTHON", None, (), ()),
    fluid18=("BENCH_FLUID18_PYTHON", "fluid18", ("python3.7",), ("paddlepaddle==1.8.5", "protobuf<3.21", "numpy<1.20")),
    paddle2=("BENCH_PADDLE2_PYTHON", "paddle2", ("python3.10", "python3.9", "python3.8"), ("paddlepaddle==2.6.2",)),
    paddle3=("BENCH_PADDLE3_PYTHON", "paddle3", ("python3.11", "python3.12", "python3.10"),
             ("paddlepaddle==3.3.1", "setuptools")),
    torch=("BENCH_TORCH_PYTHON", "torch", PYTHON3, ("torch", "numpy")),
    gensim=("BENCH_TOOLS_PYTHON", "tools", PYTHON3, TOOLS), vw=("BENCH_TOOLS_PYTHON", "tools", PYTHON3, TOOLS),
    sklearn=("BENCH_TOOLS_PYTHON", "tools", PYTHON3, TOOLS), onnx=("BENCH_TOOLS_PYTHON", "tools", PYTHON3, TOOLS))


def say(text):
    print("rivals: " + text, file=sys.stderr, flush=True)


def interpreters(engines, install=False):
    """{engine: path of its Python} of those that can be measured; says which cannot, and why.

    install: makes environments for rivals that no variable names, where this machine has an interpreter for them.
    """
    found = {}
    for engine in engines:
        variable, folder, _, packages = KNOWN[engine]
        if variable in os.environ:
            found[engine] = os.environ[variable]
        elif folder is None:
            found[engine] = sys.executable
        else:
            python = os.path.join(RIVALS, folder, "bin", "python")
            if packages and install and not os.path.exists(os.path.join(RIVALS, folder, "ready")):
                make(engine)
            if os.path.exists(os.path.join(RIVALS, folder, "ready")):
                found[engine] = python
            else:
                say("%s is not measured: %s is not set%s"
                    % (engine, variable, "" if install else ", and --rivals was not asked for"))
    return found


def make(engine):
    """Installs a rival. A failure leaves no environment and is said."""
    _, folder, candidates, packages = KNOWN[engine]
    environment = os.path.join(RIVALS, folder)
    base = next(filter(None, map(shutil.which, candidates)), None)
    if base is None:
        say("%s cannot be installed: it needs %s, and none is on the path" % (engine, " or ".join(candidates)))
        return
    say("installing %s for %s" % (", ".join(packages), base))
    shutil.rmtree(environment, ignore_errors=True)
    os.makedirs(RIVALS, exist_ok=True)
    try:
        subprocess.run([base, "-m", "venv", environment], check=True)
        subprocess.run([os.path.join(environment, "bin", "python"), "-m", "pip", "install", "-q"] + list(packages), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(environment, ignore_errors=True)
        say("%s could not be installed: %s" % (engine, error))
        return
    with open(os.path.join(environment, "ready"), "w"):
        pass
