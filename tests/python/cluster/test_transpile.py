"""Programs of trainers and servers are those of Fluid 1.8.5: ops, order, slots, names, blocks, attributes."""
import gzip
import json
import os

import pytest
import transpile_cases as cases
from repository import DATA, TESTS

import anabranch.fluid as fluid

GOLDEN = os.path.join(TESTS, "golden", "transpile")

#: Attributes that Fluid 1.8.5 writes in no fixed order, or that choose a library.
UNORDERED = ("grad_to_block_id",)
LEFT_OUT = ("op_namescope", "op_callstack", "op_device", "op_draw_number", "op_reads_versions")

#: Cases where 1.8.5 is not followed; docs/differences.md says why.
APART = {
    "clip_value.sync", "clip_value.async", "clip_value.half_async", "clip_norm.sync", "clip_norm.async",
    "clip_norm.half_async", "clip_global.sync", "clip_global.async", "clip_global.half_async",  # 1.8.5 loses gradients
    "lars.sync",              # its rule takes a norm of the whole parameter
    "rmsprop.sync", "rmsprop.async",  # the mean of gradients is not cut, though the parameter is
    "one_trainer.sync",       # its trainer and its server call a gradient differently
    "whole.geo",              # slice_var_up is not obeyed there
    "distributed_table.geo",  # refused
    "two_tables.geo",         # names ids and a table once for each two lookups
}


def recorded():
    with gzip.open(os.path.join(DATA, "transpiled.json.gz")) as file:
        return json.load(file)


RECORDED = recorded()


class _Names:
    """Variables that only order ops have random names in Fluid 1.8.5, and some temporary ones are numbered over all
    programs of the process: they are numbered as they appear."""

    PASSING = ("__control_var", "tmp_dc_output")

    def __init__(self):
        self.seen = {}

    def __call__(self, names):
        return [self.seen.setdefault(n, "number %d" % len(self.seen)) if n.startswith(self.PASSING) else n
                for n in names]


def in_order(ops):
    """Tables are left out of the trainer's startup program in no fixed order of Fluid 1.8.5."""
    return [op for op in ops if op["type"] != "fake_init"] + \
        sorted((op for op in ops if op["type"] == "fake_init"), key=lambda op: op["outputs"]["Out"])


def plain(op, names):
    attrs = {}
    for name, value in op["attrs"].items():
        if name in LEFT_OUT:
            continue
        (kind, content), = value.items()
        attrs[name] = sorted(content) if name in UNORDERED else content
    for pair in (attrs.get("op_role_var") or [],):  # an op that makes several gradients lists them in any order
        attrs["op_role_var"] = sorted(zip(pair[::2], pair[1::2]))
    return {"type": op["type"], "attrs": attrs,
            "inputs": {s: names(a) for s, a in sorted(op["inputs"].items()) if a},
            "outputs": {s: names(a) for s, a in sorted(op["outputs"].items()) if a}}


def check_op(where, got, expected):
    for part in ("type", "inputs", "outputs"):
        assert got[part] == expected[part], where
    for name, value in expected["attrs"].items():
        assert got["attrs"].get(name, "absent") == value, "%s %s: %s" % (where, got["type"], name)


def check_blocks(where, got, expected):
    assert [(b["idx"], b["parent"]) for b in got] == [(b["idx"], b["parent"]) for b in expected], where
    ours, theirs = _Names(), _Names()
    for mine, other in zip(got, expected):
        assert [op["type"] for op in mine["ops"]] == [op["type"] for op in other["ops"]], where
        for i, (a, b) in enumerate(zip(in_order(mine["ops"]), in_order(other["ops"]))):
            check_op("%s block %d op %d" % (where, mine["idx"], i), plain(a, ours), plain(b, theirs))


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("name", sorted(cases.GOLDEN))
def test_programs_are_those_of_the_golden_ones(name, mode):
    with open(os.path.join(GOLDEN, "%s_%s.json" % (name, mode))) as file:
        expected = json.load(file)
    got = cases.transpiled(fluid, cases.GOLDEN[name], mode)
    assert sorted(got) == sorted(expected)
    for part in sorted(expected):
        check_blocks(part, got[part], expected[part])


