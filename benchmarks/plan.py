"""What run.py measures: scripts of the rows, options of the engines, the configurations that are worth a sweep."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))

FLUID = dict(W1="w01_fit_a_line", W2="w02_mnist_mlp", W3="w03_resnet32_cifar", W5="w05_ptb_lstm",
             W6="w06_imdb_stacked_lstm", W7="w07_encoder", W8="w08_ctr_dnn", W8e="w08e_ctr_dnn_files",
             W9="w09_lr_fm", W9e="w09e_lr_fm_files", W10="w10_word2vec", W11="w11_ps_loopback", W12="w12_reader",
             W13="w13_executor_overhead", W15="w15_data_parallel", W16="w16_gru", W17="w17_attention", W18="w18_while",
             W19="w19_ctc", W20="w20_crf", W21="w21_imagenet", COMPILE="compile_time", COST="cost", STEADY="steady")
PRODUCT = dict(FLUID, INSTR="instructions", SOAK="soak", W14="table")
TORCH = {row: "torch_w%02d" % int(row[1:])
         for row in ("W1", "W2", "W3", "W5", "W6", "W7", "W8", "W13", "W16", "W17", "W19", "W21")}
STATIC = {row: FLUID[row] for row in ("W1", "W2", "W3", "W7", "W8", "W9", "W10", "W13")}

#: Engine -> its script for each row, its options; rivals.py knows the interpreters.
ENGINES = dict(
    product=(PRODUCT, ["--fluid", "anabranch.fluid"]),
    fluid18=(FLUID, ["--fluid", "paddle.fluid"]),
    paddle2=(STATIC, ["--fluid", "paddle_static"]),
    paddle3=(STATIC, ["--fluid", "paddle_static"]),
    torch=(dict(TORCH, COST="cost"), []),
    gensim=(dict(W10="gensim_w10"), []),
    vw=(dict(W9="vw_w09", W9e="vw_w09"), []))

QUICK_ROWS = ["W1", "W2", "W8", "W13"]
FULL_ROWS = ["W1", "W2", "W3", "W5", "W6", "W7", "W8", "W8e", "W9", "W9e", "W10", "W12", "W13", "W15", "W16", "W17", "W18",
             "W19", "W20", "W21", "COST", "COMPILE", "INSTR", "STEADY", "SOAK", "W14"]
#: Why a row is not one of --full.
NOT_MEASURED = dict(W11="four processes on two cores: by hand")
WHOLE = ("COST", "STEADY", "SOAK", "INSTR", "W14")  # scripts that repeat and print all their metrics by themselves
NAMED_CONFIGS = ("W14",)             # of those, where one metric comes in several configurations

#: The product's configurations: all of them are shown, none is chosen after the event.
OWN = dict(W3=("exe cache", "cp1 bf16"), W7=("exe cache", "cp1 bf16"), W5=("exe cache lod", "exe cache static", "exe cache unrolled"), W8e=("memory threads2", "queue threads2"),
           W9e=("text threads2", "cache threads2"),
           W12=("memory threads2", "queue threads2", "memory threads2 zstd"),
           W15=("cp1 single", "cp1", "cp2", "cp2 reduce"))
OWN_DEFAULT = ("exe cache",)
#: Cases that --full leaves out.
LEFT_OUT = dict(W10=dict(batch=100), W15=dict(per_replica=32))
#: (rival, row) -> {the product's configuration: the rival's that stands beside it}, where that is not its fastest.
BESIDE = {("fluid18", "W15"): dict({config: config for config in OWN["W15"]}, cp1="cp1 omp2"),
          ("vw", "W9e"): {"text threads2": "text", "cache threads2": "sgd"}}

#: Configurations that were the fastest, or within a tenth of it, on some machine; --sweep-all tries all others, too.
SHORT = dict(
    fluid18=dict(W1=("exe cache", "cp1"), W2=("exe cache", "exe cache omp2", "cp2", "cp2 fuse"),
                 W3=("exe cache omp2 mkldnn", "exe cache omp2", "cp2"),
                 W5=("exe cache unrolled", "exe cache omp2 unrolled", "exe cache omp2 static", "exe cache omp2 lod"),
                 W6=("exe cache", "exe cache omp2", "cp2"), W7=("exe cache omp2", "exe cache omp2 mkldnn", "cp2"), W8=("exe cache", "cp2", "cp2 reduce"),
                 W8e=("memory threads2", "queue threads2"), W9=("exe cache", "cp2", "cp2 reduce"),
                 W9e=("text threads2", "memory threads2"),
                 W10=("exe cache", "exe cache omp2", "cp2"), W12=("memory threads2",), W13=("exe cache", "cp1"),
                 W16=("exe cache", "exe cache omp2", "cp2"), W17=("exe cache", "exe cache omp2"),
                 W19=("exe cache", "exe cache omp2"), W20=("exe cache", "exe cache omp2"),
                 W21=("exe cache omp2 mkldnn", "exe cache omp2")),
    torch=dict(W1=("eager", "compile"), W2=("eager", "eager omp2", "compile"),
               W3=("eager omp2 cl", "eager omp2", "compile omp2 cl"), W5=("eager omp2", "compile omp2"),
               W6=("eager omp2", "eager"), W7=("eager omp2", "compile omp2"), W8=("eager", "eager omp2", "compile omp2"),
               W16=("eager omp2", "eager"), W17=("eager omp2", "eager", "compile omp2"), W19=("eager omp2", "eager"), W21=("eager omp2 cl", "eager omp2", "compile omp2 cl")),
    gensim=dict(W10=("omp2",)), vw=dict(W9=("text", "sgd")))


def is_measured(row, case):
    """Is a case part of --full?"""
    return not any(case.get(key) == value for key, value in LEFT_OUT.get(row, {}).items())


def written(row):
    """Is there a script for the row?"""
    return os.path.exists(os.path.join(HERE, PRODUCT[row] + ".py"))


def own_configs(row):
    return OWN.get(row, OWN_DEFAULT)


def shown(row, config):
    """What is added to a metric's name so that it says which configuration of the product it is."""
    return " [%s]" % config if len(own_configs(row)) > 1 else ""
