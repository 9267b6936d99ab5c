"""Private names of transpilers, fleets and data sets that scripts use; values are those of Fluid 1.8.5."""
import gzip

import numpy as np
import pytest

import anabranch.dataset as datasets
import anabranch.fluid as fluid
from anabranch.fluid import distribute_lookup_table
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.collective import CollectiveOpBasedOptimizer, CollectiveOptimizer
from anabranch.fluid.transpiler.details import UnionFind

# ---- transpilers


@pytest.fixture
def transpiled():
    """A worker's program with two servers, and its transpiler."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.layers.embedding(ids, [10, 4], is_sparse=True, param_attr="table")
        out = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr="w", bias_attr="b")
        loss = fluid.layers.mean(out) + fluid.layers.mean(rows)
        fluid.optimizer.Momentum(fluid.layers.exponential_decay(0.1, 10, 0.5), 0.9).minimize(loss)
    made = fluid.DistributeTranspiler()
    made.transpile(0, program=main, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2, startup_program=startup)
    return made, main


def test_questions_about_a_worker_program(transpiled):
    made, main = transpiled
    ops = main.global_block().ops
    updates = [op for op in ops if op.type == "momentum"]
    assert made._is_optimizer_op(updates[0]) and not made._is_optimizer_op(ops[0])
    assert [op.type for op in made._get_lr_ops()] == [
        "increment", "cast", "scale", "fill_constant", "elementwise_pow", "scale"]
    found, pairs = made._get_optimize_pass()
    assert found == updates
    assert [(p.name, g.name) for p, g in pairs] == [
        ("b", "b@GRAD.trainer_0"), ("table", "table@GRAD.trainer_0"), ("w", "w@GRAD.trainer_0")]
    assert [[made._is_opt_op_on_pserver(server, op) for server in made.pserver_endpoints] for op in updates] == [
        [True, False], [False, True], [True, False]]
    assert made._is_opt_op_on_pserver("127.0.0.1:6174", ops[0])
    inputs = made._get_input_map_from_op(main.global_block().vars, updates[0])
    assert {slot: v.name for slot, v in inputs.items() if slot != "LearningRate"} == {
        "Param": "b", "Grad": "b@GRAD.trainer_0", "Velocity": "b_velocity_0"}
    outputs = made._get_output_map_from_op(main.global_block().vars, updates[0])
    assert {slot: type(v) for slot, v in outputs.items()} == {
        "ParamOut": fluid.framework.Parameter, "VelocityOut": fluid.Variable}


def test_ops_that_are_connected(transpiled):
    made, main = transpiled
    ops = {op.type: op for op in main.global_block().ops}
    assert not made._is_op_connected(ops["increment"], ops["momentum"])
    assert made._is_op_connected(ops["mul"], ops["mul_grad"]) is made._is_op_connected(ops["mul_grad"], ops["mul"])
    chain = made._get_lr_ops()
    sets = made._create_ufind([*chain, ops["momentum"]])
    assert sets.is_connected(chain[0], chain[2]) and sets.is_connected(chain[2], chain[-1])
    assert sets.is_connected(chain[-1], ops["momentum"]) and made._get_all_remote_sparse_update_op(main) == []


@pytest.mark.parametrize("name, expected", [
    ("w.block3.trainer_2", ("w", "block3", "trainer_2")), ("w.trainer_2", ("w", "", "trainer_2")),
    ("w.block3", ("w", "block3", "")), ("w", ("w", "", ""))])
def test_parts_of_a_name(name, expected):
    assert fluid.DistributeTranspiler()._get_varname_parts(name) == expected


def test_a_variable_is_cloned_into_another_program(transpiled):
    made, main = transpiled
    x = main.global_block().var("x")
    assert made._clone_var(fluid.Program().global_block(), x).persistable
    assert not made._clone_var(fluid.Program().global_block(), x, persistable=False).persistable


def test_disjoint_sets():
    sets = UnionFind(["a", "b", "c"])
    assert (sets.find("a"), sets.find("zz"), sets.is_connected("a", "b")) == (0, -1, False)
    assert sets.union("a", "b") is None and sets.find("a") == sets.find("b") == 1
    assert sets.is_connected("b", "a") and not sets.is_connected("a", "c") and UnionFind().find("a") == -1


def lookups(*tables):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        for name, distributed in tables:
            fluid.layers.embedding(ids, [10, 3], is_sparse=True, is_distributed=distributed, param_attr=name)
    return program


def test_the_table_of_the_servers_is_found():
    find = distribute_lookup_table.find_distributed_lookup_table
    program = lookups(("a", True), ("b", False), ("a", True))
    assert find(program) == "a" and find(fluid.Program()) is None
    outputs = distribute_lookup_table.find_distributed_lookup_table_outputs(program, "a")
    assert [v.name for v in outputs] == ["embedding_0.tmp_0", "embedding_2.tmp_0"]
    inputs = distribute_lookup_table.find_distributed_lookup_table_inputs(program, "b")
    assert [v.name for v in inputs] == ["ids"]
    for tables in ((("a", True), ("b", True)), (("a", True), ("a", False))):
        with pytest.raises(RuntimeError, match="distributed"):
            find(lookups(*tables))


# ---- fleets


def test_private_calls_of_role_makers(monkeypatch):
    for name, value in {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "1",
                        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6174"}.items():
        monkeypatch.setenv(name, value)
    role = role_maker.GeneralRoleMaker()
    summed = np.zeros(2)
    role._all_reduce(np.array([1.0, 2.0]), summed)
    role._barrier_worker()
    assert role._worker_num() == 1 and summed.tolist() == [1.0, 2.0]
    user = role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 3, ["127.0.0.1:6174"])
    assert user._worker_num == 3
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert role_maker.MPISymetricRoleMaker()._worker_num() == 2


def test_a_collective_optimizer_says_what_excludes_what():
    with pytest.raises(ValueError, match="can not use LARS when you set DistStrategy.lamb as True"):
        CollectiveOptimizer(fluid.optimizer.SGD(0.1)).raiseOptimizeError("lamb", "LARS")
    assert issubclass(CollectiveOpBasedOptimizer, CollectiveOptimizer)


# ---- data sets


def test_the_core_of_a_data_set_acts_on_it(tmp_path):
    (tmp_path / "part").write_text("1 7 2 1 2\n1 8 1 3\n")
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        dataset.set_use_var([fluid.data("a", [None, 1], "int64"), fluid.data("b", [None, 1], "int64", lod_level=1)])
    core = dataset.dataset
    core.set_filelist([str(tmp_path / "part")])
    core.set_thread_num(2)
    core.set_data_feed_desc(dataset.desc())
    core.create_readers()
    core.load_into_memory()
    core.global_shuffle(4)
    core.set_fea_eval(True, 100)
    core.slots_shuffle({"b"})
    core.destroy_readers()
    assert (core.get_memory_data_size(), dataset.thread_num, core.get_filelist()) == (2, 2, dataset.filelist)
    assert core.get_data_feed_desc() == dataset.desc() and core.get_hdfs_config() == ("", "")
    core.release_memory()
    with pytest.raises(RuntimeError, match="set_use_var"):
        core.set_data_feed_desc("name: 'other'")
    core.set_hdfs_config("hdfs://a", "user")
    assert core.get_hdfs_config() == ("hdfs://a", "user")
    with pytest.raises(AttributeError, match="no_such"):
        core.no_such()


def test_the_core_of_a_data_set_that_streams():
    dataset = fluid.DatasetFactory().create_dataset()
    with pytest.raises(NotImplementedError, match="load_into_memory: use InMemoryDataset"):
        dataset.dataset.load_into_memory()
    assert dataset.dataset.get_thread_num() == 1 and dataset.dataset.get_filelist() == []


def test_settings_of_a_data_set_can_be_read():
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    assert (dataset.parse_ins_id, dataset.parse_content) == (False, False)
    dataset.dataset.set_parse_ins_id(True)
    dataset.set_parse_content(True)
    assert (dataset.parse_ins_id, dataset.parse_content) == (True, True)


def test_a_reader_of_two_files(tmp_path):
    images, labels = tmp_path / "images.gz", tmp_path / "labels"
    images.write_bytes(gzip.compress(b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 28, 28))
                                     + bytes(784) + b"\xff" * 784))
    labels.write_bytes(b"\0\0\x08\x01\0\0\0\x02\x07\x09")
    first, second = datasets.mnist.reader_creator(str(images), str(labels), 100)()
    assert (first[0].shape, first[0][0], first[1], second[0][0], second[1]) == ((784,), -1.0, 7, 1.0, 9)
    labels.write_bytes(b"\0\0\x08\x01\0\0\0\x01\x07")
    with pytest.raises(ValueError, match="images and labels do not match"):
        next(datasets.mnist.reader_creator(str(images), str(labels), 100)())


@pytest.mark.parametrize("name, digest", [("imikolov", "30177ea32e27c525793142b6bf2c8e2d"),
                                          ("mq2007", "7be1640ae95c6408dab0ae7207bdc706")])
def test_addresses_of_archives(name, digest):
    module = getattr(__import__("anabranch.dataset." + name).dataset, name)
    assert module.MD5 == digest and module.URL.startswith("http")


def test_the_mapper_of_flowers_is_that_of_tests():
    assert datasets.flowers.test_mapper.func is datasets.flowers.default_mapper
    assert datasets.flowers.test_mapper.args == (False,)
