"""Data sets: what is read, in which order, shuffles, settings and their errors."""
import gzip
import shutil
import subprocess

import numpy as np
import pytest
from dataset_cases import dataset, numbers, write

import anabranch.fluid as fluid

KINDS = ("QueueDataset", "InMemoryDataset")


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def _parts(tmp_path, parts=5, rows=400):
    return [write(tmp_path / ("part-%d" % i), range(i * rows, (i + 1) * rows)) for i in range(parts)]


def _load(made):
    if isinstance(made, fluid.InMemoryDataset):
        made.load_into_memory()
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("thread", (1, 2, 7))
def test_order_is_that_of_the_files_for_any_number_of_threads(tmp_path, kind, thread):
    made = _load(dataset(kind, _parts(tmp_path), 64, thread))
    sizes, got = [], []
    for batch in made._batches():
        sizes.append(len(np.array(batch["label"])))
        got += numbers([batch])
    assert got == list(range(2000))
    assert sizes == [64] * 31 + [16]
    assert numbers(made._batches()) == got             # a second pass


@pytest.mark.parametrize("kind", KINDS)
def test_unordered_gives_every_row_once(tmp_path, kind):
    made = _load(dataset(kind, _parts(tmp_path), 64, 3))
    assert sorted(numbers(made._batches(ordered=False))) == list(range(2000))


def test_many_chunks_in_order(tmp_path):
    made = dataset("QueueDataset", [write(tmp_path / "big", range(60000))], 1000, 3)     # 1.7 MB: seven chunks
    assert numbers(made._batches()) == list(range(60000))
    assert sorted(numbers(made._batches(ordered=False))) == list(range(60000))
    assert made.statistics()["lines"] == made.statistics()["rows"] == 60000


def test_drop_last(tmp_path):
    made = dataset("QueueDataset", _parts(tmp_path, 1, 10))
    made.set_drop_last(True)
    assert numbers(made._batches()) == list(range(8))


def test_shuffle_follows_from_the_seed(tmp_path):
    files = _parts(tmp_path)

    def shuffled(seed, thread, times=1):
        made = _load(dataset("InMemoryDataset", files, 64, thread))
        made.set_shuffle_seed(seed)
        for _ in range(times):
            made.local_shuffle()
        return numbers(made._batches())

    first = shuffled(3, 1)
    assert sorted(first) == list(range(2000)) and first != list(range(2000))
    assert shuffled(3, 4) == first
    assert shuffled(4, 1) != first
    assert shuffled(3, 1, times=2) != first


def test_shuffle_is_uniform(tmp_path):
    """Every number comes to every place about equally often."""
    path, seen = write(tmp_path / "a", range(6)), np.zeros((6, 6))
    for seed in range(1200):
        made = _load(dataset("InMemoryDataset", [path], 6))     # each is shuffled once: a second time hides a bias
        made.set_shuffle_seed(seed)
        made.local_shuffle()
        for place, number in enumerate(numbers(made._batches())):
            seen[place, number] += 1
    assert ((seen - 200) ** 2 / 200).sum() < 80        # 25 degrees of freedom; this is a chance of 1e-7


def test_an_open_pass_keeps_its_order(tmp_path):
    made = _load(dataset("InMemoryDataset", _parts(tmp_path)))
    running = made._batches()
    first = numbers([next(running)])
    made.local_shuffle()
    assert first + numbers(running) == list(range(2000))


def test_sizes_and_release(tmp_path):
    made = dataset("InMemoryDataset", _parts(tmp_path))
    assert made.get_memory_data_size() == 0
    made.load_into_memory()
    assert (made.get_memory_data_size(), made.get_shuffle_data_size()) == (2000, 0)
    made.global_shuffle()
    assert made.get_shuffle_data_size() == 2000
    assert 2000 * 28 < made.memory_bytes() < 2000 * 100
    made.release_memory()
    assert made.get_memory_data_size() == made.memory_bytes() == 0
    with pytest.raises(fluid.core.EnforceNotMet, match="load_into_memory"):
        list(made._batches())
    with pytest.raises(fluid.core.EnforceNotMet, match="load_into_memory"):
        made.local_shuffle()


def test_preload(tmp_path):
    made = dataset("InMemoryDataset", _parts(tmp_path))
    with pytest.raises(RuntimeError):
        made.wait_preload_done()
    made.preload_into_memory(2)
    with pytest.raises(ValueError, match="wait_preload_done"):
        made.preload_into_memory()
    made.wait_preload_done()
    assert numbers(made._batches()) == list(range(2000))
    made.preload_into_memory()                         # the next day's files, while this one is trained
    assert numbers(made._batches()) == list(range(2000))
    made.wait_preload_done()


