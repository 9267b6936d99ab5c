#include "exec/block_frame.h"

#include <cstring>

namespace anabranch {

void ShapeNote::take(const Value& value) {
  held_ = Held::kNothing;
  lod_ = nullptr;
  if (const auto* t = value.get<Tensor>(); t && t->initialized()) {
    held_ = Held::kTensor;
    dtype_ = t->dtype();
    shape_ = t->shape();
    lod_ = t->lod_ref();
  } else if (const auto* rows = value.get<SelectedRows>(); rows && rows->value.shape().rank() > 0) {
    held_ = Held::kTensor;
    dtype_ = rows->value.dtype();
    shape_ = rows->value.shape();
    shape_.set(0, rows->height);
  } else if (value.get<TensorArray>()) {
    held_ = Held::kArray;
  }
}

void ShapeNote::make_zeros(Value& out) const {
  if (held_ == Held::kNothing) return out.clear();
  if (held_ == Held::kArray) return out.as<TensorArray>().clear();
  Tensor& zeros = out.as<Tensor>();
  zeros.resize(shape_, dtype_);
  zeros.set_lod(lod_);
  std::memset(zeros.mutable_raw(), 0, zeros.bytes());
}

}  // namespace anabranch
