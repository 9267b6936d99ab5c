#include "data/schema.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace anabranch::data {

void Schema::check() const {
  std::set<std::string> names;
  for (const Slot& slot : slots) {
    AB_CHECK(slot.dtype == DType::kInt64 || slot.dtype == DType::kFloat32, InvalidArgument,
             "slot {} has dtype {}: slots hold int64 or float32", slot.name, dtype_name(slot.dtype));
    AB_CHECK(names.insert(slot.name).second, InvalidArgument, "two slots have the name {}", slot.name);
    const auto unknown = std::count(slot.shape.begin(), slot.shape.end(), kUnknown);
    AB_CHECK(!slot.dense || unknown <= 1, InvalidArgument, "slot {}: shape {} has more than one unknown extent",
             slot.name, slot.shape.str());
    AB_CHECK(!slot.dense || unknown == 1 || slot.shape.numel() > 0, InvalidArgument, "slot {}: shape {} has no values",
             slot.name, slot.shape.str());
  }
  AB_CHECK(std::any_of(slots.begin(), slots.end(), [](const Slot& s) { return s.used; }), InvalidArgument,
           "the data set has no slots: set_use_var was not called, or with an empty list");
}

std::vector<const Slot*> Schema::used() const {
  std::vector<const Slot*> found;
  for (const Slot& slot : slots) {
    if (slot.used) found.push_back(&slot);
  }
  return found;
}

}  // namespace anabranch::data
