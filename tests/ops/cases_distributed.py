"""Operators of clusters that need no connection: they cut what is sent and join what has arrived."""
import numpy as np
from op_case import Rows, Seq, array_of, case, real, skip

# ---- parts by rows


def cut(count):
    def ref(i, a):
        n = not a.get("num") and a.get("sections") or [len(i["X"]) // count] * count
        return {"Out": [i["X"][e - k:e] for k, e in zip(n, np.cumsum(n))]}
    return ref


for name, sections in (("sections", [1, 0, 3]), ("even", []), ("rest", [1, 1, 2])):
    case("split_byref", {"X": real(6, 4)}, {"sections": sections}, cut(3), outs={"Out": 3}, name=name,
         large={"X": real(999, 65)} if not sections else None)
case("split_byref", {"X": real(6, 4)}, {"sections": [1, 0, 3], "num": 3}, cut(3), outs={"Out": 3}, name="num_first")
case("split_byref", {"X": real(6)}, {"sections": [4, 2]}, cut(2), outs={"Out": 2}, name="vector")

VALUES = real(5, 2)


def cut_rows(i, a):
    rows, begin, out = i["X"], 0, []
    for height in a["height_sections"]:
        mine = [k for k, row in enumerate(rows.ids) if begin <= row < begin + height]
        out.append(Rows([rows.ids[k] - begin for k in mine], height, rows.values[mine]))
        begin += height
    return {"Out": out}


for name, ids in (("rows", [7, 2, 5, 2, 0]), ("an_empty_part", [7, 5, 7, 4, 4])):
    case("split_selected_rows", {"X": Rows(ids, 10, VALUES)}, {"height_sections": [4, 4, 2]}, cut_rows,
         outs={"Out": 3}, name=name)



def server_of(key, servers):
    """The server that has a key of a growable table: by the hash of 64 bits that src/sparse/hash.h writes down."""
    word = (1 << 64) - 1
    h = key * 0x9e3779b97f4a7c15 & word
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93 & word
    return ((h ^ h >> 32) * 0x9e3779b97f4a7c15 & word) * servers >> 64


def cut_keys(i, a):
    rows, out = i["X"], []
    for server in range(len(a["height_sections"])):
        mine = [k for k, key in enumerate(rows.ids) if server_of(key, len(a["height_sections"])) == server]
        out.append(Rows([rows.ids[k] for k in mine], -1, rows.values[mine]))
    return {"Out": out}


case("split_selected_rows", {"X": Rows([7, -2, 2 ** 62, -2, 1 - 2 ** 63], -1, VALUES)},
     {"height_sections": [-1, -1]}, cut_keys, outs={"Out": 2}, name="keys")

# ---- ids by server

IDS = [np.array([[7], [2], [5], [2], [0]]), np.array([[3], [5], [9]])]


def by_server(i, a):
    ids = np.unique(np.concatenate([x.ravel() for x in i["Ids"]]))
    return {"Out": [ids[ids % 3 == s].reshape(-1, 1) for s in range(3)]}


def rows_by_server(i, a):
    rows, out = i["Ids"][0], []
    for s in range(2):
        mine = [k for k, row in enumerate(rows.ids) if row % 2 == s]
        out.append(Rows([rows.ids[k] for k in mine], rows.height, rows.values[mine]))
    return {"Out": out}


case("split_ids", {"Ids": IDS}, {}, by_server, outs={"Out": 3}, dtypes=("float32",))
case("split_ids", {"Ids": [Rows([7, 2, 5, 2, 0], 10, VALUES)]}, {}, rows_by_server, outs={"Out": 2}, name="rows")


def joined(i, a):
    rows = {k: x for ids, values in zip(i["Rows"], i["X"]) for k, x in zip(ids.ravel(), values)}
    return {"Out": [np.stack([rows[k] for k in ids.ravel()]) for ids in i["Ids"]]}


case("merge_ids", {"Ids": IDS, "Rows": [np.array([[0], [3], [9]]), np.array([[7]]), np.array([[2], [5]])],
                   "X": [real(3, 4), real(1, 4), real(2, 4)]}, {}, joined, outs={"Out": 2}, grad=())

case("merge_ids", {"Ids": [Seq(IDS[0], [[2, 3]])], "Rows": [np.array([[0], [7], [2], [5]])], "X": [real(4, 3)]}, {},
     lambda i, a: {"Out": [Seq(joined({"Ids": [i["Ids"][0].array], "Rows": i["Rows"], "X": i["X"]}, a)["Out"][0],
                               i["Ids"][0].lengths)]}, outs={"Out": 1}, grad=(), name="sequences")

# ---- others

case("ref_by_trainer_id", {"X": [real(2, 3), real(2, 3), real(2, 3)], "TrainerId": np.array([1])}, {},
     lambda i, a: i["X"][int(i["TrainerId"][0])], grad=())
case("ref_by_trainer_id", {"X": [real(2, 3), Seq(real(2, 3), [[1, 1]])], "TrainerId": np.array([1])}, {},
     lambda i, a: array_of(i["X"][int(i["TrainerId"][0])]), grad=(), name="sequences")
for op in ("c_sync_calc_stream", "c_sync_comm_stream"):
    case(op, {"X": real(3, 4)}, {}, lambda i, a: i["X"], large={"X": real(301, 1033)})
for op in ("ring_sum", "ring_weight"):
    skip(op, "joins the gradients of processes: tests/python/cluster/test_collective_processes.py")
skip("trainer_weight", "weights the losses of several trainers: tests/python/cluster/test_parameter_server.py")
skip("fake_init", "its output holds nothing: tests/python/cluster/test_cluster_ops.py")
for op in ("send", "recv", "send_barrier", "fetch_barrier", "listen_and_serv", "prefetch", "distributed_lookup_table",
           "distributed_lookup_growable", "checkpoint_notify", "recv_save", "c_allreduce_sum", "c_allreduce_max", "c_allreduce_min",
           "c_allreduce_prod", "c_broadcast", "c_allgather", "c_reducescatter", "c_gen_nccl_id", "gen_nccl_id",
           "c_comm_init", "c_comm_init_all", "allreduce", "broadcast", "fl_listen_and_serv"):
    skip(op, "needs other processes: tests/python/cluster/test_cluster_ops.py")
