#include "engine/memory_use.h"

#include "sparse/growable_table.h"

namespace anabranch {

void add_memory(const Value& value, const std::string& name, int replica, MemoryUse::Kind kind,
                std::vector<MemoryUse>* out) {
  const auto add = [&](const void* data, size_t bytes, Place place = {}) {
    if (data && bytes) {
      out->push_back({name, replica, kind, reinterpret_cast<uintptr_t>(data), static_cast<int64_t>(bytes), place});
    }
  };
  if (const auto* t = value.get<Tensor>()) {
    add(t->raw(), t->bytes(), t->place());
  } else if (const auto* rows = value.get<SelectedRows>()) {
    add(rows->value.raw(), rows->value.bytes(), rows->value.place());
    add(rows->rows.data(), rows->rows.size() * sizeof(int64_t));
  } else if (const auto* array = value.get<TensorArray>()) {
    for (const Tensor& t : *array) add(t.raw(), t.bytes());
  } else if (const auto table = sparse::GrowableTable::of(value)) {
    table->each_chunk([&](const void* data, int64_t bytes) { add(data, static_cast<size_t>(bytes)); });
  }
}

std::vector<MemoryUse> memory_of(const Scope& scope) {
  std::vector<MemoryUse> out;
  for (const std::string& name : scope.local_names()) {
    if (const auto value = scope.find_shared_local(name)) add_memory(*value, name, 0, MemoryUse::kKept, &out);
  }
  return out;
}

}  // namespace anabranch