@pytest.mark.parametrize("case", cases.SUMMED)
def test_programs_of_collectives_are_those_of_1_8_5(case):
    kind, name = case.split(".")
    got = cases.summed(fluid, kind, cases.GOLDEN[name])
    for part in ("main", "startup"):
        check_blocks(part, got[part], RECORDED[case][part])


@pytest.mark.parametrize("case", sorted(c for c in RECORDED if c not in cases.SUMMED and c not in APART
                                        and "error" not in RECORDED[c]))
def test_programs_are_those_of_1_8_5(case):
    name, mode = case.rsplit(".", 1)
    build, how = cases.CASES[name]
    expected = RECORDED[case]
    got = cases.transpiled(fluid, build, mode, details=True, **how)
    assert sorted(got) == sorted(expected)
    for part in sorted(expected):
        check_blocks(part, got[part]["blocks"], expected[part]["blocks"])
        if part.startswith("server"):
            assert got[part]["vars"][0] == expected[part]["vars"][0], part


# ---- where 1.8.5 is not followed


def ops_of(blocks, kind):
    return [op for b in blocks for op in b["ops"] if op["type"] == kind]


@pytest.mark.parametrize("kind, make", [
    ("lars_momentum", lambda f: f.optimizer.LarsMomentum(0.1, 0.9)), ("lamb", lambda f: f.optimizer.Lamb(0.1))])
def test_an_update_that_takes_a_norm_stays_whole(kind, make):
    got = cases.transpiled(fluid, cases.with_optimizer(make, width=1000), "sync")
    kept = [op["inputs"]["Param"] for i in range(2) for op in ops_of(got["server%d" % i], kind)]
    assert sorted(kept) == [["fc_0.b_0"], ["fc_0.w_0"], ["fc_1.b_0"], ["fc_1.w_0"]]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("case, kind", [("clip_value", "clip"), ("clip_norm", "clip_by_norm")])
def test_servers_clip_what_they_have_added_up(case, kind, mode):
    got = cases.transpiled(fluid, cases.CASES[case][0], mode)
    sent = [op["inputs"]["X"] for op in ops_of(got["trainer1"], "send")]
    suffix = ".trainer_1" if mode == "sync" else ""
    assert sorted(sent) == [[p + "@GRAD" + suffix] for p in ("fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0")]
    for block in got["server0"][1:] + got["server1"][1:]:
        clip, update = block["ops"][-2:]
        assert (clip["type"], update["type"]) == (kind, "sgd")
        assert clip["inputs"]["X"] == [update["inputs"]["Param"][0] + "@GRAD"]
        assert clip["outputs"]["Out"] == update["inputs"]["Grad"]


def test_parameters_of_a_common_norm_share_a_server():
    got = cases.transpiled(fluid, cases.CASES["clip_global"][0], "sync")
    blocks = got["server0"][1:]
    assert len(blocks) == 4 and not got["server1"][0]["ops"][0]["inputs"]["X"]
    assert [[op["type"] for op in block["ops"]] for block in blocks[:-1]] == [["sum", "scale"]] * 3
    last = [op["type"] for op in blocks[-1]["ops"]]
    assert last[:2] == ["sum", "scale"] and last.count("sqrt") == 1 and last[-4:] == ["sgd"] * 4


@pytest.mark.parametrize("mode, trainers", [("async", 2), ("half_async", 2), ("sync", 1)])
def test_workers_clip_by_a_common_norm_without_a_sum_of_gradients(mode, trainers):
    got = cases.transpiled(fluid, cases.CASES["clip_global"][0], mode, trainers=trainers)
    sent = [op["inputs"]["X"] for op in ops_of(got["trainer0"], "send")]
    assert sorted(sent) == [["elementwise_mul_%d.tmp_0" % i] for i in range(4)]
    types = [op["type"] for op in got["trainer0"][0]["ops"]]
    assert "sqrt" in types and types.index("sqrt") < types.index("send")
    for block in got["server0"][1:] + got["server1"][1:]:
        assert [op["type"] for op in block["ops"]] == ["sgd"]


