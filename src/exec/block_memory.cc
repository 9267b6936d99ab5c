#include "exec/block_memory.h"

#include <algorithm>

namespace anabranch {
namespace {

// Its own memory or a part of the arena; not a view created by an op.
Tensor* own_tensor(const BlockFrame& frame, size_t place) {
  Tensor* t = frame.places[place]->get<Tensor>();
  return t && t->initialized() && t->contiguous() ? t : nullptr;
}

}  // namespace

bool BlockMemory::outgrown(const BlockFrame& frame) const {
  const auto* begin = static_cast<const char*>(arena_.get());
  const auto is_outside = [&](size_t place) {
    const Tensor* t = own_tensor(frame, place);
    const auto* at = t ? static_cast<const char*>(t->raw()) : nullptr;
    return t && t->bytes() > 0 && !(begin && at >= begin && at < begin + arena_bytes_);
  };
  return std::any_of(uses_.begin(), uses_.end(),
                     [&](const Use& use) { return std::any_of(use.places.begin(), use.places.end(), is_outside); });
}

// Frees the memory of the iteration; returns whether all of it fits into the current layout.
bool BlockMemory::release(BlockFrame& frame) {
  bool fits = true;
  for (size_t i = 0; i < uses_.size(); ++i) {
    int64_t bytes = 0;
    for (const size_t place : uses_[i].places) {
      Tensor* t = own_tensor(frame, place);
      if (!t) continue;
      bytes = std::max<int64_t>({bytes, static_cast<int64_t>(t->bytes()), 1});
      t->release();
    }
    if (bytes <= needed_[i]) continue;
    fits = false;
    needed_[i] = needed_[i] ? bytes + bytes / 4 : bytes;  // shapes that change are likely to change again
  }
  return fits;
}

void BlockMemory::settle(BlockFrame& frame) {
  if (!outgrown(frame)) return;
  const bool fits = release(frame);
  if (!fits || !arena_) {
    std::vector<Lifetime> lives;
    for (size_t i = 0; i < uses_.size(); ++i) lives.push_back({needed_[i], uses_[i].first, uses_[i].last});
    layout_ = lay_out_memory(lives, 0);
    if (layout_.bytes > arena_bytes_) {
      arena_ = nullptr;
      arena_bytes_ = 0;
      arena_ = allocate_buffer(static_cast<size_t>(layout_.bytes));
      arena_bytes_ = layout_.bytes;
    }
    ++arenas_;
  }
  place(frame);
}

void BlockMemory::place(BlockFrame& frame) const {
  frame.lent = arenas_;
  for (size_t i = 0; arena_ && i < uses_.size(); ++i) {
    if (needed_[i] == 0) continue;
    for (const size_t place : uses_[i].places) {
      Value& value = *frame.places[place];
      if (!value.empty() && !value.get<Tensor>()) continue;
      auto& t = value.as<Tensor>();
      const bool fits = t.contiguous() && static_cast<int64_t>(t.bytes()) <= layout_.capacities[i];
      if (!fits) continue;  // a view, or from an iteration that failed
      t.place(static_cast<char*>(arena_.get()) + layout_.offsets[i], static_cast<size_t>(layout_.capacities[i]),
              arena_);
    }
  }
}

void BlockMemory::drop() {
  layout_ = {};
  needed_.assign(uses_.size(), 0);
  arena_ = nullptr;
  arena_bytes_ = 0;
}

}  // namespace anabranch
