"""Mistakes with data that give a model wrong numbers: each one has a warning that says what to do."""
import gzip
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from mistaken_runs import EXECUTOR

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L

pytestmark = pytest.mark.usefixtures("fresh")
MAIN = fluid.default_main_program


def schema(salt=None, clip=10.0, column="user"):
    made = anabranch.Schema()
    made.number("price").clip(0, clip)
    made.text(column, name="user").hash(100, salt=salt)
    made.label("clicked", dtype="float32")
    return made


def model(made):
    inputs = made.inputs()
    rows = L.reshape(L.embedding(inputs["user"], [100, 4]), [-1, 4])
    logit = L.fc(L.concat([rows, inputs["price"]], 1), 1)
    loss = L.mean(L.sigmoid_cross_entropy_with_logits(logit, inputs["clicked"]))
    answer = L.sigmoid(logit)
    test = MAIN().clone(for_test=True)
    fluid.optimizer.Adam(0.1).minimize(loss)
    EXECUTOR.run(fluid.default_startup_program())
    return inputs, answer, loss, test


def rows(name="a.csv", count=400, header="clicked,user,price"):
    draw = np.random.RandomState(0)
    with open(name, "w") as file:
        file.write(header + "\n")
        for _ in range(count):
            clicked = draw.randint(2)
            file.write("%d,u%d,%.3f\n" % (clicked, draw.randint(20), draw.rand() + clicked))
    return name


def data(inputs, made, files, kind="QueueDataset", share=(0, 1)):
    found = fluid.DatasetFactory().create_dataset(kind)
    found.set_use_var(list(inputs.values()))
    found.set_format(made)
    found.set_filelist(files)
    found.set_share(*share)
    return found


def another_schema_of_the_data():
    inputs, _, _, _ = model(schema())
    EXECUTOR.train_from_dataset(MAIN(), data(inputs, schema(clip=1.0), [rows()]))


def another_salt_of_a_loader():
    inputs, _, _, _ = model(schema())
    list(fluid.io.DataLoader.from_dataset(data(inputs, schema(salt="items"), [rows()]), fluid.cpu_places(1))())


def another_schema_of_the_model():
    _, answer, _, _ = model(schema())
    fluid.io.save_inference_model("model", ["user", "price"], [answer], EXECUTOR, schema=schema(salt="items"))


def a_salt_that_follows_the_column():
    _, answer, _, test = model(schema())
    fluid.io.save_inference_model("model", ["user", "price"], [answer], EXECUTOR, test, schema=schema(column="user_id"))


def label_as_a_feature():
    made = schema()
    made.number("clicked", name="again")
    made.inputs()


def evaluate(trained, tested):
    """A pass that evaluates a share, after one that trains on another one."""
    made = schema()
    inputs, _, loss, test = model(made)
    EXECUTOR.train_from_dataset(MAIN(), data(inputs, made, [rows()], share=trained))
    EXECUTOR.infer_from_dataset(test, data(inputs, made, ["./a.csv"], share=tested), fetch_list=[loss])


def shares_that_overlap():
    evaluate((0, 0.8), (0.7, 1))


def shares_of_two_seeds():
    evaluate((0, 0.8), (0.8, 1, 1))


def share_of_the_test_forgotten():
    evaluate((0, 0.8), (0, 1))


def files_that_are_not_loaded():
    made = schema()
    inputs, _, _, _ = model(made)
    found = data(inputs, made, [rows()], "InMemoryDataset")
    found.load_into_memory()
    found.set_filelist([rows("b.csv")])
    EXECUTOR.train_from_dataset(MAIN(), found)


def only_a_header():
    made = schema()
    inputs, _, _, _ = model(made)
    EXECUTOR.train_from_dataset(MAIN(), data(inputs, made, [rows(count=0)]))


def no_good_line():
    made = schema()
    inputs, _, _, _ = model(made)
    with open("a.csv", "w") as file:
        file.write("clicked,user,price\n7,u,1\n8,u,1\n")
    found = data(inputs, made, ["a.csv"])
    found.set_bad_rows("skip")
    EXECUTOR.train_from_dataset(MAIN(), found)


def prediction_of_the_other_class():
    made = schema()
    inputs, answer, loss, _ = model(made)
    metrics = anabranch.RankingMetrics(1 - answer, inputs["clicked"])
    for _ in range(5):
        EXECUTOR.train_from_dataset(MAIN(), data(inputs, made, [rows()]))
    EXECUTOR.infer_from_dataset(MAIN(), data(inputs, made, ["a.csv"]), metrics=metrics)


