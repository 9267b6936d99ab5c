// A typed, dense block of rows: shape, dtype, memory, and the LoD that groups its rows. Copying a Tensor shares the
// memory. Memory only grows: resize() within capacity moves nothing, so a steady step allocates nothing.
// A tensor may be a row-strided view (row i starts row_stride elements after row i-1); kernels that do not declare
// support for views get contiguous tensors only (opdef/runtime.cc refuses others). Not thread-safe.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/dtype.h"
#include "core/lod.h"
#include "core/shape.h"
#include "device/place.h"

namespace anabranch {

// Bytes in live buffers of this process, for memory reports and tests.
int64_t resident_buffer_bytes();
// Memory for tensors: aligned to a cache line, in huge pages if it is large; on a device if that is the place.
// ResourceExhausted if there is none.
std::shared_ptr<void> allocate_buffer(size_t bytes, Place place = {});

// Element type and location: eight bytes, compared as one integer.
struct Kind {
  DType dtype = DType::kFloat32;
  Place place = {};
  // NOLINTNEXTLINE(google-explicit-constructor): a dtype alone means memory of the CPU
  constexpr Kind(DType d = DType::kFloat32, Place p = {}) : dtype(d), place(p) {}
  bool operator==(const Kind& other) const { return word() == other.word(); }

 private:
  uint64_t word() const { return std::bit_cast<uint64_t>(*this); }
};
static_assert(sizeof(Kind) == 8);

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Shape& shape, Kind kind) { resize(shape, kind); }
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept { swap(other); }  // a moved-from tensor holds nothing
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    swap(taken);
    return *this;
  }
  void swap(Tensor& other) noexcept;

  bool initialized() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return kind_.dtype; }
  Place place() const { return kind_.place; }
  Kind kind() const { return kind_; }
  int64_t numel() const { return numel_; }
  int64_t rows() const { return shape_.rank() ? shape_[0] : 0; }
  int64_t row_elems() const { return shape_.numel(1, shape_.rank()); }
  int64_t row_stride() const { return row_stride_; }  // elements between the starts of two rows
  bool contiguous() const { return row_stride_ == row_elems() || rows() <= 1; }
  size_t bytes() const { return static_cast<size_t>(numel_) * dtype_size(kind_.dtype); }

  // Gives the tensor this shape, dtype and place; the contents are unspecified if the memory moved.
  void resize(const Shape& shape, Kind kind);
  // Views memory that its owner keeps alive (owner may be null: the caller guarantees it).
  void view(void* data, const Shape& shape, Kind kind, std::shared_ptr<void> owner, int64_t row_stride = 0);
  // Same memory under another shape with equally many elements. Contiguous tensors only.
  Tensor reshaped(const Shape& shape) const;
  // Rows [begin, end), sharing memory, without LoD.
  Tensor row_range(int64_t begin, int64_t end) const;
  // Adopts this memory, of which `owner` keeps capacity_bytes alive: shape and dtype stay, the contents are what the
  // memory holds. A resize() beyond the capacity abandons it.
  void place(void* data, size_t capacity_bytes, std::shared_ptr<void> owner);
  // Whether the memory is shared with another owner.
  bool is_shared() const { return owner_.use_count() > 1; }
  // Frees the memory; shape and dtype stay.
  void release();
  // Copies shape, dtype, LoD and elements (through strides), from wherever they are to this place.
  void copy_from(const Tensor& other, Place to = {});

  template <class T> const T* data() const {
    check_dtype(dtype_of<T>);
    return static_cast<const T*>(data_);
  }
  template <class T> T* mutable_data() {
    check_dtype(dtype_of<T>);
    return static_cast<T*>(data_);
  }
  // Likewise of a dtype that is known while the program runs.
  const void* data(DType dtype) const {
    check_dtype(dtype);
    return data_;
  }
  void* mutable_data(DType dtype) {
    check_dtype(dtype);
    return data_;
  }
  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }

  const LoDRef& lod_ref() const { return lod_; }
  const LoD& lod() const;                              // empty if there are no sequences
  void set_lod(LoDRef lod) { lod_ = std::move(lod); }  // unchecked: infer functions derive it
  void set_lod(LoD lod);                               // checked against rows()

 private:
  void check_dtype(DType needed) const {
    if (kind_.dtype != needed) [[unlikely]]
      wrong_dtype(needed);
  }
  [[noreturn]] void wrong_dtype(DType needed) const;
  void copy_rows(const Tensor& other);

  // The members that kernels read come last, in one cache line (core/value.h).
  std::shared_ptr<void> owner_;
  LoDRef lod_;
  size_t capacity_bytes_ = 0;  // 0 for views: they are never written past nor grown in place
  Shape shape_{0};
  int64_t row_stride_ = 0;
  Kind kind_;
  int64_t numel_ = 0;
  void* data_ = nullptr;
};

}  // namespace anabranch
