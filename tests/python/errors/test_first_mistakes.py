"""The likeliest mistakes in a first program: each message says what to do."""
import re

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L

X, Y = np.ones((2, 4), "float32"), np.zeros((2, 1), "int64")


pytestmark = pytest.mark.usefixtures("fresh")


def net():
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    prediction = L.fc(x, 3, act="softmax")
    return prediction, L.mean(L.cross_entropy(prediction, y))


def run(feed, startup=True):
    _, loss = net()
    executor = fluid.Executor()
    if startup:
        executor.run(fluid.default_startup_program())
    executor.run(feed=feed, fetch_list=[loss])


def another_name_fed():
    with pytest.warns(UserWarning, match="feed of 'label' is ignored: the program has no such variable") as found:
        run({"x": X, "label": Y})
    assert found[0].filename == __file__, "the line that runs the program"


def typo_in_a_feed():
    image = fluid.data("image", [None, 4])
    with pytest.warns(UserWarning, match="feed of 'imgae' is ignored"):
        fluid.Executor().run(feed={"imgae": X}, fetch_list=[L.mean(image)])


def another_program():
    _, loss = net()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.warns(UserWarning, match="another program_guard"):
            fluid.Executor().run(fetch_list=[loss])


def look_up(height, row):
    rows = fluid.embedding(fluid.data("ids", [None], "int64"), [height, 2])
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    executor.run(feed={"ids": np.array([row])}, fetch_list=[rows])


def minimized_twice():
    optimizer, (_, loss) = fluid.optimizer.Adam(0.1), net()
    optimizer.minimize(loss)
    optimizer.minimize(loss)


def save(feeds, folder="m"):
    prediction, _ = net()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    fluid.io.save_inference_model(folder, feeds, [prediction], executor)


def predictor_of(folder):
    save(["x"], "clickmodel")
    return anabranch.Predictor(folder)


def fetch(name, **kwargs):
    net()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    executor.run(feed={"x": X, "y": Y}, fetch_list=[name], **kwargs)


def read_from(path):
    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_use_var([fluid.data("x", [None, 1])])
    dataset.set_filelist([path])
    fluid.Executor().train_from_dataset(fluid.default_main_program(), dataset)


