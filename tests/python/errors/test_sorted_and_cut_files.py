"""Files whose rows mislead a training, although each row is well-formed, or that end too early."""
import gzip
import re
import warnings

import numpy as np
import pytest
from mistaken_runs import EXECUTOR

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L

pytestmark = pytest.mark.usefixtures("fresh")
MAIN = fluid.default_main_program


def write(name, lines, header="clicked,price\n"):
    with open(name, "w") as file:
        file.write(header + "".join(lines))
    return name


def rows(labels):
    return ["%d,%.3f\n" % (label, row % 7) for row, label in enumerate(labels)]


def model(loss="sigmoid"):
    price, clicked = fluid.data("price", [None, 1]), fluid.data("clicked", [None, 1], "int64")
    logits = L.fc(price, 1 if loss == "sigmoid" else 3)
    cost = (L.sigmoid_cross_entropy_with_logits(logits, L.cast(clicked, "float32")) if loss == "sigmoid"
            else L.softmax_with_cross_entropy(logits, clicked))
    fluid.optimizer.SGD(0.1).minimize(L.mean(cost))
    EXECUTOR.run(fluid.default_startup_program())
    return [clicked, price]


def data(slots, files, kind="QueueDataset", form="columns comma header\nclicked = clicked\nprice = price"):
    made = fluid.DatasetFactory().create_dataset(kind)
    made.set_use_var(slots)
    made.set_format(form)
    made.set_filelist(files)
    return made


def train(slots, files, **kwargs):
    EXECUTOR.train_from_dataset(MAIN(), data(slots, files, **kwargs))


def a_sorted_file():
    train(model(), [write("a.csv", rows([0] * 300 + [1] * 20))])


def a_large_sorted_file():
    train(model(), [write("a.csv", rows([1] * 90000 + [0] * 90000))])


def three_classes_in_turn():
    train(model("softmax"), [write("a.csv", rows([2] * 100 + [0] * 100 + [1] * 100))])


def a_file_for_each_label():
    slots = model()
    train(slots, [write("no.csv", rows([0] * 100)), write("yes.csv", rows([1] * 100))])


def multi_slot_lines():
    slots = model()
    train(slots, [write("a", ["1 %d 1 %d\n" % (row >= 100, row % 7) for row in range(200)], "")], form="")


def sorted_libsvm():
    label = fluid.data("label", [None, 1], "float32")
    value = fluid.data("value", [None, 1], "float32", lod_level=1)
    logits = L.fc(L.sequence_pool(value, "sum"), 1)
    fluid.optimizer.SGD(0.1).minimize(L.mean(L.sigmoid_cross_entropy_with_logits(logits, label)))
    EXECUTOR.run(fluid.default_startup_program())
    train([label, value], [write("a", ["%d 1:0.5 3:1\n" % (row >= 100) for row in range(200)], "")],
          form="libsvm\nlabel = label\nvalue = value")


def a_sorted_file_in_memory():
    made = data(model(), [write("a.csv", rows([0] * 100 + [1] * 100))], "InMemoryDataset")
    made.load_into_memory()
    EXECUTOR.train_from_dataset(MAIN(), made)


SORTED = r"train_from_dataset: the rows are sorted by the label \w+: those with %s come first, those with %s last.*shuf"
WARNED = [(a_sorted_file, SORTED % (0, 1)), (a_large_sorted_file, SORTED % (1, 0)),
          (three_classes_in_turn, SORTED % (2, 1)), (a_file_for_each_label, SORTED % (0, 1)),
          (multi_slot_lines, SORTED % (0, 1)), (sorted_libsvm, SORTED % (0, 1)),
          (a_sorted_file_in_memory, SORTED % (0, 1))]


def schema_without_a_header():
    made = anabranch.Schema(header=False)
    made.label(0, name="clicked")
    made.number(1, "price")
    slots = list(made.inputs().values())
    L.fc(slots[1], 1)
    EXECUTOR.run(fluid.default_startup_program())
    found = data(slots, [write("a.csv", rows([0, 1] * 50))], form=made)
    found.set_bad_rows("skip")
    EXECUTOR.infer_from_dataset(MAIN(), found)


