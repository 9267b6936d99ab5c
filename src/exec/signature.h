// Signature of a value for shape functions: kind, shape, dtype, LoD, whether there is memory and whether its rows are
// contiguous. While all values of a node keep their signatures, its shape function has the same result.
#pragma once
#include "core/value.h"

namespace anabranch {

class Signature {
 public:
  Signature() = default;
  explicit Signature(const Value& value);
  bool is_that_of(const Value& value) const {
    const Tensor* t = value.get<Tensor>();
    if (!t || held_ != Held::kTensor) [[unlikely]]
      return is_that_of_no_tensor(value);
    return has_memory_ == t->initialized() && row_stride_ == t->row_stride() && kind_ == t->kind() &&
           shape_ == t->shape() && (lod_ == t->lod_ref() || same_lod(t->lod_ref()));
  }
  bool operator==(const Signature& other) const;
  // Arrays and objects: shape functions depend on more than a signature.
  bool is_opaque() const { return held_ == Held::kArray || held_ == Held::kObject; }

 private:
  enum class Held : char { kUnseen, kNothing, kTensor, kRows, kArray, kObject };
  bool is_that_of_no_tensor(const Value& value) const { return *this == Signature(value); }
  bool same_lod(const LoDRef& lod) const { return lod_ && lod && *lod_ == *lod; }

  Held held_ = Held::kUnseen;
  bool has_memory_ = false;
  Kind kind_;
  int64_t row_stride_ = 0;
  Shape shape_;  // of sparse rows: [height, ...]
  LoDRef lod_;
};

}  // namespace anabranch