def test_one_trainer_and_its_servers_agree_on_names():
    got = cases.transpiled(fluid, cases.CASES["one_trainer"][0], "sync", trainers=1)
    sent = {n for op in ops_of(got["trainer0"], "send") for n in op["inputs"]["X"]}
    heard = {n for i in range(2) for op in ops_of(got["server%d" % i], "listen_and_serv") for n in op["inputs"]["X"]}
    assert sent == heard


@pytest.mark.parametrize("mode", ["sync", "async", "half_async"])
def test_a_distributed_table_lives_on_servers_only(mode):
    got = cases.transpiled(fluid, cases.CASES["distributed_table"][0], mode)
    assert ops_of(got["trainer0_startup"], "fake_init")[0]["outputs"] == {"Out": ["table"]}
    assert [op["inputs"]["W"] for op in ops_of(got["trainer0"], "distributed_lookup_table")] == [["table"]]
    assert not ops_of(got["trainer0"], "lookup_table")
    assert ["table"] not in [op["outputs"]["Out"] for op in ops_of(got["trainer0"], "recv")]


def test_geo_refuses_a_distributed_table():
    with pytest.raises(ValueError, match="distributed"):
        cases.transpiled(fluid, cases.CASES["distributed_table"][0], "geo")


# ---- arguments


def transpile(config=None, **args):
    main, startup = cases.fresh(fluid, cases.dense)
    t = fluid.DistributeTranspiler(config)
    t.transpile(**dict({"trainer_id": 0, "program": main, "startup_program": startup}, **args))
    return t


def config(**fields):
    made = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("kind, make", [
    (ValueError, lambda: config(sync_mode=None)),
    (ValueError, lambda: config(runtime_split_send_recv=None)),
    (ValueError, lambda: config(runtime_split_send_recv=True)),
    (ValueError, lambda: setattr(config(sync_mode=False, runtime_split_send_recv=True), "sync_mode", True)),
    (AssertionError, lambda: fluid.DistributeTranspiler(config(min_block_size=100))),
    (AssertionError, lambda: fluid.DistributeTranspiler(config(split_method=dict))),
    (TypeError, lambda: fluid.DistributeTranspiler("sync")),
    (TypeError, lambda: transpile(trainer_id="0")),
    (ValueError, lambda: transpile(trainer_id=-1)),
    (ValueError, lambda: transpile(trainers=0)),
    (TypeError, lambda: transpile(program="main")),
    (ValueError, lambda: transpile(pservers="somewhere")),
    (ValueError, lambda: transpile(pservers="a:1,a:1")),
    (ValueError, lambda: transpile(program=fluid.Program())),
    (ValueError, lambda: transpile().get_pserver_program("127.0.0.1:1")),
    (RuntimeError, lambda: fluid.DistributeTranspiler().get_trainer_program()),
    (RuntimeError, lambda: fluid.DistributeTranspiler().get_pserver_programs("127.0.0.1:6174")),
    (ValueError, lambda: transpile(config(mode="nccl2"), trainer_id=-1, trainers="a:1,b:2")),
    (ValueError, lambda: transpile(config(mode="collective"), trainers="a:1,b:2")),
    (ValueError, lambda: transpile(config(mode="collective", collective_mode="bad"), trainers="a:1,b:2")),
    (TypeError, lambda: transpile(config(mode="nccl2"), trainers=2)),
])
def test_bad_arguments_are_refused(kind, make):
    with pytest.raises(kind):
        make()