def test_a_load_that_fails_changes_nothing(tmp_path):
    made = _load(dataset("InMemoryDataset", _parts(tmp_path, 1, 10)))
    made.set_filelist([str(tmp_path / "missing")])
    with pytest.raises(LookupError, match="missing"):
        made.load_into_memory()
    assert numbers(made._batches()) == list(range(10))


def test_zeros_are_left_out_in_memory_only(tmp_path):
    (tmp_path / "a").write_text("3 0 1.5 1e-7 2 7 0\n1 0 1 0\n")
    floats = fluid.data("f", [None, 1], lod_level=1)
    ids = fluid.data("i", [None, 1], "int64", lod_level=1)
    for kind, expected in (("QueueDataset", ([0, 1.5, 1e-7, 0], [7, 0, 0])), ("InMemoryDataset", ([1.5, 0], [7, 0]))):
        made = _load(dataset(kind, [tmp_path / "a"], use_vars=[floats, ids]))
        batch, = made._batches()
        assert np.allclose(np.array(batch["f"]).ravel(), expected[0]), kind
        assert np.array(batch["i"]).ravel().tolist() == expected[1], kind


def test_shapes_of_dense_slots(tmp_path):
    (tmp_path / "a").write_text("6 1 2 3 4 5 6 4 1 2 3 4\n6 1 2 3 4 5 7 4 5 6 7 8\n")
    a, b = fluid.data("a", [None, 2, 3]), fluid.data("b", [None, -1, 2], "int64")
    batch, = dataset("QueueDataset", [tmp_path / "a"], use_vars=[a, b])._batches()
    assert batch["a"].shape() == [2, 2, 3] and batch["b"].shape() == [2, 2, 2]
    assert batch["b"].lod() == [] and np.array(batch["b"]).tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    (tmp_path / "a").write_text("6 1 2 3 4 5 6 4 1 2 3 4\n6 1 2 3 4 5 7 2 5 6\n")
    with pytest.raises(ValueError, match="slot b .*lod_level"):
        list(dataset("QueueDataset", [tmp_path / "a"], use_vars=[a, b])._batches())


def test_ids_of_64_bits(tmp_path):
    (tmp_path / "a").write_text("3 18446744073709551615 9223372036854775808 -1\n")
    ids = fluid.data("i", [None, 1], "int64", lod_level=1)
    batch, = dataset("QueueDataset", [tmp_path / "a"], use_vars=[ids])._batches()
    assert np.array(batch["i"]).ravel().tolist() == [-1, -2 ** 63, -1]


@pytest.mark.parametrize("ending", ("gz", "zst"))
def test_compressed_files(tmp_path, ending):
    plain = write(tmp_path / "a", range(30000))
    if ending == "gz":
        with open(plain, "rb") as text, gzip.open(plain + ".gz", "wb") as packed:
            shutil.copyfileobj(text, packed)
    else:
        zstandard = shutil.which("zstd")
        if not zstandard:
            pytest.skip("no zstd program")
        subprocess.run([zstandard, "-q", plain], check=True)
    packed = (tmp_path / ("a." + ending)).read_bytes()
    (tmp_path / "twice").write_bytes(packed + packed)  # several members, frames
    assert numbers(dataset("QueueDataset", [tmp_path / "twice"], 1000, 2)._batches()) == list(range(30000)) * 2
    (tmp_path / "cut").write_bytes(packed[:-20])
    with pytest.raises(RuntimeError, match="cut: the .* data ends too early"):
        list(dataset("QueueDataset", [tmp_path / "cut"])._batches())
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 255
    (tmp_path / "broken").write_bytes(bytes(broken))
    with pytest.raises(fluid.core.EnforceNotMet, match="broken"):
        list(dataset("QueueDataset", [tmp_path / "broken"])._batches())


def test_ins_id_content_and_merge(tmp_path):
    (tmp_path / "a").write_text("1 u1 1 c 2 1 1.5 1 1 1 7\n1 u2 1 c 2 2 2.5 1 0 2 8 9\n1 u1 1 c 2 3 3.5 1 1 1 17\n")
    made = dataset("InMemoryDataset", [tmp_path / "a"], 10)
    made.set_parse_ins_id(True)
    made.set_parse_content(True)
    made.load_into_memory()
    assert len(np.array(next(made._batches())["label"])) == 3
    made.set_merge_by_lineid(2)
    made.global_shuffle()
    batch, = made._batches()
    assert np.array(batch["x"]).tolist() == [[1, 1.5]] and np.array(batch["words"]).ravel().tolist() == [7, 17]
    made.load_into_memory()
    made.set_merge_by_lineid(0)
    made.global_shuffle()
    assert made.get_memory_data_size() == 2
    made.set_parse_ins_id(False)
    made.set_parse_content(False)
    with pytest.raises(ValueError, match="slot x"):
        made.load_into_memory()


