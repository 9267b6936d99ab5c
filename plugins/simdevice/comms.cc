#include "comms.h"

#include <algorithm>
#include <atomic>

#include "failure.h"

namespace anabranch::simdevice {
namespace {

// Calls of one bracket of comm_group() share a number. kGraph: of no thread's bracket, and always grouped.
constexpr uint64_t kGraph = ~uint64_t{0};
struct Bracket {
  int depth = 0;
  uint64_t number = 0;
};
thread_local Bracket bracket;
std::atomic<uint64_t> brackets{0};

const char* const kNames[] = {"all_reduce_sum", "all_reduce_max", "all_reduce_min", "all_reduce_prod",
                              "reduce_sum",     "broadcast",      "all_gather",     "reduce_scatter"};

bool rooted(ab_collective what) { return what == AB_REDUCE_SUM || what == AB_BROADCAST; }

// A thread that makes the calls of several ranks one after another would wait for itself on real devices.
void check_thread(const Round& round, const ab_comm& comm) {
  const auto here = std::this_thread::get_id();
  for (size_t rank = 0; rank < round.parts.size(); ++rank) {
    const Part& part = round.parts[rank];
    if (!part.queue || part.thread != here || part.bracket == kGraph || bracket.number == kGraph) continue;
    need(part.bracket && part.bracket == bracket.number, "one thread serves ranks ", rank, " and ", comm.rank,
         " of communicator ", round.group->id, ": their calls belong between comm_group(1) and comm_group(0)");
  }
}

}  // namespace

std::string Spec::text() const {
  const std::string root_text = rooted(what) ? said(", root ", root) : "";
  return said(kNames[what], " of ", count, " ", dtype_text(dtype), root_text);
}

std::string Round::missing() const {
  std::string ranks;
  int count = 0;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (!parts[rank].queue) ranks += said(" ", rank), ++count;
  }
  return (count == 1 ? "rank" : "ranks") + ranks;
}

size_t Round::send_bytes(int rank) const {
  const size_t one = spec.count * dtype_bytes(spec.dtype);
  if (spec.what == AB_BROADCAST && rank != spec.root) return 0;
  return spec.what == AB_REDUCE_SCATTER ? one * parts.size() : one;
}

size_t Round::recv_bytes(int rank) const {
  const size_t one = spec.count * dtype_bytes(spec.dtype);
  if (spec.what == AB_REDUCE_SUM && rank != spec.root) return 0;
  return spec.what == AB_ALL_GATHER ? one * parts.size() : one;
}

std::string Comms::new_id() {
  std::string id = said("simulated ", ++ids_);
  groups_[id];
  return id;
}

ab_comm* Comms::join(int device, const std::string& id, int rank, int ranks) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) {
    fail(AB_UNSUPPORTED, "communicator \"", id.substr(0, 40),
         "\" was not named by comm_id() of this process: ", "communicators of several processes are not simulated");
  }
  need(ranks >= 1 && ranks <= 8, "ranks must be from 1 to 8, got ", ranks);
  need(rank >= 0 && rank < ranks, "rank must be from 0 to ", ranks - 1, ", got ", rank);
  std::shared_ptr<Group>& group = found->second;
  if (!group) {
    group = std::make_shared<Group>();
    group->id = id;
    group->members.resize(static_cast<size_t>(ranks));
  }
  need(group->members.size() == static_cast<size_t>(ranks), "rank ", rank, " says that communicator ", id, " has ",
       ranks, " ranks, another one said ", group->members.size());
  for (const ab_comm* other : group->members) {
    need(!other || other->rank != rank, "communicator ", id, " has a rank ", rank, " already");
    need(!other || other->device != device, "ranks ", rank, " and ", other ? other->rank : 0, " of communicator ", id,
         " are both on device ", device);
  }
  auto comm = std::make_unique<ab_comm>();
  comm->group = group;
  comm->rank = rank;
  comm->device = device;
  return group->members[static_cast<size_t>(rank)] = handles.add(std::move(comm));
}

void Comms::post(Item& item, ab_comm& comm, ab_queue& queue, const Spec& spec, const void* send, void* recv) {
  Group& group = *comm.group;
  if (!group.failure.empty()) fail(AB_UNAVAILABLE, group.failure);
  auto& round = group.open[comm.next];
  if (!round) {
    round = std::make_shared<Round>();
    round->group = comm.group;
    round->number = comm.next;
    round->spec = spec;
    round->parts.resize(group.members.size());
  }
  check_thread(*round, comm);
  if (round->spec != spec) {
    size_t other = 0;
    while (!round->parts[other].queue) ++other;
    const std::string why = said("ranks of communicator ", group.id, " disagree on collective ", comm.next, ": rank ",
                                 other, " runs ", round->spec.text(), ", rank ", comm.rank, " runs ", spec.text());
    fail_group(group, comm.rank, why);
    fail(AB_INVALID_ARGUMENT, why);
  }
  round->parts[static_cast<size_t>(comm.rank)] = {&queue, send, recv, std::this_thread::get_id(), bracket.number};
  ++round->posted;
  ++comm.next;
  item.round = round;
  if (round->posted == static_cast<int>(round->parts.size())) group.open.erase(round->number);
}

void Comms::fail_group(Group& group, int rank, const std::string& why) {
  if (!group.failure.empty()) return;
  group.failed_rank = rank;
  group.failure = why;
  group.open.clear();
}

void Comms::leave(ab_comm& comm, bool abort) {
  Group& group = *comm.group;
  group.members[static_cast<size_t>(comm.rank)] = nullptr;
  const bool others = std::any_of(group.members.begin(), group.members.end(), [](const ab_comm* c) { return c; });
  if (others) {
    fail_group(group, comm.rank,
               said("rank ", comm.rank, " has ", abort ? "aborted" : "left", " communicator ", group.id));
  } else {
    group.open.clear();
    groups_.erase(group.id);
  }
  handles.remove(comm);
}

void Comms::clear() {
  for (const auto& [id, group] : groups_) {
    if (group) group->open.clear();
  }
  groups_.clear();
}

void Comms::group(bool begin) {
  if (begin) {
    if (bracket.depth++ == 0) bracket.number = ++brackets;
    return;
  }
  need(bracket.depth > 0, "comm_group(0) without comm_group(1) before it");
  if (--bracket.depth == 0) bracket.number = 0;
}

bool Comms::in_group() { return bracket.depth > 0; }

Comms::GraphBracket::GraphBracket() {
  if (!bracket.depth) bracket.number = kGraph;
}

Comms::GraphBracket::~GraphBracket() {
  if (!bracket.depth) bracket.number = 0;
}

}  // namespace anabranch::simdevice