MISTAKES = {
    "no startup program": (lambda: run({"x": X, "y": Y}, startup=False), LookupError,
                           "fc_0.w_0 holds no value.*run the startup program first"),
    "nothing fed": (lambda: run({"x": X}), LookupError,
                    r'^variable "y" has no value: it was not fed and no operator computes it\n'
                    r'  first read by cross_entropy\w* at .*test_first_mistakes.py:\d+.*: return prediction.*\n'
                    r'  Feed it: exe.run\(feed={"y": ...}\). Feeds of this call: "x"\n'),
    "another name fed": (another_name_fed, LookupError,
                         r'"y" has no value.*Feeds of this call: "x", "label"; the program has no variable "label"\n'),
    "a feed with a typo": (typo_in_a_feed, LookupError, r'no variable "imgae"; did you mean "image"\?\n'),
    "a flag with a typo": (lambda: fluid.set_flags({"FLAGS_check_nan_in": 1}), ValueError,
                           "no flag 'FLAGS_check_nan_in'; did you mean FLAGS_check_nan_inf"),
    "an activation with a typo": (lambda: L.fc(fluid.data("w", [None, 2]), 3, act="rleu"), ValueError,
                                  r"^fc: act must be the name of an activation, got 'rleu'; did you mean relu.*\n"
                                  r"  activations: .*hard_sigmoid, .*relu"),
    "float64 fed": (lambda: run({"x": X.astype("float64"), "y": Y}), ValueError,
                    r"'x' is float32, but float64 is given; feed array.astype\('float32'\)"),
    "another shape fed": (lambda: run({"x": X[:, :3], "y": Y}), ValueError, r"'x' is \[-1, 4\] \(-1: any\).*\[2, 3\]"),
    "a list fed": (lambda: run({"x": X.tolist(), "y": Y}), RuntimeError, "feed of x.*pass a numpy array"),
    "a label out of range": (lambda: run({"x": X, "y": Y + 3}), ValueError, r"Label of sample 0 must be 0 to 2.*got 3"),
    "an id out of range": (lambda: look_up(10, 10), ValueError, r"id of sample 0 is 10.*0 to 9.*10 rows"),
    "fetched from another program": (another_program, LookupError, "computed by no op.*check the name"),
    "a loss with many elements": (lambda: fluid.optimizer.SGD(0.1).minimize(net()[0]), AssertionError,
                                  r"loss must have shape \(1,\).*fluid.layers.mean"),
    "a number of a Variable": (lambda: float(net()[1]), TypeError, "no value while the program is built: fetch it"),
    "a Variable fed": (lambda: run({"x": fluid.data("z", [None, 4]), "y": Y}), TypeError,
                       "feed of x: the value must be an array, LoDTensor or number, got Variable"),
    "a layer on an array": (lambda: L.fc(X, 3), TypeError, "input must be Variable.*ndarray.*fluid.data"),
    "a width that is unknown": (lambda: L.fc(fluid.data("w", [None, None]), 3), ValueError,
                               "only the number of rows may be None"),
    "a number as text": (lambda: L.fc(fluid.data("w", [None, 2]), "3"), TypeError, "must be numbers, got '3'"),
    "a GPU": (lambda: fluid.CUDAPlace(0), NotImplementedError, r"use CPUPlace\(\).*anabranch run"),
    "minimize twice": (minimized_twice, AssertionError, "minimize must be called once.*Create another optimizer"),
    "a folder that is not there": (lambda: fluid.io.load_inference_model("nowhere", fluid.Executor()), ValueError,
                                   "there is no folder 'nowhere'\n  hint   the path is relative to.* /"),
    "a folder with a typo": (lambda: predictor_of("clikmodel"), ValueError,
                             "there is no folder 'clikmodel'; did you mean clickmodel[?]\n"),
    "nothing for a model": (lambda: predictor_of("clickmodel").run({}), ValueError, "inputs must be x, got nothing"),
    "a class of data sets with a typo": (lambda: fluid.DatasetFactory().create_dataset("InMemoryDataSet"), ValueError,
                                         "one of QueueDataset, InMemoryDataset.*; did you mean InMemoryDataset[?]"),
    "a fed name of a saved model": (lambda: save(["X"]), ValueError,
                                    "^save_inference_model: feeded_var_names .* 'X'; did you mean x[?]"),
    "a fetched name with a typo": (lambda: fetch("mean_0.tmp"), LookupError,
                                   "variable mean_0.tmp is computed by no op.*; did you mean mean_0.tmp_0.*\n"),
    "the name of a Python variable fetched": (lambda: fetch("loss"), LookupError, "fetch the Variable itself"),
    "a pruned name with a typo": (lambda: fetch("mean_0.tmp", use_prune=True), ValueError,
                                  "no variable mean_0.tmp.*; did you mean mean_0.tmp_0"),
    "a variable with a typo": (lambda: fluid.default_main_program().global_block().var(net()[0].name[:-1]), ValueError,
                               "block 0 has no variable.*; did you mean fc_0.tmp_"),
    "a dtype with a typo": (lambda: fluid.data("z", [None], "int46"), TypeError,
                            "^data: dtype must be one of bool,.* got 'int46'; did you mean int64.*[?]\n"),
    "a dtype of a layer": (lambda: L.fill_constant([1], "flaot32", 1.0), ValueError, "did you mean float32"),
    "a file of a data set": (lambda: read_from("nope.txt"), LookupError,
                             "file nope.txt does not exist\n  hint   the path is relative to the working directory, /"),
    "a file to load": (lambda: fluid.load(fluid.default_main_program(), "nope"), FileNotFoundError,
                       "neither nope.pdparams nor nope exists\n  hint   the path is relative"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_says_what_to_do(mistake):
    call, error, words = MISTAKES[mistake]
    with pytest.raises(error) as info:
        call()
    assert isinstance(info.value, fluid.core.EnforceNotMet)
    assert info.value.__context__ is None or info.value.__suppress_context__, "one error, one traceback"
    assert re.search(words, str(info.value), re.S), str(info.value)
    assert re.search(r"\n  help   anabranch help \w+$", str(info.value))


def test_numpy_on_a_variable_warns():
    _, loss = net()
    with pytest.warns(UserWarning, match="no value while the program is built: fetch it"):
        held = np.array([loss, loss])
    assert held.shape == (2,) and held[0] is loss and held.dtype == object


def test_if_on_a_comparison_warns():
    _, loss = net()
    with pytest.warns(UserWarning, match="`if`, `while`.*fluid.layers.cond"):
        assert loss > 0.5
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss and net


def test_a_missing_feed_shows_one_error():
    """The engine's own error says less than the one that replaces it, so the traceback omits it."""
    with pytest.raises(LookupError) as info:
        run({"x": X})
    assert info.value.__cause__ is None and info.value.__suppress_context__


def test_an_absolute_path_needs_no_working_directory(tmp_path):
    with pytest.raises(LookupError) as info:
        read_from(str(tmp_path / "nope.txt"))
    assert "working directory" not in str(info.value)
