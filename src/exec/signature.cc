#include "exec/signature.h"

namespace anabranch {

Signature::Signature(const Value& value) : has_memory_(value.initialized()) {
  if (const auto* t = value.get<Tensor>()) {
    held_ = Held::kTensor;
    kind_ = t->kind();
    row_stride_ = t->row_stride();
    shape_ = t->shape();
    lod_ = t->lod_ref();
  } else if (const auto* rows = value.get<SelectedRows>()) {
    held_ = Held::kRows;
    kind_ = rows->value.kind();
    shape_ = rows->value.shape();
    if (shape_.rank()) shape_.set(0, rows->height);
  } else if (value.get<TensorArray>()) {
    held_ = Held::kArray;
  } else {
    held_ = value.empty() ? Held::kNothing : Held::kObject;
  }
}

bool Signature::operator==(const Signature& other) const {
  return held_ == other.held_ && has_memory_ == other.has_memory_ && kind_ == other.kind_ &&
         row_stride_ == other.row_stride_ && shape_ == other.shape_ && (lod_ == other.lod_ || same_lod(other.lod_));
}

}  // namespace anabranch
