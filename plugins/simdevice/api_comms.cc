#include <cstring>

#include "process.h"

namespace anabranch::simdevice {
namespace {

constexpr size_t kIdBytes = 128;

int comm_id(char id[128]) {
  return locked([&](Machine& m, Lock&) {
    const std::string made = m.comms.new_id(m.settings.bytes);
    memset(&given(id, "id"), 0, kIdBytes);
    memcpy(id, made.data(), made.size());
  });
}

int comm_new(int device, const char id[128], int rank, int ranks, ab_comm** out) {
  return locked([&](Machine& m, Lock&) {
    m.check_device(device);
    given(id, "id");
    given(out, "out") = m.comms.join(device, std::string(id, strnlen(id, kIdBytes)), rank, ranks);
  });
}

int comm_group(int begin) {
  return locked([&](Machine&, Lock&) { Comms::group(begin != 0); });
}

int comm_run(ab_comm* comm, ab_queue* queue, ab_collective what, const void* send, void* recv, size_t count, int dtype,
             int root) {
  return locked([&](Machine& m, Lock&) {
    ab_comm& c = m.comms.handles.check(comm);
    ab_queue& q = m.queues.check(queue);
    need(c.device == q.device, "rank ", c.rank, " is on device ", c.device, ", got ", q.text());
    need(what >= AB_ALL_REDUCE_SUM && what <= AB_REDUCE_SCATTER, "no collective has the number ",
         static_cast<int>(what));
    need(dtype_bytes(dtype) != 0, "no dtype has the number ", dtype);
    const bool rooted = what == AB_REDUCE_SUM || what == AB_BROADCAST;
    const int ranks = static_cast<int>(c.group->members.size());
    need(!rooted || (root >= 0 && root < ranks), "root must be from 0 to ", ranks - 1, ", got ", root);
    m.put(q, collective_item(c, {what, count, dtype, rooted ? root : 0}, send, recv));
    if (c.group->shared) m.attend();
  });
}

int comm_check(ab_comm* comm, int* failed_rank) {
  return locked([&](Machine& m, Lock&) {
    Group& group = *m.comms.handles.check(comm).group;
    m.comms.look(group);
    if (failed_rank) *failed_rank = group.failed_rank;
    if (!group.failure.empty()) fail(AB_UNAVAILABLE, group.failure);
  });
}

// Whether a collective of this rank has not run.
bool waits(const Machine& m, const ab_comm& comm) {
  for (const auto& queue : m.queues.all()) {
    for (const Item& item : queue->items) {
      if (item.round && item.round->group == comm.group &&
          item.round->parts[static_cast<size_t>(comm.rank)].queue == queue.get()) {
        return true;
      }
    }
  }
  return false;
}

int comm_free(ab_comm* comm, int abort) {
  return locked([&](Machine& m, Lock&) {
    ab_comm& c = m.comms.handles.check(comm);
    need(abort || !waits(m, c), "rank ", c.rank, " of communicator ", c.group->id,
         " is freed before its collectives have passed");
    m.comms.leave(c, abort != 0);
    m.wake();
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

}  // namespace anabranch::simdevice
