#include "exec/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace anabranch {
namespace {

constexpr int64_t kLine = 64;
constexpr int kParallelGap =
    16;  // nodes between the last user of a block and its next writer, when nodes run in parallel

int64_t rounded(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kLine - 1) / kLine * kLine; }

struct Block {
  int64_t bytes = 0, offset = 0;
  int occupant = -1, last = -1;
};

constexpr int kLargeGap = 2;

// The free block that fits best: the smallest that is large enough, else the largest.
int best_block(const std::vector<Block>& blocks, int first, int gap, int64_t bytes) {
  int best = -1;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].last + gap >= first) continue;
    if (best < 0) {
      best = static_cast<int>(b);
      continue;
    }
    const int64_t have = blocks[best].bytes, other = blocks[b].bytes;
    const bool better = have < bytes ? other > have : other >= bytes && other < have;
    if (better) best = static_cast<int>(b);
  }
  return best;
}

// With more than this many blocks, each temporary gets a new one: placing stays linear in the number of temporaries.
constexpr size_t kSearched = 256;

}  // namespace

MemoryLayout lay_out_memory(const std::vector<Lifetime>& lifetimes, int gap) {
  MemoryLayout layout;
  std::vector<int> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return lifetimes[a].first < lifetimes[b].first; });
  layout.after.resize(lifetimes.size(), -1);
  std::vector<Block> blocks;
  std::vector<size_t> block_of(lifetimes.size());
  for (const int i : order) {
    const Lifetime& life = lifetimes[i];
    const int64_t bytes = rounded(life.bytes);
    layout.unshared_bytes += bytes;
    const int apart = bytes >= kLargeBytes ? std::min(gap, kLargeGap) : gap;
    const int found = blocks.size() > kSearched ? -1 : best_block(blocks, life.first, apart, bytes);
    if (found < 0) blocks.emplace_back();
    block_of[i] = found < 0 ? blocks.size() - 1 : static_cast<size_t>(found);
    Block& block = blocks[block_of[i]];
    layout.after[i] = block.occupant;
    block = {std::max(block.bytes, bytes), 0, i, life.last};
  }
  for (Block& b : blocks) {
    b.offset = layout.bytes;
    layout.bytes += b.bytes;
  }
  for (const size_t b : block_of) {
    layout.offsets.push_back(blocks[b].offset);
    layout.capacities.push_back(blocks[b].bytes);
  }
  return layout;
}

std::vector<std::pair<int, int>> MemoryPlan::place(const std::vector<Temporary>& temporaries, bool parallel) {
  // What had to be placed again has new shapes: leave room, for the next ones are likely to differ as well.
  const bool again = arena_ != nullptr;
  std::vector<const Temporary*> held;
  std::vector<Lifetime> lifetimes;
  for (const Temporary& t : temporaries) {
    const Tensor* tensor = t.value->get<Tensor>();
    if (!tensor) continue;  // an op may leave what it names without a value
    const auto own = static_cast<int64_t>(tensor->bytes());
    held.push_back(&t);
    lifetimes.push_back({again ? own + own / 4 : own, t.first, t.last});
  }
  const MemoryLayout layout = lay_out_memory(lifetimes, parallel ? kParallelGap : 0);
  bytes_ = layout.bytes;
  unshared_bytes_ = layout.unshared_bytes;
  arena_ = allocate_buffer(static_cast<size_t>(std::max<int64_t>(bytes_, 1)));
  std::vector<std::pair<int, int>> edges;
  for (size_t i = 0; i < held.size(); ++i) {
    held[i]->value->as<Tensor>().place(static_cast<char*>(arena_.get()) + layout.offsets[i],
                                       static_cast<size_t>(layout.capacities[i]), arena_);
    if (!parallel || layout.after[i] < 0) continue;
    for (int user : held[static_cast<size_t>(layout.after[i])]->users) edges.emplace_back(user, held[i]->first);
  }
  return edges;
}

bool MemoryPlan::holds(const void* p) const {
  const auto* begin = static_cast<const char*>(arena_.get());
  return begin && p >= begin && p < begin + bytes_;
}

bool MemoryPlan::outgrown(const std::vector<Temporary>& temporaries) const {
  return std::any_of(temporaries.begin(), temporaries.end(), [&](const Temporary& t) {
    const Tensor* tensor = t.value->get<Tensor>();
    return tensor && tensor->bytes() > 0 && !holds(tensor->raw());
  });
}

void MemoryPlan::drop() {
  arena_ = nullptr;
  bytes_ = unshared_bytes_ = 0;
}

}  // namespace anabranch