def test_hashed_names_place_all_slices():
    from anabranch.fluid.transpiler import HashName
    got = cases.transpiled(fluid, cases.CASES["adam_sliced"][0], "sync", config={"split_method": HashName}, servers=2)
    updated = [op["inputs"]["Param"][0] for i in range(2) for op in ops_of(got["server%d" % i], "adam")]
    assert sorted(updated) == ["fc_0.b_0", "fc_0.w_0.block0", "fc_0.w_0.block1", "fc_1.b_0", "fc_1.w_0"]
    moments = [tuple(sorted(op["inputs"]["Moment1"])) for i in range(2) for op in ops_of(got["server%d" % i], "adam")]
    assert len(set(moments)) == 5 or {"fc_0.w_0_moment1_0"} <= {m[0] for m in moments}


def test_half_async_needs_a_communicator_that_splits():
    """Without it 1.8.5 sends and receives as in async mode: no barrier."""
    def types(**fields):
        t = transpile(config(wait_port=False, sync_mode=False, **fields), pservers="a:1,b:2", trainers=2,
                      sync_mode=False)
        return [op.type for op in t.get_trainer_program(wait_port=False).global_block().ops]
    assert types(half_async=True) == types()
    assert "send_barrier" in types(half_async=True, runtime_split_send_recv=True)


def test_server_programs_may_be_asked_for_after_the_trainers():
    t = transpile(pservers="a:1,b:2", trainers=2)
    t.get_trainer_program(wait_port=False)
    assert t.get_pserver_program("a:1") is t.get_pserver_programs("a:1")[0]


def test_waiting_for_a_port_ends_and_names_it():
    from anabranch.fluid.transpiler.details import wait_server_ready
    with pytest.raises(RuntimeError, match="127.0.0.1:1 "):
        wait_server_ready(["127.0.0.1:1"], deadline_s=0.3)


def test_values_of_a_cut_parameter_are_cut():
    import numpy
    values = numpy.arange(20000).reshape(20, 1000).astype("float32")

    def build(fluid):
        x = fluid.data("x", [None, 20], "float32")
        init = fluid.initializer.NumpyArrayInitializer(values)
        h = fluid.layers.fc(x, 1000, param_attr=fluid.ParamAttr(name="w", initializer=init), bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))

    exe, parts = fluid.Executor(fluid.CPUPlace()), []
    for endpoint in cases.SERVERS[:2]:
        t, _ = cases.transpiler_of(fluid, build, "sync", 0, 2, 2, {})
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(t.get_pserver_programs(endpoint)[1])
        name = t.get_pserver_program(endpoint).global_block().ops[0].input("X")[0].split("@")[0]
        block = t.get_pserver_program(endpoint).global_block().ops[0].attr("grad_to_block_id")[0].split(":")[0]
        parts.append((block, numpy.array(scope.find_var(name + "." + block.rsplit(".", 1)[1]).get_tensor())))
    parts = [v for _, v in sorted(parts, key=lambda p: p[0])]
    numpy.testing.assert_array_equal(numpy.concatenate(parts), values)


def levels_of(levels, mode="sync", build=cases.ctr):
    def configured(fluid):
        build(fluid)
    config = {"table_durability": levels}
    t, _ = cases.transpiler_of(fluid, configured, mode, 0, 2, 2, config)
    return [t.get_pserver_program(e).global_block().ops[0] for e in cases.SERVERS[:2]]


@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_tables_may_survive_more_or_less_than_the_rest(mode):
    told = [op.attr("table_durability") for op in levels_of({"table": 2}, mode) if op.has_attr("table_durability")]
    assert sorted(sum(told, [])) == ["table:2"]
    assert not any(op.has_attr("table_durability") and op.attr("table_durability") for op in levels_of({}, mode))


@pytest.mark.parametrize("levels, told", [({"fc_0.w_0": 1}, "one of: table"), ({"table": 3}, "0, 1 or 2, got 3"),
                                          ({"table": True}, "got True"), ({"other": 0}, "other")])
def test_levels_of_tables_are_checked(levels, told):
    with pytest.raises(ValueError, match=told):
        levels_of(levels)
