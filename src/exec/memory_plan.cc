#include "exec/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace anabranch {
namespace {

constexpr int64_t kLine = 64;
constexpr int kParallelGap =
    16;  // nodes between the last user of a block and its next writer, when nodes run in parallel

int64_t rounded(int64_t bytes, int64_t line = kLine) { return (std::max<int64_t>(bytes, 1) + line - 1) / line * line; }

struct Block {
  int64_t bytes = 0, offset = 0;
  int occupant = -1, last = -1;
};

constexpr int kLargeGap = 2;

// The best free block: the smallest that is large enough, else the largest.
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

// Beyond this number of blocks each temporary gets a new one, so that placement stays linear in their number.
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

namespace {

constexpr int64_t kDeviceLine = 256;  // alignment of device memory

char nowhere;  // address of device temporaries that have a shape and no memory yet

bool apart(const Temporary& t) { return t.place.kind != PlaceKind::kCpu; }

// A tensor that a shape function has given a shape. Rank 0 does not occur.
bool shaped(const Tensor* t) { return t && (t->shape().rank() > 0 || t->raw() != &nowhere); }

}  // namespace

MemoryPlan::Shaping::Shaping(const std::vector<Temporary>& temporaries) : temporaries_(temporaries) {
  for (const Temporary& temporary : temporaries) {
    if (!apart(temporary)) continue;
    Tensor& t = temporary.value->as<Tensor>();
    t.view(&nowhere, Shape(), {t.dtype(), temporary.place}, nullptr);
    t.place(&nowhere, SIZE_MAX, nullptr);
  }
}

MemoryPlan::Shaping::~Shaping() {
  for (const Temporary& temporary : temporaries_) {
    const Tensor* t = apart(temporary) ? temporary.value->get<Tensor>() : nullptr;
    if (t && t->raw() == &nowhere) temporary.value->as<Tensor>() = Tensor();
  }
}

MemoryPlan::Arena& MemoryPlan::arena_at(Place place) {
  for (Arena& a : arenas_) {
    if (a.place == place) return a;
  }
  return arenas_.emplace_back(Arena{place, 0, nullptr});
}

// A temporary aliases another one of equal size.
std::vector<MemoryPlan::Pile> MemoryPlan::piles_at(Place place, const std::vector<Temporary>& temporaries) {
  const auto lies = [&](size_t i) {  // an op may leave a named output without a value
    return temporaries[i].place == place && shaped(temporaries[i].value->get<Tensor>());
  };
  const auto bytes_of = [&](size_t i) { return static_cast<int64_t>(temporaries[i].value->tensor().bytes()); };
  const auto bottom = [&](size_t i) {
    for (int below = temporaries[i].within; below >= 0; below = temporaries[i].within) {
      const auto at = static_cast<size_t>(below);
      if (!lies(at) || bytes_of(at) != bytes_of(i)) break;
      i = at;
    }
    return i;
  };
  std::vector<Pile> piles;
  std::map<size_t, size_t> pile_of;  // by the first one
  for (size_t i = 0; i < temporaries.size(); ++i) {
    if (!lies(i)) continue;
    const size_t first = bottom(i);
    const auto [it, fresh] = pile_of.try_emplace(first, piles.size());
    if (fresh) piles.push_back({{first}, {bytes_of(first), temporaries[first].first, temporaries[first].last}});
    Pile& pile = piles[it->second];
    pile.life.last = std::max(pile.life.last, temporaries[i].last);
    if (i != first) pile.held.push_back(i);
  }
  return piles;
}

void MemoryPlan::fill_arena(Place place, bool parallel, const std::vector<Temporary>& temporaries,
                            std::vector<std::pair<int, int>>* edges) {
  const bool on_cpu = place.kind == PlaceKind::kCpu, ordered = parallel || !on_cpu;
  Arena& arena = arena_at(place);
  // A temporary that was placed again has a new shape: leave room, because the next ones are likely to differ, too.
  const bool again = arena.memory != nullptr;
  const std::vector<Pile> piles = piles_at(place, temporaries);
  std::vector<Lifetime> lifetimes;
  for (const Pile& pile : piles) {
    const int64_t own = pile.life.bytes, needed = again ? own + own / 4 : own, line = on_cpu ? kLine : kDeviceLine;
    lifetimes.push_back({rounded(needed, line), pile.life.first, pile.life.last});
    unshared_bytes_ += rounded(needed, line) * static_cast<int64_t>(pile.held.size() - 1);
  }
  const MemoryLayout layout = lay_out_memory(lifetimes, on_cpu && parallel ? kParallelGap : 0);
  unshared_bytes_ += layout.unshared_bytes;
  placing_ = place;
  if (!on_cpu) arena = {place, 0, nullptr};  // it is empty: a device need not have room for both
  arena.memory = allocate_buffer(static_cast<size_t>(std::max<int64_t>(layout.bytes, 1)), place);
  arena.bytes = layout.bytes;
  for (size_t k = 0; k < piles.size(); ++k) {
    const Block block = {static_cast<char*>(arena.memory.get()) + layout.offsets[k],
                         static_cast<size_t>(layout.capacities[k])};
    for (const size_t i : piles[k].held) {
      blocks_[i] = block;
      temporaries[i].value->as<Tensor>().place(block.begin, block.capacity, arena.memory);
    }
    if (!ordered || layout.after[k] < 0) continue;
    for (const size_t before : piles[static_cast<size_t>(layout.after[k])].held) {
      for (const int user : temporaries[before].users) edges->emplace_back(user, piles[k].life.first);
    }
  }
}

std::vector<std::pair<int, int>> MemoryPlan::place(const std::vector<Temporary>& temporaries, bool parallel) {
  std::vector<Place> places{Place()};
  for (const Temporary& t : temporaries) {
    if (std::find(places.begin(), places.end(), t.place) == places.end()) places.push_back(t.place);
  }
  std::vector<std::pair<int, int>> edges;
  blocks_.assign(temporaries.size(), {});
  unshared_bytes_ = 0;
  for (const Place place : places) fill_arena(place, parallel, temporaries, &edges);
  return edges;
}

int64_t MemoryPlan::bytes() const {
  int64_t bytes = 0;
  for (const Arena& a : arenas_) bytes += a.bytes;
  return bytes;
}

int64_t MemoryPlan::bytes(Place place) const {
  int64_t bytes = 0;
  for (const Arena& a : arenas_) bytes += a.place == place ? a.bytes : 0;
  return bytes;
}

bool MemoryPlan::outgrown(const std::vector<Temporary>& temporaries) const {
  for (size_t i = 0; i < temporaries.size(); ++i) {
    const Tensor* t = temporaries[i].value->get<Tensor>();
    if (!shaped(t)) continue;
    if (apart(temporaries[i])) {
      if (blocks_.empty() || !blocks_[i].begin || blocks_[i].capacity < t->bytes()) return true;
    } else if (t->bytes() > 0 && !holds(t->raw())) {
      return true;
    }
  }
  return false;
}

void MemoryPlan::take_blocks(const std::vector<Temporary>& temporaries) const {
  for (size_t i = 0; i < temporaries.size(); ++i) {
    const Tensor* t = temporaries[i].value->get<Tensor>();
    if (!apart(temporaries[i]) || !shaped(t)) continue;
    const auto at =
        std::find_if(arenas_.begin(), arenas_.end(), [&](auto& a) { return a.place == temporaries[i].place; });
    temporaries[i].value->as<Tensor>().place(blocks_[i].begin, blocks_[i].capacity, at->memory);
  }
}

void MemoryPlan::drop() {
  arenas_.clear();
  blocks_.clear();
  unshared_bytes_ = 0;
}

}  // namespace anabranch
