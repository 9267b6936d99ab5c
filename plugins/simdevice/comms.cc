#include "comms.h"

#include <algorithm>
#include <atomic>

#include "failure.h"
#include "peer.h"

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

void check_room(const Group& group, const Spec& spec) {
  if (!group.shared) return;
  const size_t parts = spec.what == AB_REDUCE_SCATTER ? group.members.size() : 1;
  const size_t room = group.shared->room(), bytes = parts * spec.count * dtype_bytes(spec.dtype);
  need(bytes <= room, "a rank of communicator ", group.id, " gives up to ", room,
       " bytes, the memory of a device where it was named, got ", bytes);
}

}  // namespace

std::string Comms::new_id(size_t device_bytes) {
  constexpr size_t kPage = 4096;
  const size_t side = (device_bytes + kPage - 1) / kPage * kPage;
  CommName name{++ids_, getpid(), start_of(getpid())};
  Descriptor file = make_comm_memory(name, side, SharedComm::file_bytes(side));
  groups_[name.id()].file = std::move(file);
  return name.id();
}

std::shared_ptr<Group> Comms::group_of(const CommName& name, int ranks) const {
  const auto found = groups_.find(name.id());
  if (found != groups_.end() && found->second.group) return found->second.group;
  auto group = std::make_shared<Group>();
  group->name = name;
  group->id = name.shown();
  group->members.resize(static_cast<size_t>(ranks));
  const int own = found == groups_.end() ? -1 : found->second.file.number();
  group->shared = std::make_unique<SharedComm>(name, own, ranks);
  return group;
}

ab_comm* Comms::join(int device, const std::string& id, int rank, int ranks) {
  const CommName name = CommName::read(id);
  need(ranks >= 1 && ranks <= SharedComm::kMost, "ranks must be from 1 to ", SharedComm::kMost, ", got ", ranks);
  need(rank >= 0 && rank < ranks, "rank must be from 0 to ", ranks - 1, ", got ", rank);
  const std::shared_ptr<Group> group = group_of(name, ranks);
  need(group->members.size() == static_cast<size_t>(ranks), "rank ", rank, " says that communicator ", group->id,
       " has ", ranks, " ranks, another one said ", group->members.size());
  for (const ab_comm* other : group->members) {
    need(!other || other->rank != rank, "communicator ", group->id, " has a rank ", rank, " already");
    need(!other || other->device != device, "ranks ", rank, " and ", other ? other->rank : 0, " of communicator ",
         group->id, " are both on device ", device);
  }
  need(group->shared != nullptr, "communicator ", group->id, " has a rank ", rank, " already");
  group->shared->join(rank);
  groups_[id].group = group;
  if (++group->here == ranks) group->shared = nullptr;
  if (!group->shared || group->shared->joined()) completed(*group);
  auto comm = std::make_unique<ab_comm>();
  comm->group = group;
  comm->rank = rank;
  comm->device = device;
  return group->members[static_cast<size_t>(rank)] = handles.add(std::move(comm));
}

void Comms::completed(Group& group) {
  group.complete = true;
  groups_[group.name.id()].file = Descriptor();
}

void Comms::post(Item& item, ab_comm& comm, ab_queue& queue, const Spec& spec, const void* send, void* recv) {
  Group& group = *comm.group;
  group.needed = std::max(group.needed, comm.next + 1);
  look(group);
  if (!group.failure.empty()) fail(AB_UNAVAILABLE, group.failure);
  check_room(group, spec);
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
    const Trouble trouble{
        comm.rank, said("ranks of communicator ", group.id, " disagree on collective ", comm.next, ": rank ", other,
                        " runs ", round->spec.text(), ", rank ", comm.rank, " runs ", spec.text())};
    fail_group(group, trouble);
    if (group.shared) group.shared->tell(trouble);
    group.over = true;
    fail(AB_INVALID_ARGUMENT, trouble.why);
  }
  round->parts[static_cast<size_t>(comm.rank)] = {&queue, send, recv, std::this_thread::get_id(), bracket.number};
  ++round->posted;
  ++comm.next;
  item.round = round;
  if (round->whole()) group.open.erase(round->number);
}

void Comms::fail_group(Group& group, const Trouble& trouble) {
  if (!group.failure.empty()) return;
  group.failed_rank = trouble.rank;
  group.failure = trouble.why;
  group.open.clear();
}

void Comms::look(Group& group) {
  if (!group.shared) return;
  if (!group.complete && group.shared->joined()) completed(group);
  if (!group.failure.empty()) return;
  Trouble trouble = group.shared->trouble(group.needed);
  if (!trouble && !group.open.empty() && group.open.begin()->second->begun) {
    trouble = group.open.begin()->second->disagreement();
    if (trouble) group.shared->tell(trouble);
  }
  if (trouble) fail_group(group, trouble);
}

void Comms::look() {
  for (const auto& [id, named] : groups_) {
    if (named.group) look(*named.group);
  }
}

bool Comms::awaited() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) {
    const Group* group = entry.second.group.get();
    if (!group || !group->shared || group->open.empty() || !group->shared->joined()) return false;
    const Round& round = *group->open.begin()->second;
    for (int rank = 0; rank < static_cast<int>(round.parts.size()); ++rank) {
      if (!group->shared->mine(rank) && round.begun_by(rank)) return true;
    }
    return false;
  });
}

void Comms::leave(ab_comm& comm, bool abort) {
  Group& group = *comm.group;
  group.members[static_cast<size_t>(comm.rank)] = nullptr;
  const bool others = std::any_of(group.members.begin(), group.members.end(), [](const ab_comm* c) { return c; });
  if (group.shared) {
    group.shared->leave(comm.rank, abort);
    group.over |= abort;
  } else if (others) {
    fail_group(group,
               {comm.rank, said("rank ", comm.rank, " has ", abort ? "aborted" : "left", " communicator ", group.id)});
    group.over = true;
  }
  if (!others) {
    group.open.clear();
    Named& named = groups_[group.name.id()];
    named.group = nullptr;
    if (!named.file) groups_.erase(group.name.id());
  }
  handles.remove(comm);
}

void Comms::clear() {
  for (const auto& [id, named] : groups_) {
    if (!named.group) continue;
    named.group->open.clear();
    for (const ab_comm* comm : named.group->members) {
      if (comm && named.group->shared) named.group->shared->leave(comm->rank, true);
    }
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
