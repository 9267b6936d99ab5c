// A collective, and the conditions for running it.
#include "comms.h"
#include "failure.h"

namespace anabranch::simdevice {
namespace {

const char* const kNames[] = {"all_reduce_sum", "all_reduce_max", "all_reduce_min", "all_reduce_prod",
                              "reduce_sum",     "broadcast",      "all_gather",     "reduce_scatter"};

bool rooted(ab_collective what) { return what == AB_REDUCE_SUM || what == AB_BROADCAST; }

}  // namespace

std::string Spec::text() const {
  const std::string root_text = rooted(what) ? said(", root ", root) : "";
  return said(kNames[what], " of ", count, " ", dtype_text(dtype), root_text);
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

bool Round::all_in_front() const {
  for (const Part& part : parts) {
    if (!part.queue) continue;
    const auto& items = part.queue->items;
    if (items.empty() || items.front().round.get() != this) return false;
  }
  return true;
}

bool Round::begun_by(int rank) const {
  if (parts[static_cast<size_t>(rank)].queue) return true;
  return group->shared && !group->shared->mine(rank) && group->shared->has_begun(rank, number);
}

Round::Next Round::next() const {
  if (whole()) return all_in_front() ? Next::kRun : Next::kNothing;
  if (group->over) return Next::kGiveUp;
  if (!group->shared || posted < group->here || !all_in_front() || !group->shared->joined()) return Next::kNothing;
  if (!begun) return number == group->next_round ? Next::kBegin : Next::kNothing;
  for (int rank = 0; rank < static_cast<int>(parts.size()); ++rank) {
    if (!begun_by(rank)) return Next::kNothing;
  }
  return disagreement() ? Next::kNothing : Next::kRun;
}

bool Round::waits_elsewhere() const {
  if (whole() || !group->shared || posted < group->here || !all_in_front()) return false;
  return begun || !group->shared->joined();
}

// It has started, so that specs of other processes are those of this round.
Trouble Round::disagreement() const {
  int first = -1;
  for (int rank = 0; rank < static_cast<int>(parts.size()); ++rank) {
    if (!begun_by(rank)) continue;
    if (first < 0) first = rank;
    const Spec &one = group->shared->spec(first, number), &other = group->shared->spec(rank, number);
    if (one == other) continue;
    return {rank, said("ranks of communicator ", group->id, " disagree on collective ", number, ": rank ", first,
                       " runs ", one.text(), ", rank ", rank, " runs ", other.text())};
  }
  return {};
}

std::string Round::missing() const {
  std::string ranks;
  int count = 0;
  for (int rank = 0; rank < static_cast<int>(parts.size()); ++rank) {
    if (!begun_by(rank)) ranks += said(" ", rank), ++count;
  }
  return count == 0 ? "" : (count == 1 ? "rank" : "ranks") + ranks;
}

std::string Round::standing() const {
  const std::string ranks = missing(), of = said(" of communicator ", group->id);
  if (ranks.empty()) return said("waits for the queues of the other ranks", of);
  return said("waits for ", ranks, of, " in collective ", number);
}

}  // namespace anabranch::simdevice
