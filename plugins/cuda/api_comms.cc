#include "handles.h"
#include "open_nccl.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

constexpr size_t kIdBytes = 128;
static_assert(sizeof(ncclUniqueId) == kIdBytes);

int comm_id(char id[128]) {
  return called([&](Process&) {
    given(id, "id");
    ncclUniqueId made;
    well(nccl().ncclGetUniqueId(&made), nullptr, "naming a communicator");
    memcpy(id, made.internal, kIdBytes);
  });
}

int comm_new(int device, const char id[128], int rank, int ranks, ab_comm** out) {
  return called([&](Process& p) {
    p.check_device(device);
    given(id, "id");
    given(out, "out") = nullptr;
    need(rank >= 0 && rank < ranks, "rank must be from 0 to ", ranks - 1, ", got ", rank);
    use_device(device);
    ncclUniqueId name;
    memcpy(name.internal, id, kIdBytes);
    auto comm = std::make_unique<ab_comm>(ab_comm{device, rank, ranks});
    // In a group it is made at the group's end, so what it is written to has its place already.
    well(nccl().ncclCommInitRank(&comm->comm, ranks, name, rank), nullptr, "rank ", rank, " of ", ranks);
    p.made(Thing::kComms);
    *out = comm.release();
  });
}

int comm_group(int begin) {
  return called([&](Process&) {
    well(begin ? nccl().ncclGroupStart() : nccl().ncclGroupEnd(), nullptr, begin ? "beginning" : "ending", " a group");
  });
}

ncclRedOp_t op_of(ab_collective what) {
  switch (what) {
    case AB_ALL_REDUCE_MAX: return ncclMax;
    case AB_ALL_REDUCE_MIN: return ncclMin;
    case AB_ALL_REDUCE_PROD: return ncclProd;
    default: return ncclSum;
  }
}

ncclResult_t put(const ab_comm& c, cudaStream_t stream, ab_collective what, const void* send, void* recv, Elements e,
                 int root) {
  switch (what) {
    case AB_REDUCE_SUM: return nccl().ncclReduce(send, recv, e.count, e.type, ncclSum, root, c.comm, stream);
    case AB_BROADCAST: return nccl().ncclBroadcast(send, recv, e.count, e.type, root, c.comm, stream);
    case AB_ALL_GATHER: return nccl().ncclAllGather(send, recv, e.count, e.type, c.comm, stream);
    case AB_REDUCE_SCATTER: return nccl().ncclReduceScatter(send, recv, e.count, e.type, ncclSum, c.comm, stream);
    default: return nccl().ncclAllReduce(send, recv, e.count, e.type, op_of(what), c.comm, stream);
  }
}

int comm_run(ab_comm* comm, ab_queue* queue, ab_collective what, const void* send, void* recv, size_t count, int dtype,
             int root) {
  return working([&](Process&) {
    const ab_comm& c = given(comm, "comm");
    const ab_queue& q = given(queue, "queue");
    need(c.device == q.device, "rank ", c.rank, " is on device ", c.device, ", got a queue of device ", q.device);
    need(what >= AB_ALL_REDUCE_SUM && what <= AB_REDUCE_SCATTER, "no collective has the number ",
         static_cast<int>(what));
    const bool rooted = what == AB_REDUCE_SUM || what == AB_BROADCAST;
    need(!rooted || (root >= 0 && root < c.ranks), "root must be from 0 to ", c.ranks - 1, ", got ", root);
    const Elements elements = elements_of(what, dtype, count);
    need(c.comm != nullptr, "rank ", c.rank, " has not been made: its group has not ended, or failed");
    use_device(q.device);
    const ncclResult_t result = put(c, q.stream, what, send, recv, elements, root);
    if (result == ncclUnhandledCudaError) library_failed(q, AB_INTERNAL, text_of(result, c.comm));
    well(result, c.comm, "rank ", c.rank);
  });
}

int comm_check(ab_comm* comm, int* failed_rank) {
  return called([&](Process&) {
    const ab_comm& c = given(comm, "comm");
    if (failed_rank) *failed_rank = -1;  // NCCL does not tell
    if (!c.comm) fail(AB_UNAVAILABLE, "rank ", c.rank, " has not been made");
    ncclResult_t found = ncclSuccess;
    well(nccl().ncclCommGetAsyncError(c.comm, &found), c.comm, "asking rank ", c.rank);
    if (found != ncclSuccess && found != ncclInProgress) {
      fail(AB_UNAVAILABLE, "rank ", c.rank, " of ", c.ranks, ": ", text_of(found, c.comm));
    }
  });
}

int comm_free(ab_comm* comm, int abort) {
  return called([&](Process& p) {
    const std::unique_ptr<ab_comm> c(&given(comm, "comm"));
    p.freed(Thing::kComms, cudaSuccess, "freeing a communicator");
    if (!c->comm) return;
    const bool at_once = abort || p.faulted();
    const ncclResult_t result = at_once ? nccl().ncclCommAbort(c->comm) : nccl().ncclCommDestroy(c->comm);
    if (!at_once) well(result, nullptr, "freeing rank ", c->rank);
  });
}

}  // namespace

void fill_comms(ab_device_api& api) {
  api.comm_id = comm_id;
  api.comm_new = comm_new;
  api.comm_group = comm_group;
  api.comm_run = comm_run;
  api.comm_check = comm_check;
  api.comm_free = comm_free;
}

}  // namespace anabranch::cuda