def test_slots_shuffle(tmp_path):
    made = _load(dataset("InMemoryDataset", _parts(tmp_path, 1, 300), 300))
    with pytest.raises(RuntimeError, match="set_fea_eval"):
        made.slots_shuffle(["words"])
    made.set_fea_eval(100)
    for _ in range(2):                                 # the second call starts with the records as loaded
        made.slots_shuffle(["words"])
        batch, = made._batches()
        words, offsets = np.array(batch["words"]).ravel(), batch["words"].lod()[0]
        firsts = words[offsets[:-1]]
        assert np.array(batch["x"])[:, 0].tolist() == list(range(300))
        assert sorted(firsts) == list(range(1, 301)) and firsts.tolist() != list(range(1, 301))
        lengths = np.diff(offsets)
        assert all(lengths[i] == 1 + (n - 1) % 3 for i, n in enumerate(firsts))
    with pytest.raises(LookupError):
        made.slots_shuffle(["nothing"])
    with pytest.raises(ValueError, match="dense"):
        made.slots_shuffle(["x"])


def test_factory_and_settings():
    factory = fluid.DatasetFactory()
    assert type(factory.create_dataset()) is fluid.QueueDataset
    with pytest.raises(ValueError, match="got 'Foo'"):
        factory.create_dataset("Foo")
    with pytest.raises(NotImplementedError):
        factory.create_dataset("BoxPSDataset")
    made = factory.create_dataset()
    for call in (made.local_shuffle, made.global_shuffle, lambda: made.slots_shuffle(["a"])):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(ValueError):
        made.set_use_var([fluid.data("d", [None, 1], "float64")])
    with pytest.raises(TypeError):
        made.set_use_var(["d"])
    with pytest.raises(TypeError):
        made.set_filelist("abc")
    with pytest.raises(TypeError):
        made.set_pipe_command(3)
    with pytest.raises(TypeError):
        made.set_batch_size("a")
    with pytest.raises(ValueError):
        made.set_batch_size(0)
    with pytest.raises(ValueError):
        made.set_bad_rows("ignore")
    with pytest.raises(ValueError):
        made.set_bad_rows("quarantine")
    with pytest.raises(TypeError, match="fs_ugi must be a str, got 1"):
        made.set_hdfs_config("hdfs://a", 1)
    with pytest.raises(NotImplementedError, match="set_pipe_command"):
        made.set_download_cmd("wget")
    with pytest.raises(RuntimeError, match="set_use_var"):
        list(made._batches())


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_local_files_are_read_with_any_config_of_hadoop(kind, tmp_path):
    (tmp_path / "a.txt").write_text("1 3\n1 4\n")
    made = fluid.DatasetFactory().create_dataset(kind)
    made.set_use_var([fluid.data("remote_x", [None, 1], "int64")])
    made.set_hdfs_config("hdfs://a", "b")
    made._prepare_to_run()
    for path in ("hdfs:/a.txt", "afs:/a.txt"):
        made.set_filelist([path])
        with pytest.raises(NotImplementedError, match="cannot read %s from a Hadoop file system: copy" % path):
            list(made._batches()) if kind == "QueueDataset" else made.load_into_memory()
    made.set_filelist([str(tmp_path / "a.txt")])
    if kind == "InMemoryDataset":
        made.load_into_memory()
    assert [np.array(b["remote_x"]).ravel().tolist() for b in made._batches()] == [[3, 4]]


def test_desc_is_that_of_fluid():
    made = fluid.DatasetFactory().create_dataset()
    made.set_use_var([fluid.data("b", [None, 3], "int64"), fluid.data("c", [None, 3], lod_level=1)])
    made.set_batch_size(7)
    assert made.desc() == """name: "MultiSlotDataFeed"
batch_size: 7
multi_slot_desc {
  slots {
    name: "b"
    type: "uint64"
    is_dense: true
    is_used: true
    shape: -1
    shape: 3
  }
  slots {
    name: "c"
    type: "float"
    is_used: true
  }
}
pipe_command: "cat"
"""


def test_missing_files_and_folders(tmp_path):
    good = write(tmp_path / "good", range(8))
    for kind in KINDS:
        with pytest.raises(LookupError, match="nowhere does not exist"):
            list(_load(dataset(kind, [good, tmp_path / "nowhere"]))._batches())
        with pytest.raises(ValueError, match="not a regular file"):
            list(_load(dataset(kind, [good, tmp_path]))._batches())
    made = dataset("QueueDataset", [good, tmp_path / "nowhere"])
    got = []
    with pytest.raises(LookupError):
        for batch in made._batches():
            got += numbers([batch])
    assert got == list(range(8))                       # what lies before the error was given out


def test_no_files_and_empty_files(tmp_path):
    (tmp_path / "empty").write_text("")
    for kind in KINDS:
        assert list(_load(dataset(kind, []))._batches()) == []
        assert list(_load(dataset(kind, [tmp_path / "empty"]))._batches()) == []
