// Sparse rows (core/row_blocks.h) as operands of kernels, and operations that several ops share.
#pragma once
#include "core/row_blocks.h"
#include "ops/device/launch_index.h"

namespace anabranch::device {

inline DeviceIn ids_of(const SelectedRows& rows) {
  return {static_cast<const char*>(rows.value.raw()) + ids_in_block(rows),
          static_cast<size_t>(rows.value.rows()) * sizeof(int64_t)};
}
inline DeviceOut ids_of(SelectedRows& rows) {
  return {static_cast<char*>(rows.value.mutable_raw()) + ids_in_block(rows),
          static_cast<size_t>(rows.value.rows()) * sizeof(int64_t)};
}

inline void lay_out_rows(const DeviceContext& c, int64_t height, const Shape& values, DType dtype, SelectedRows* rows) {
  lay_out_block(rows, height, values, {dtype, Place::cuda(c.device())});
}

inline void copy_memory(const DeviceContext& c, void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Shape shape{static_cast<int64_t>(bytes)};
  const Kind kind(DType::kUInt8, Place::cuda(c.device()));
  Tensor target, source;
  target.view(to, shape, kind, nullptr);
  source.view(const_cast<void*>(from), shape, kind, nullptr);
  c.copy(target, source);
}

// The same ids with other values, which are computed afterwards.
inline void same_rows(const DeviceContext& c, const SelectedRows& from, SelectedRows* to) {
  if (to == &from) return;
  lay_out_rows(c, from.height, from.value.shape(), from.value.dtype(), to);
  copy_memory(c, ids_of(*to).address, ids_of(from).address, ids_of(from).bytes);
}

inline void copy_rows(const DeviceContext& c, const SelectedRows& from, SelectedRows* to) {
  if (to == &from) return;
  lay_out_rows(c, from.height, from.value.shape(), from.value.dtype(), to);
  copy_memory(c, to->value.mutable_raw(), from.value.raw(), block_bytes(from));
}

// The rows of all parts, part(i) for each i of [0, count), one after another. `to` must not be one of them.
template <class Part> void join_rows(const DeviceContext& c, int count, Part&& part, SelectedRows* to) {
  Shape shape = part(0).value.shape();
  AB_CHECK(shape.rank() > 0, ShapeMismatch, "sparse rows must have at least one axis to be added up");
  int64_t n = 0;
  for (int i = 0; i < count; ++i) {
    const Shape& own = part(i).value.shape();
    AB_CHECK(own.rank() == shape.rank() && own.slice(1, own.rank()) == shape.slice(1, shape.rank()), ShapeMismatch,
             "sparse rows must have the same shape to be added up, got {} and {}", shape.str(), own.str());
    AB_CHECK(&part(i) != to, Unsupported, "sparse rows cannot be added up in place");
    n += own[0];
  }
  shape.set(0, n);
  lay_out_rows(c, part(0).height, shape, part(0).value.dtype(), to);
  auto* values = static_cast<char*>(to->value.mutable_raw());
  auto* ids = static_cast<char*>(ids_of(*to).address);
  for (int i = 0; i < count; ++i) {
    const SelectedRows& from = part(i);
    copy_memory(c, values, from.value.raw(), from.value.bytes());
    copy_memory(c, ids, ids_of(from).address, ids_of(from).bytes);
    values += from.value.bytes();
    ids += ids_of(from).bytes;
  }
}

// Adds up the rows of equal ids; distinct ids in ascending order, followed by padding.
template <class T> class MergeRows {
 public:
  void operator()(const DeviceContext& c, const SelectedRows& from, SelectedRows* to) {
    if (to != &from) return merge(c, from, to);
    merge(c, from, &scratch_);
    copy_rows(c, scratch_, to);
  }

 private:
  void merge(const DeviceContext& c, const SelectedRows& from, SelectedRows* to) {
    lay_out_rows(c, from.height, from.value.shape(), dtype_of<T>, to);
    MergeRowsArgs a{};
    a.x = operand(from.value);
    a.y = operand(to->value);
    a.rows_out = ids_of(*to);
    a.groups = groups_.of(c, ids_of(from), from.height);
    a.n = from.value.rows();
    a.width = from.value.row_elems();
    c.launch(kernel_, a);
  }

  ab_kernel kernel_ = kernel_of<T>("merge_rows");
  GroupedIds groups_;
  SelectedRows scratch_;
};

// y += the rows, after adding up those of equal ids, as if they were a dense tensor.
template <class T> class AddRows {
 public:
  void operator()(const DeviceContext& c, const SelectedRows& rows, Tensor& y) {
    ScatterArgs a{};
    a.x = operand(rows.value);
    a.y = operand(y);
    a.groups = groups_.of(c, ids_of(rows), y.rows());
    a.n = rows.value.rows();
    a.width = y.row_elems();
    AB_CHECK(rows.value.numel() == a.n * a.width, ShapeMismatch,
             "sparse rows must have the row width of the tensor that they are added to, got rows {} and tensor {}",
             rows.value.shape().str(), y.shape().str());
    a.skipped = -1;
    a.mode = kScatterAddSum;
    c.launch(kernel_, a);
  }

 private:
  ab_kernel kernel_ = kernel_of<T>("scatter");
  GroupedIds groups_;
};

}  // namespace anabranch::device
