#include "engine/feed_slots.h"

namespace anabranch {

void FeedSlots::add(size_t replica, Value* value, bool keeps, Place needed) {
  if (slots_.size() <= replica) slots_.resize(replica + 1);
  slots_[replica].push_back({.value = value, .keeps = keeps, .needed = needed});
}

bool FeedSlots::bind(const Slices& feeds) {
  bool changed = false;
  for (size_t r = 0; r < slots_.size(); ++r) {
    for (size_t i = 0; i < slots_[r].size(); ++i) {
      Slot& slot = slots_[r][i];
      if (!slot.value) continue;
      const Tensor& fed = feeds[r][i];
      Tensor& t = slot.value->as<Tensor>();
      if (slot.keeps) {
        t.copy_from(fed, t.initialized() ? t.place() : Place());
      } else {
        // Devices copy from pinned memory, and from their own, by themselves.
        if (fed.place().on_host() || fed.place() == slot.needed) {
          t.view(const_cast<void*>(fed.raw()), fed.shape(), {fed.dtype(), fed.place()}, nullptr, fed.row_stride());
        } else {
          t.copy_from(fed, Place());
        }
        t.set_lod(fed.lod_ref());
      }
      const bool same_lod = slot.lod == fed.lod_ref() || (slot.lod && fed.lod_ref() && *slot.lod == *fed.lod_ref());
      if (slot.laid_out && slot.shape == fed.shape() && slot.dtype == fed.dtype() && same_lod) continue;
      slot.shape = fed.shape();
      slot.dtype = fed.dtype();
      slot.lod = fed.lod_ref();
      slot.laid_out = true;
      changed = true;
    }
  }
  return changed;
}

void FeedSlots::release() {
  for (auto& of_replica : slots_) {
    for (Slot& slot : of_replica) {
      if (slot.value && !slot.keeps) slot.value->as<Tensor>().release();
    }
  }
}

void FeedSlots::add_memory(const std::vector<std::string>& names, std::vector<MemoryUse>* out) const {
  for (size_t r = 0; r < slots_.size(); ++r) {
    for (size_t i = 0; i < slots_[r].size(); ++i) {
      const Slot& slot = slots_[r][i];
      if (slot.keeps || !slot.laid_out) continue;
      const auto bytes = slot.shape.numel() * static_cast<int64_t>(dtype_size(slot.dtype));
      out->push_back({names[i], static_cast<int>(r), MemoryUse::kFed, 0, bytes});
    }
  }
}

}  // namespace anabranch