def loss_of_nan():
    made = schema()
    inputs, _, _, _ = model(made)
    weights = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weights.set(np.full(weights.shape(), np.nan, "float32"), fluid.CPUPlace())
    EXECUTOR.train_from_dataset(MAIN(), data(inputs, made, [rows()]))


def nan_in_a_loop():
    loop = anabranch.Loop(show=False)
    for _ in loop.epochs(1):
        for _ in loop.steps(range(2)):
            loop.log(loss=np.array([np.nan]))


def model_of_nan():
    _, answer, _, _ = model(schema())
    weights = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weights.set(np.full(weights.shape(), np.nan, "float32"), fluid.CPUPlace())
    fluid.io.save_inference_model("model", ["user", "price"], [answer], EXECUTOR)


def checkpoints_that_do_not_count():
    made = schema()
    inputs, _, _, _ = model(made)
    for _ in anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(1):
        EXECUTOR.train_from_dataset(MAIN(), data(inputs, made, [rows()]))


WARNED = [
    (another_schema_of_the_data, r'the schema converts values to price by \[\["clip", 0, 1.0\]\], but.*10.0'),
    (another_salt_of_a_loader, r'set_format: .* to user by \[\["hash", 100, "items"\]\], but'),
    (another_schema_of_the_model, "save_inference_model: the schema converts values to user .*use the same schema"),
    (a_salt_that_follows_the_column, r'values to user by \[\["hash", 100, \["user_id"\]\]\], but'),
    (label_as_a_feature, "the feature again reads the column clicked of the label clicked"),
    (shares_that_overlap, r"lines of ./a.csv were trained on: set_share\(0.7, 1\) overlaps with set_share\(0, 0.8\)"),
    (shares_of_two_seeds, r"set_share\(0.8, 1, seed=1\) overlaps with set_share\(0, 0.8\).* the same seed and column"),
    (share_of_the_test_forgotten, r"set_share\(0, 1\) overlaps with set_share\(0, 0.8\)"),
    (files_that_are_not_loaded, "the records in memory are those of set_filelist and set_share before load_into"),
    (only_a_header, "train_from_dataset: the data set has no rows: 1 file of set_filelist has no lines"),
    (no_good_line, "the data set has no rows: 1 file of set_filelist has no well-formed lines"),
    (prediction_of_the_other_class, "the auc of 0.* means that rows with the label 1 have the smaller predictions"),
    (loss_of_nan, "train_from_dataset: the mean loss of the pass is NaN. With FLAGS_check_nan_inf=1"),
    (nan_in_a_loop, "Loop.log: loss is NaN"),
    (model_of_nan, "save_inference_model: fc_0.w_0 contains NaN"),
    (checkpoints_that_do_not_count, "a run of Checkpoints does not count the steps of this pass.* pass checkpoints="),
]