def format_without_a_header():
    slots = model()
    made = data(slots, [write("a.csv", rows([0, 1] * 50))], form="columns comma\nclicked = 0\nprice = 1")
    made.set_bad_rows("skip")
    EXECUTOR.train_from_dataset(MAIN(), made)


HEADER = r"a.csv: the first line seems to contain the names of the columns \('clicked', 'price'\).*header=True"
WARNED += [(schema_without_a_header, HEADER), (format_without_a_header, HEADER)]


def auc_of_one_class():
    slots = model()
    label = slots[0]
    chances = L.softmax(L.fc(slots[1], 2))
    L.auc(chances, label)
    EXECUTOR.run(fluid.default_startup_program())
    EXECUTOR.infer_from_dataset(MAIN(), data(slots, [write("a.csv", rows([1] * 10))]))


def ranking_of_one_class():
    slots = model()
    chances = L.sigmoid(L.fc(slots[1], 1))
    EXECUTOR.run(fluid.default_startup_program())
    EXECUTOR.infer_from_dataset(MAIN(), data(slots, [write("a.csv", rows([0] * 10))]),
                                metrics=anabranch.RankingMetrics(chances, slots[0]))


def python_auc_of_one_class():
    metric = fluid.metrics.Auc("auc")
    metric.update(np.array([[0.1, 0.9]] * 3), np.ones((3, 1)))
    metric.eval()


def own_ranking_of_one_class():
    metrics = anabranch.RankingMetrics()
    metrics.update([0.1, 0.2], [1, 1])
    metrics.result()


ONE = "%s: the AUC is not defined, because all %d samples have the label %d: check the column of the label"
WARNED += [(auc_of_one_class, ONE % ("infer_from_dataset", 10, 1)),
           (ranking_of_one_class, ONE % ("infer_from_dataset", 10, 0)),
           (python_auc_of_one_class, ONE % ("Auc.eval", 3, 1)),
           (own_ranking_of_one_class, ONE % ("RankingMetrics.result", 2, 1))]


@pytest.mark.parametrize("mistake, message", WARNED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_warning_names_the_cure(mistake, message):
    with pytest.warns(UserWarning) as found:
        mistake()
    assert [bool(re.search(message, str(one.message))) for one in found] == [True], [str(one.message) for one in found]


def mixed_labels():
    train(model(), [write("a.csv", rows(np.random.RandomState(0).randint(0, 2, 400)))])


def rare_label_at_the_end():
    train(model(), [write("a.csv", rows([0] * 300 + [1] * 3))])


def shuffled_in_memory():
    made = data(model(), [write("a.csv", rows([0] * 100 + [1] * 100))], "InMemoryDataset")
    made.load_into_memory()
    made.local_shuffle()
    EXECUTOR.train_from_dataset(MAIN(), made)


def sorted_files_that_are_evaluated():
    EXECUTOR.infer_from_dataset(MAIN(), data(model(), [write("a.csv", rows([0] * 100 + [1] * 100))]))


def header_of_a_header():
    train(model(), [write("a.csv", rows([0, 1] * 50))])


@pytest.mark.parametrize("program", [mixed_labels, rare_label_at_the_end, shuffled_in_memory,
                                     sorted_files_that_are_evaluated, header_of_a_header],
                         ids=lambda one: one.__name__)
def test_right_data_get_no_warning(program):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program()


CUT = [("1,2\n0", "the line has the wrong number of fields"), ('1,2\n0,"3', "a quote does not end")]


@pytest.mark.parametrize("text, why", CUT)
def test_a_line_that_is_cut_is_a_bad_row(text, why, capfd):
    slots = model()
    made = data(slots, [write("a.csv", [text])])
    with pytest.raises(ValueError, match="a.csv:3.*" + why):
        list(made._batches())
    made.set_bad_rows("skip")
    assert sum(len(np.array(batch["price"])) for batch in made._batches()) == 1
    assert "1 row, 1 bad line" in capfd.readouterr().err


def test_a_compressed_file_that_is_cut_is_an_error():
    slots = model()
    with open("a.csv.gz", "wb") as file:
        file.write(gzip.compress(("clicked,price\n" + "".join(rows([0, 1] * 500))).encode())[:-60])
    with pytest.raises(fluid.core.EnforceNotMet, match="a.csv.gz"):
        list(data(slots, ["a.csv.gz"])._batches())
