"""The measurements of run.py: scripts of the rows, engines, configurations, and the seconds that a row may take."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))

FLUID = dict(W1="w01_fit_a_line", W2="w02_mnist_mlp", W3="w03_resnet32_cifar", W5="w05_ptb_lstm",
             W6="w06_imdb_stacked_lstm", W7="w07_encoder", W8="w08_ctr_dnn", W8e="w08e_ctr_dnn_files",
             W9="w09_lr_fm", W9e="w09e_lr_fm_files", W10="w10_word2vec", W11="w11_ps_loopback", W12="w12_reader",
             W13="w13_executor_overhead", W15="w15_data_parallel", W16="w16_gru", W17="w17_attention", W18="w18_while",
             W19="w19_ctc", W20="w20_crf", W21="w21_imagenet", COMPILE="compile_time", COST="cost", PREDICT="predict")
PRODUCT = dict(FLUID, W14="table", INSTR="instructions", STEADY="steady", SOAK="soak")
TORCH = {row: "torch_w%02d" % int(row[1:])
         for row in ("W1", "W2", "W3", "W5", "W6", "W7", "W8", "W13", "W16", "W17", "W19", "W21")}
STATIC = {row: FLUID[row] for row in ("W1", "W2", "W3", "W7", "W8", "W9", "W10", "W13")}

#: Engine -> its script for each row, its options; rivals.py knows the interpreters.
ENGINES = dict(
    product=(PRODUCT, ["--fluid", "anabranch.fluid"]),
    fluid18=(FLUID, ["--fluid", "paddle.fluid"]),
    torch=(dict(TORCH, COST="cost"), []),
    paddle3=(STATIC, ["--fluid", "paddle_static"]),
    paddle2=(STATIC, ["--fluid", "paddle_static"]),
    gensim=(dict(W10="gensim_w10"), []),
    vw=(dict(W9="vw_w09", W9e="vw_w09"), []),
    sklearn=(dict(W9="vw_w09"), []),
    onnx=(dict(PREDICT="predict"), []))
OPTIONS = {("torch", "COST"): ["--fluid", "torch"], ("onnx", "PREDICT"): ["--fluid", "onnxruntime"]}

QUICK_ROWS = ["W1", "W2", "W8", "W13"]
#: Rows of --full in the order in which they are measured: those that a user asks for first come first.
FULL_ROWS = ["W8e", "W10", "W5", "W3", "W13", "COST", "W1", "W2", "W8", "W9", "W9e", "W12", "W6", "W7", "W16", "W15", "W19",
             "W20", "W17", "W18", "W21", "PREDICT", "COMPILE", "W11", "W14", "INSTR", "STEADY", "SOAK"]
#: Why a script is not one of --full.
NOT_MEASURED = {"OPS": "measuring every operator by itself takes an hour; run `./dev bench --ops`",
                "SERVE": "a server with 200 connections needs more than two cores; run `benchmarks/serve.py`",
                "G1-G4": "these rows need a GPU; run `tools/gpu_check.sh speed`"}
WHOLE = ("W14", "INSTR", "STEADY", "SOAK")   # scripts of this project only, which repeat and print all metrics by themselves
WHOLE_OPTIONS = dict(W14=["--memory", "1", "--rounds", "3"], INSTR=["--quick"], STEADY=["--runs", "100000"],
                     SOAK=["--runs", "20000"])

#: Seconds that the rounds of one case may take; building and warming up come on top of it.
BUDGET = dict(W1=12, W2=12, W3=40, W5=20, W6=35, W7=30, W8e=40, W10=30, W11=60, W12=25, W13=12, W15=25, W17=20, W18=25,
              W21=35, COST=25, PREDICT=12, COMPILE=12)
USUAL_BUDGET = 20
WARM_UP_LIMIT = 100                # seconds for building, tracing and warming up: torch.compile may take most of it

#: This project's configurations: all of them are shown, none is chosen after the event.
OWN = dict(W5=("exe cache lod", "exe cache static", "exe cache unrolled"), W8e=("memory threads2", "queue threads2"),
           W9e=("text threads2", "cache threads2"), W11=("feed",),
           W12=("memory threads2", "queue threads2", "memory threads2 zstd"),
           W15=("cp1 single", "cp2", "cp2 reduce"))
OWN_DEFAULT = ("exe cache",)
OWN_BF16 = ("cp1 bf16",)           # of a case with precision=bf16: a field of BuildStrategy asks for it
#: Cases of --full that are added to those of the script, and those that are left out.
ADDED = dict(W3=[dict(batch=128, precision="bf16")], W7=[dict(batch=8, precision="bf16")])
LEFT_OUT = dict(W2=[dict(optimizer="sgd")], W8=[dict(batch=128)], W9e=[dict(model="fm")],
                W10=[dict(batch=100)], W11=[dict(workers=1), dict(workers=4), dict(mode="half_async"), dict(mode="geo")],
                W13=[dict(shape="four"), dict(ops=100)], W21=[dict(model="mobilenet_v1", what="infer")],
                W15=[dict(per_replica=32), dict(per_replica=128)], W19=[dict(classes=30)],
                PREDICT=[dict(threads=2, rows=1), dict(threads=1, rows=64)], COMPILE=[dict(ops=1000)])
#: (rival, row) -> {this project's configuration: the rival's next to it}, where that is not its fastest.
PAIRED = {("fluid18", "W15"): {config: config for config in OWN["W15"]}}

#: Configurations of rivals that were the fastest, or within a tenth of it, on some machine; all are started, and after
#: two rounds of a case only the fastest of each rival stays. --choices FILE remembers them.
SHORT = dict(
    fluid18=dict(W1=("exe cache", "cp1"), W2=("exe cache", "exe cache omp2", "cp2", "cp2 fuse"),
                 W3=("exe cache omp2 mkldnn", "exe cache omp2", "cp2"),
                 W5=("exe cache unrolled", "exe cache omp2 unrolled", "exe cache omp2 static", "exe cache omp2 lod"),
                 W6=("exe cache", "exe cache omp2", "cp2"), W7=("exe cache omp2", "exe cache omp2 mkldnn", "cp2"),
                 W8=("exe cache", "cp2", "cp2 reduce"), W8e=("memory threads2", "queue threads2"),
                 W9=("exe cache", "cp2", "cp2 reduce"), W9e=("text threads2", "memory threads2"),
                 W10=("exe cache", "exe cache omp2", "cp2"), W11=("feed",), W12=("memory threads2",),
                 W13=("exe cache", "cp1"), W15=OWN["W15"], W16=("exe cache", "exe cache omp2", "cp2"),
                 W17=("exe cache", "exe cache omp2"), W18=("exe cache",), W19=("exe cache", "exe cache omp2"),
                 W20=("exe cache", "exe cache omp2"), W21=("exe cache omp2 mkldnn", "exe cache omp2"),
                 COST=("exe cache",), COMPILE=("exe cache",), PREDICT=("exe cache",)),
    torch=dict(W1=("eager", "compile"), W2=("eager", "eager omp2", "compile"),
               W3=("eager omp2 cl", "eager omp2", "compile omp2 cl"), W5=("eager omp2", "compile omp2"),
               W6=("eager omp2", "eager"), W7=("eager omp2", "compile omp2"), W8=("eager", "eager omp2", "compile omp2"),
               W13=("eager",), W16=("eager omp2", "eager"), W17=("eager omp2", "eager", "compile omp2"),
               W19=("eager omp2", "eager"), W21=("eager omp2 cl", "eager omp2", "compile omp2 cl"), COST=("eager",)),
    paddle3=dict(W1=("exe cache", "exe cache oldir"), W2=("exe cache omp2", "exe cache", "exe cache oldir"),
                 W3=("exe cache omp2", "exe cache omp2 oldir"), W7=("exe cache omp2",),
                 W8=("exe cache omp2 oldir", "exe cache oldir"), W9=("exe cache oldir",),
                 W10=("exe cache oldir", "exe cache omp2 oldir"), W13=("exe cache", "exe cache oldir")),
    gensim=dict(W10=("omp2",)), vw=dict(W9=("cache",), W9e=("text",)), sklearn=dict(W9=("sgd",)), onnx=dict(PREDICT=("exe cache",)))
SHORT["paddle2"] = SHORT["paddle3"]


def is_part(row, case):
    """Is a case part of --full?"""
    return not any(all(case.get(key) == value for key, value in out.items()) for out in LEFT_OUT.get(row, []))


def budget(row):
    return BUDGET.get(row, USUAL_BUDGET)


def own_configs(row, case):
    return OWN_BF16 if "precision" in case else OWN.get(row, OWN_DEFAULT)


def script(engine, row):
    """(script, its options) of an engine for a row."""
    scripts, options = ENGINES[engine]
    return scripts[row], OPTIONS.get((engine, row), options)
