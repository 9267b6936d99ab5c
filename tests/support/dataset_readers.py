"""The samples of the readers of ``paddle.dataset`` in small archives: ``dataset_readers.py MODULE FOLDER``, as JSON.

MODULE is ``paddle``, which is how the record in data/dataset_readers.json.gz was made, or ``anabranch.legacy``.
"""
import importlib
import json
import os
import re
import sys
import types

import numpy


def plain(value):
    if isinstance(value, numpy.ndarray):
        return [str(value.dtype), list(value.shape), [round(float(x), 5) for x in value.ravel()[:3]],
                round(float(value.sum()), 3)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__] + [plain(x) for x in value]
    return value.decode("latin-1") + " (bytes)" if isinstance(value, bytes) else value


def everything():
    from paddle.dataset import cifar, imdb, imikolov, movielens, uci_housing
    found = {"uci_housing": [list(uci_housing.train()()), list(uci_housing.test()())]}
    for least in (1, 5):
        found["imikolov.build_dict(%d)" % least] = sorted(imikolov.build_dict(least).items(), key=str)
    words = imikolov.build_dict(1)
    for n, kind in ((2, 1), (5, 1), (-1, 2), (0, 2), (3, 2)):
        found["imikolov.train(%d, %d)" % (n, kind)] = list(imikolov.train(words, n, kind)())
    found["imikolov.test"] = list(imikolov.test(words, 3)())
    words = imdb.build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 3)
    found["imdb.build_dict"] = sorted(words.items(), key=str)
    found["imdb"] = [list(imdb.train(words)()), list(imdb.test(words)())]
    for name in ("train10", "test10", "train100", "test100"):
        found["cifar." + name] = list(getattr(cifar, name)()())
    for name in ("max_movie_id", "max_user_id", "max_job_id"):
        found["movielens." + name] = getattr(movielens, name)()
    # Numbers of categories and of words of titles are those of a set in 1.8.5: other ones in each process.
    found["movielens"] = [[[*s[:5], len(s[5]), len(s[6]), s[7]] for s in part()()]
                          for part in (movielens.train, movielens.test)]
    found.update(sentences())
    found.update(pictures())
    found.update(ranks())
    return {name: plain(value) for name, value in found.items()}


def sentences():
    """Of wmt14, wmt16 and conll05."""
    from paddle.dataset import conll05, wmt14, wmt16
    found = {"wmt14": [list(wmt14.train(7)()), list(wmt14.test(7)()), list(wmt14.test(5)())],
             "wmt14.get_dict": [sorted(words.items()) for words in wmt14.get_dict(7) + wmt14.get_dict(6, False)]}
    for part in (wmt16.train, wmt16.test, wmt16.validation):
        found["wmt16." + part.__name__] = list(part(8, 7)()), list(part(7, 30, src_lang="de")())
    found["wmt16.get_dict"] = [sorted(wmt16.get_dict(lang, n, reverse).items()) for lang, n, reverse in (
        ("en", 8, False), ("de", 7, True))]
    words, verbs, labels = conll05.get_dict()
    names = {number: name for name, number in labels.items()}  # numbers are those of a set in 1.8.5
    found["conll05"] = [sorted(words.items()), sorted(verbs.items()), sorted(labels), labels["O"],
                        [[*s[:8], [names[k] for k in s[8]]] for s in conll05.test()()]]
    with open(conll05.get_embedding(), "rb") as file:
        found["conll05.get_embedding"] = file.read()
    return found


def pictures():
    """Of sentiment and flowers; voc2012 of 1.8.5 does not run under Python 3."""
    from paddle.dataset import flowers, sentiment
    found = {"sentiment.get_word_dict": [list(pair) for pair in sentiment.get_word_dict()]}
    for part in (sentiment.train, sentiment.test):
        samples = list(part())
        found["sentiment." + part.__name__] = [len(samples), samples[:4], samples[-1]]
    for part in (flowers.train, flowers.test, flowers.valid):
        samples = part(mapper=lambda sample: sample, use_xmap=False)()
        found["flowers." + part.__name__] = [[len(picture), picture[-30:], label] for picture, label in samples]
    return found


def ranks():
    """Of mq2007."""
    from paddle.dataset import mq2007
    found = {"mq2007.test": list(mq2007.test())}
    for form in ("plain_txt", "pointwise", "pairwise", "listwise"):
        found["mq2007.train(%s)" % form] = list(mq2007.train(format=form))
    return found


def main(module, folder_of_archives):
    if module == "paddle":
        common = importlib.import_module("paddle.dataset.common")
        common.DATA_HOME = os.path.join(folder_of_archives, "dictionaries")  # where wmt16 of 1.8.5 writes its own
        os.makedirs(os.path.join(common.DATA_HOME, "wmt16"), exist_ok=True)
        common.download = lambda url, folder, md5sum, save_name=None: os.path.join(
            folder_of_archives, folder, (save_name or url.split("/")[-1]).replace("wmt_shrinked_data%2F", ""))
        os.symlink(os.path.join(folder_of_archives, "corpora"), os.path.join(common.DATA_HOME, "corpora"))
        unpacked = types.SimpleNamespace(extractall=lambda path: None, close=lambda: None)
        importlib.import_module("rarfile").RarFile = lambda path: unpacked
        for name in ("cifar", "conll05", "flowers", "imdb", "imikolov", "movielens", "mq2007", "uci_housing", "wmt14",
                     "wmt16"):
            importlib.import_module("paddle.dataset." + name).download = common.download
    else:
        os.environ["ANABRANCH_DATA"] = folder_of_archives
        importlib.import_module(module)
    print(json.dumps(everything(), sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
