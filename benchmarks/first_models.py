"""`anabranch train` on five kinds of tables, next to scikit-learn on the same lines: seconds to the first AUC, and the AUC.

    python benchmarks/first_models.py [--rows 100000] [--only clicks,ratings] [--folder FOLDER]

The tables are drawn, as public ones are not at hand: clicks with texts and gaps, ratings of items by users, numbers with
thresholds and products, a census with texts as labels, and wide libsvm lines. `best`: the AUC of the probabilities that
the labels were drawn from, which no model can exceed but by chance. scikit-learn (BENCH_TOOLS_PYTHON, or this
interpreter) has what its documentation recommends for the kind: logistic regression on standardized numbers and
hashed texts, or gradient-boosted trees. Its seconds contain reading the file.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

import numpy as np

TEST_SHARE = 0.2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def auc(labels, scores):
    """The area under the curve; equal scores count half."""
    _, at, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[at]
    ones = labels.sum()
    return (ranks[labels == 1].sum() - ones * (ones + 1) / 2.0) / (ones * (len(labels) - ones))


def zipf(rng, rows, values, exponent=1.1):
    weights = 1.0 / np.arange(1, values + 1) ** exponent
    return rng.choice(values, rows, p=weights / weights.sum())


# ---- the tables: (columns by name or libsvm lines, chances of label 1)

def clicks(rng, rows):
    ids = np.stack([zipf(rng, rows, 20 + 400 * i) for i in range(12)], axis=1)
    logits = sum(rng.normal(0, 0.5, 20 + 400 * i)[ids[:, i]] for i in range(12)) - 1
    columns = {}
    for i in range(6):
        numbers = rng.lognormal(1, 1, rows)
        logits = logits + 0.3 * (np.log1p(numbers) - 1.3) * (i % 3 - 1)
        gaps = rng.random_sample(rows) < 0.1
        columns["n%d" % i] = ["" if gap else "%.3f" % x for gap, x in zip(gaps, numbers)]
    for i in range(12):
        columns["c%d" % i] = ["%x" % (7919 * x + i) for x in ids[:, i]]
    return columns, sigmoid(logits)


def ratings(rng, rows):
    users, items = zipf(rng, rows, 2000, 0.6), zipf(rng, rows, 1000, 0.6)
    of_user, of_item = rng.normal(0, 0.8, (2000, 3)), rng.normal(0, 0.8, (1000, 3))
    logits = (of_user[users] * of_item[items]).sum(axis=1) * 1.5 + rng.normal(0, 0.7, 1000)[items]
    return {"user_id": ["u%d" % u for u in users], "item_id": ["i%d" % i for i in items]}, sigmoid(logits)


def numbers(rng, rows):
    x = rng.normal(0, 1, (rows, 20))
    logits = 2 * x[:, 0] * x[:, 1] + 2 * (x[:, 2] > 0.5) + np.abs(x[:, 3]) + x[:, 4] - 1.5
    return {"x%d" % i: ["%.4f" % v for v in x[:, i]] for i in range(20)}, sigmoid(logits)


def census(rng, rows):
    age, hours = rng.randint(17, 90, rows), rng.normal(40, 12, rows).clip(1, 99).astype(int)
    logits = -0.002 * (age - 50.0) ** 2 + 0.05 * (hours - 40) - 0.5
    columns = {"age": age.astype(str), "hours": hours.astype(str)}
    for name, values in (("education", 16), ("job", 14), ("country", 40)):
        at = zipf(rng, rows, values, 0.8)
        logits = logits + rng.normal(0, 1, values)[at]
        columns[name] = ["?" if unknown else "%s-%d" % (name, k)
                         for unknown, k in zip(rng.random_sample(rows) < 0.05, at)]
    return columns, sigmoid(logits)


def wide(rng, rows, features=50000, present=30):
    at = np.sort(zipf(rng, rows * present, features, 0.9).reshape(rows, present), axis=1)
    values = rng.random_sample((rows, present)).round(3)
    values[:, 1:][at[:, 1:] == at[:, :-1]] = 0               # one value for a feature of a line
    logits = (rng.normal(0, 1, features)[at] * values).sum(axis=1)
    lines = [" ".join("%d:%g" % (k + 1, v) for k, v in zip(row, x) if v) for row, x in zip(at, values)]
    return lines, sigmoid(logits)


Table = namedtuple("Table", "make model options rival")
TABLES = {
    "clicks": Table(clicks, "lr", ["--label", "label"], "logistic"),
    "ratings": Table(ratings, "deepfm", ["--label", "label", "--at-least", "4"], "logistic"),
    "numbers": Table(numbers, "dcn", ["--label", "label"], "trees"),
    "census": Table(census, "lr", ["--label", "label", "--positive", ">50K"], "trees"),
    "wide": Table(wide, "lr", [], "libsvm"),
}
LABELS = {"ratings": ("2", "5"), "census": ("<=50K", ">50K")}


def write(folder, name, rows):
    """(training file, test file, best AUC of the test file)."""
    rng = np.random.RandomState(sorted(TABLES).index(name))
    table, chances = TABLES[name].make(rng, rows)
    labels = rng.random_sample(rows) < chances
    first = int(rows * (1 - TEST_SHARE))
    texts = np.where(labels, *reversed(LABELS.get(name, ("0", "1"))))
    paths = []
    for part, (begin, end) in (("train", (0, first)), ("test", (first, rows))):
        paths.append(os.path.join(folder, "%s_%s.%s" % (name, part, "libsvm" if name == "wide" else "csv")))
        with open(paths[-1], "w", newline="") as file:
            if name == "wide":
                file.writelines("%s %s\n" % pair for pair in zip(texts[begin:end], table[begin:end]))
                continue
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["label", *table])
            out.writerows(list(zip(texts, *table.values()))[begin:end])
    return (*paths, auc(labels[first:], chances[first:]))


# ---- the two sides

def ours(name, train, test, folder):
    """(seconds, AUC) of the command."""
    command = [sys.executable, "-m", "anabranch", "train", train, "--test", test, "--model", TABLES[name].model, "--force",
               "--out", os.path.join(folder, "train_%s.py" % name), *TABLES[name].options]
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    seconds = time.time() - begin
    found = re.findall(r"^test.*\bAUC (\d\.\d+)", done.stdout, re.MULTILINE | re.IGNORECASE)
    if done.returncode or not found:
        raise SystemExit("%s failed:\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return seconds, float(found[-1])


def theirs(name, train, test):
    """(seconds, AUC) of scikit-learn, which runs in its own process."""
    python = os.environ.get("BENCH_TOOLS_PYTHON", sys.executable)
    begin = time.time()
    out = subprocess.check_output([python, os.path.abspath(__file__), "--rival", name, train, test], text=True)
    return time.time() - begin, float(out.split()[-1])


def read(path):
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows)))
    return columns, np.array(columns.pop("label"))


def is_number(texts):
    return all(re.fullmatch(r"-?\d*\.?\d*", text) for text in texts)


def features(columns):
    """Numbers [rows, columns], and lists of "column=text" for hashing."""
    plain = [name for name in columns if is_number(columns[name])]
    matrix = np.array([[float(text or "nan") for text in columns[name]] for name in plain]).T
    texts = [name for name in columns if name not in plain]
    words = [["%s=%s" % pair for pair in zip(texts, row)] for row in zip(*(columns[name] for name in texts))]
    return matrix, words


def logistic(train, test):
    from scipy import sparse
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    scaled = make_pipeline(SimpleImputer(strategy="median"), FunctionTransformer(np.log1p), StandardScaler())
    parts = []
    for fit, (matrix, words) in ((True, features(train)), (False, features(test))):
        both = [FeatureHasher(2 ** 18, input_type="string").transform(words)]
        if matrix.size:
            both.append(sparse.csr_matrix(scaled.fit_transform(matrix) if fit else scaled.transform(matrix)))
        parts.append(sparse.hstack(both).tocsr())
    return LogisticRegression(max_iter=300, C=0.3), parts


def trees(train, test):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import OrdinalEncoder
    texts = [name for name in train if not is_number(train[name])]
    parts = [np.array([[float(text) for text in columns[name]] for name in columns if name not in texts]).T
             for columns in (train, test)]
    if texts:
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        lists = [np.array([columns[name] for name in texts]).T for columns in (train, test)]
        parts = [np.hstack([parts[0], encoder.fit_transform(lists[0])]),
                 np.hstack([parts[1], encoder.transform(lists[1])])]
    kinds = [False] * (len(train) - len(texts)) + [True] * len(texts)
    return HistGradientBoostingClassifier(categorical_features=kinds, random_state=0), parts


def rival(name, train, test):
    if TABLES[name].rival == "libsvm":
        from sklearn.datasets import load_svmlight_files
        from sklearn.linear_model import LogisticRegression
        x, y, x_test, y_test = load_svmlight_files([train, test])
        model, parts = LogisticRegression(max_iter=300, C=0.3), [x, x_test]
    else:
        (columns, y), (test_columns, y_test) = read(train), read(test)
        model, parts = {"logistic": logistic, "trees": trees}[TABLES[name].rival](columns, test_columns)
    model.fit(parts[0], y)
    scores = model.predict_proba(parts[1])[:, 1]
    print(auc((y_test == model.classes_[1]).astype(int), scores))


def main():
    if sys.argv[1:2] == ["--rival"]:
        return rival(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--only", default=",".join(TABLES), help="comma-separated: %(default)s")
    parser.add_argument("--folder", help="for the files (default: a temporary one)")
    args = parser.parse_args()
    folder = args.folder or tempfile.mkdtemp()
    print("| table | model | seconds | AUC | scikit-learn | seconds | AUC | best AUC |\n|---|---|---|---|---|---|---|---|")
    for name in args.only.split(","):
        train, test, best = write(folder, name, args.rows)
        (seconds, area), (other_seconds, other_area) = ours(name, train, test, folder), theirs(name, train, test)
        print("| %s | %s | %.1f | %.4f | %s | %.1f | %.4f | %.4f |" % (
            name, TABLES[name].model, seconds, area, TABLES[name].rival, other_seconds, other_area, best), flush=True)


if __name__ == "__main__":
    main()
