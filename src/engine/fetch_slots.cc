#include "engine/fetch_slots.h"

#include "core/host_copy.h"
#include "core/row_locks.h"

namespace anabranch {

void FetchSlots::add(std::string name, std::vector<Value*> values, bool kept) {
  if (values.empty()) {
    throw Error(ErrorKind::kNotFound,
                fmt::format("fetched variable {} is computed by no op of the program and is not in the scope", name))
        .with_hint("check the name; a variable of a pruned or test program may have been removed with its op");
  }
  names_.push_back(std::move(name));
  values_.push_back(std::move(values));
  kept_.push_back(kept);
}

Fetched FetchSlots::collect(size_t fetch) const {
  Fetched slices;
  const RowLocks::HoldAll whole_rows(kept_[fetch] && RowLocks::shared());
  for (const Value* v : values_[fetch]) {
    if (const auto* array = v->get<TensorArray>()) {
      TensorArray& copy = std::get<TensorArray>(slices.emplace_back(TensorArray(array->size())));
      for (size_t i = 0; i < array->size(); ++i) copy[i].copy_from((*array)[i]);
      continue;
    }
    const auto* rows = v->get<SelectedRows>();
    const Tensor* t = rows ? &rows->value : v->get<Tensor>();
    AB_CHECK(t && t->initialized(), NotFound, "fetched variable {} holds no value", names_[fetch]);
    std::get<Tensor>(slices.emplace_back(Tensor())).copy_from(*t);
  }
  return slices;
}

const Tensor& FetchSlots::tensor(size_t fetch) const {
  const Tensor* t = values_[fetch][0]->get<Tensor>();
  AB_CHECK(t && t->initialized(), NotFound, "fetched variable {} holds no value", names_[fetch]);
  return *t;
}

double FetchSlots::mean(size_t fetch) const {
  Tensor copy;
  const Tensor& t = readable(tensor(fetch), &copy);
  return visit_dtype(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elems = t.data<T>();
    double sum = 0;
    for (int64_t i = 0; i < t.numel(); ++i) sum += static_cast<double>(elems[i]);
    return sum / static_cast<double>(t.numel());
  });
}

}  // namespace anabranch
