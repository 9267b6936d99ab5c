#include "exec/memory_plan.h"

#include <algorithm>

namespace anabranch {
namespace {

constexpr int64_t kLine = 64;
constexpr int kParallelGap =
    16;  // nodes between the last user of a block and its next writer, when nodes run in parallel

int64_t rounded(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kLine - 1) / kLine * kLine; }

struct Block {
  int64_t bytes = 0, offset = 0;
  const Temporary* occupant = nullptr;
};

// The free block that fits best: the smallest that is large enough, else the largest.
int best_block(const std::vector<Block>& blocks, int first, int gap, int64_t bytes) {
  int best = -1;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].occupant->last + gap >= first) continue;
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

std::vector<std::pair<int, int>> MemoryPlan::place(const std::vector<Temporary>& temporaries, bool parallel) {
  // What had to be placed again has new shapes: leave room, for the next ones are likely to differ as well.
  const bool again = arena_ != nullptr;
  std::vector<const Temporary*> order;
  for (const Temporary& t : temporaries) {
    if (t.value->get<Tensor>()) order.push_back(&t);  // an op may leave what it names without a value
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Block> blocks;
  std::vector<std::pair<int, int>> edges;
  std::vector<std::pair<const Temporary*, size_t>> placed;
  unshared_bytes_ = 0;
  for (const Temporary* t : order) {
    const auto own = static_cast<int64_t>(t->value->get<Tensor>()->bytes());
    const int64_t bytes = rounded(again ? own + own / 4 : own);
    unshared_bytes_ += bytes;
    const int found = blocks.size() > kSearched ? -1 : best_block(blocks, t->first, parallel ? kParallelGap : 0, bytes);
    if (found >= 0 && parallel) {
      for (int user : blocks[found].occupant->users) edges.emplace_back(user, t->first);
    }
    if (found < 0) blocks.emplace_back();
    const size_t b = found < 0 ? blocks.size() - 1 : static_cast<size_t>(found);
    blocks[b].bytes = std::max(blocks[b].bytes, bytes);
    blocks[b].occupant = t;
    placed.emplace_back(t, b);
  }
  bytes_ = 0;
  for (Block& b : blocks) {
    b.offset = bytes_;
    bytes_ += b.bytes;
  }
  arena_ = allocate_buffer(static_cast<size_t>(std::max<int64_t>(bytes_, 1)));
  for (const auto& [t, b] : placed) {
    t->value->as<Tensor>().place(static_cast<char*>(arena_.get()) + blocks[b].offset,
                                 static_cast<size_t>(blocks[b].bytes), arena_);
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
