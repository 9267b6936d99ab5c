#include <cstring>

#include "engine/compiled_program.h"

namespace anabranch {
namespace {

Tensor join(const std::vector<const Tensor*>& parts, const std::string& name) {
  const Tensor& first = *parts[0];
  Shape shape = first.shape();
  int64_t rows = 0;
  LoD lod;
  for (const Tensor* p : parts) {
    bool fits =
        p->dtype() == first.dtype() && p->shape().rank() == shape.rank() && p->lod().size() == first.lod().size();
    for (int i = 1; fits && i < shape.rank(); ++i) fits = p->shape()[i] == shape[i];
    AB_CHECK(fits, InvalidArgument,
             "fetched variable {} cannot be joined over the replicas: {} {} with {} levels of "
             "LoD, and {} {} with {}; fetch it with return_merged=False",
             name, first.shape().str(), dtype_name(first.dtype()), first.lod().size(), p->shape().str(),
             dtype_name(p->dtype()), p->lod().size());
    rows += p->rows();
    if (p->lod_ref()) append_lod(&lod, p->lod());
  }
  shape.set(0, rows);
  Tensor joined(shape, first.dtype());
  char* to = static_cast<char*>(joined.mutable_raw());
  for (const Tensor* p : parts) {
    if (p->bytes()) std::memcpy(to, p->raw(), p->bytes());
    to += p->bytes();
  }
  if (!lod.empty()) joined.set_lod(std::move(lod));
  return joined;
}

}  // namespace

FetchedValue merge_fetched(const Fetched& slices, const std::string& name) {
  AB_CHECK(!slices.empty(), NotFound, "fetched variable {} exists on no replica that had work", name);
  if (slices.size() == 1) return slices[0];
  if (std::holds_alternative<Tensor>(slices[0])) {
    std::vector<const Tensor*> parts;
    for (const auto& p : slices) parts.push_back(&std::get<Tensor>(p));
    return join(parts, name);
  }
  TensorArray joined;
  const auto& first = std::get<TensorArray>(slices[0]);
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<const Tensor*> parts;
    for (const auto& p : slices) {
      const auto& array = std::get<TensorArray>(p);
      AB_CHECK(array.size() == first.size(), InvalidArgument,
               "fetched array {} has {} tensors on one replica, {} on "
               "another",
               name, first.size(), array.size());
      parts.push_back(&array[i]);
    }
    joined.push_back(join(parts, name));
  }
  return joined;
}

}  // namespace anabranch