@pytest.mark.parametrize("mistake, message", WARNED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_warning_names_the_cure(mistake, message):
    with pytest.warns(UserWarning) as found:
        mistake()
    assert [bool(re.search(message, str(one.message))) for one in found] == [True], [str(one.message) for one in found]


def test_right_data_get_no_warning(capfd):
    made = schema()
    inputs, answer, loss, test = model(made)
    metrics = anabranch.RankingMetrics(answer, inputs["clicked"])
    memory = data(inputs, made, [rows()], "InMemoryDataset", (0, 0.8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.load_into_memory()
        run = anabranch.Checkpoints("run", MAIN(), EXECUTOR)
        for _ in run.epochs(2):
            EXECUTOR.train_from_dataset(MAIN(), memory, checkpoints=run, deterministic=True)
            for share in (0, 0.8), (0.8, 1):    # equal to that of the training, or apart from it
                EXECUTOR.infer_from_dataset(test, data(inputs, made, ["a.csv"], share=share), fetch_list=[loss],
                                            metrics=metrics)
        memory.set_filelist([rows("b.csv")])
        memory.load_into_memory()
        EXECUTOR.train_from_dataset(MAIN(), memory)
        EXECUTOR.infer_from_dataset(test, data(inputs, made, [rows("c.csv")]), fetch_list=[loss])
        fluid.io.save_inference_model("model", ["user", "price"], [answer], EXECUTOR, test, schema=made)
    capfd.readouterr()
    assert len(list(fluid.io.DataLoader.from_dataset(data(inputs, made, ["c.csv"]), fluid.cpu_places(1))())) == 12
    assert "the last 16 dropped (drop_last)" in capfd.readouterr().err


def test_a_schema_of_ids_may_train_for_one_of_texts():
    trained = anabranch.Schema()
    trained.integer("user")
    inputs = trained.inputs()
    answer = L.fc(L.reshape(L.embedding(inputs["user"], [100, 4]), [-1, 4]), 1)
    EXECUTOR.run(fluid.default_startup_program())
    served = anabranch.Schema()
    served.text("name", name="user").hash(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fluid.io.save_inference_model("model", ["user"], [answer], EXECUTOR, schema=served)


_OTHER_PROCESS = """
import fcntl, os, sys
handle = os.open("run", os.O_RDONLY)
fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


def other_process():
    return subprocess.Popen([sys.executable, "-c", _OTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_two_processes_do_not_share_a_folder():
    model(schema())
    list(anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(1))
    with other_process() as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(RuntimeError, match="another process has a run in the folder run.*give this run another"):
            list(anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(2))
        other.stdin.close()
    first, second = (anabranch.Checkpoints("run", MAIN(), EXECUTOR) for _ in range(2))
    for _ in first.epochs(2):       # runs of one process may
        assert list(second.epochs(1)) == []
    with other_process() as other:
        assert other.communicate(b"")[0] == b"locked\n"


def odd_texts(field, text, split=None, name="odd.csv"):
    made = anabranch.Schema()
    feature = made.text("kind", split=split)
    feature.hash(100) if text is None else feature.vocabulary(text)
    inputs = made.inputs()
    rows = L.embedding(inputs["kind"], [100, 2])
    L.fc(L.sequence_pool(rows, "sum") if split else rows, 1)
    EXECUTOR.run(fluid.default_startup_program())
    with (gzip.open if name.endswith(".gz") else open)(name, "wt") as file:
        file.write("other,kind\n" + "".join("1,%s\n" % (field % number) for number in range(30)))
    EXECUTOR.infer_from_dataset(MAIN(), data(inputs, made, [name]))


@pytest.mark.parametrize("field, words, split, message", [
    ("RED%d", ["red1", "red2"], None, "none of the first 30 texts is in the vocabulary.* got 'RED0', .*has 'red1'"),
    ("a%d|b", None, ";", "none of the first 30 lists contains the separator ';'.*many contain '|'"),
    ("%d.0", None, None, "its texts are integers that were written as floats.*dtype=str"),
    (" red%d", None, None, "all texts start or end with a space, which is a part of the text"),
])
@pytest.mark.parametrize("name", ["odd.csv", "odd.csv.gz"])
def test_odd_texts_are_named(field, words, split, message, name):
    with pytest.warns(UserWarning, match="column kind: " + message):
        odd_texts(field, words, split, name)


@pytest.mark.parametrize("field, words, split", [
    ("red%d", ["red1", "blue"], None), ("a%d", None, "|"), ("%d", None, None), ("1.%d", None, None),
    (" %d", None, " ")])
def test_plain_texts_get_no_warning(field, words, split):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd_texts(field, words, split)


def test_another_batch_size_on_resume(capfd):
    made = schema()
    inputs, _, _, _ = model(made)
    rows()
    with open("a.csv", "a") as file:
        file.write("7,bad,1\n")

    def run(batch_size):
        found = data(inputs, made, ["a.csv"])
        found.set_batch_size(batch_size)
        checkpoints = anabranch.Checkpoints("run", MAIN(), EXECUTOR, every=2)
        for _ in checkpoints.epochs(1):
            EXECUTOR.train_from_dataset(MAIN(), found, checkpoints=checkpoints, thread=1)

    for size, told in (64, False), (64, False), (16, True):     # the last line ends each run
        with pytest.raises(ValueError, match="out of range"):
            run(size)
        assert ("another batch size, other files or another share" in capfd.readouterr().err) is told


def test_a_column_of_rows_and_a_vector_of_rows_make_pairs():
    column, vector = fluid.data("column", [None, 1]), fluid.data("vector", [None])
    for pair in (lambda: L.elementwise_mul(column, vector), lambda: vector - column, lambda: L.elementwise_sub(
            vector, column)):
        with pytest.warns(UserWarning, match="the result has a value for each pair of rows"):
            pair()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L.elementwise_mul(column, vector, axis=0)
        L.elementwise_mul(column, column)
        L.elementwise_mul(vector, vector)
        assert (column - vector).shape == (-1, 1)
