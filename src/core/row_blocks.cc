#include "core/row_blocks.h"

#include <algorithm>
#include <cstring>

namespace anabranch {

namespace {

// Offset of the ids, after this number of bytes of values.
size_t ids_after(size_t bytes) { return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t); }

}  // namespace

size_t ids_in_block(const SelectedRows& rows) { return ids_after(rows.value.bytes()); }

size_t block_bytes(const SelectedRows& rows) {
  return ids_in_block(rows) + static_cast<size_t>(rows.value.rows()) * sizeof(int64_t);
}

void lay_out_block(SelectedRows* rows, int64_t height, const Shape& values, Kind kind) {
  AB_CHECK(kind.place.kind != PlaceKind::kCpu, Internal, "sparse rows of the CPU are in no block");
  rows->height = height;
  rows->rows.clear();
  const size_t of_values = static_cast<size_t>(values.numel()) * dtype_size(kind.dtype);
  const size_t bytes = ids_after(of_values) + static_cast<size_t>(values[0]) * sizeof(int64_t);
  // A tensor keeps the capacity it has.
  rows->value.resize(Shape{static_cast<int64_t>(bytes)}, {DType::kUInt8, kind.place});
  rows->value.resize(values, kind);
}

void put_into_block(const SelectedRows& from, SelectedRows* to) {
  check_rows(from);
  for (const int64_t id : from.rows) {
    AB_CHECK(id >= 0 && (id < from.height || from.height < 0), InvalidArgument,
             "sparse rows must be rows of a table of {} rows, got row {}", from.height, id);
  }
  lay_out_block(to, from.height, from.value.shape(), {from.value.dtype(), Place::pinned()});
  auto* block = static_cast<char*>(to->value.mutable_raw());
  std::copy_n(static_cast<const char*>(from.value.raw()), from.value.bytes(), block);
  std::copy(from.rows.begin(), from.rows.end(), reinterpret_cast<int64_t*>(block + ids_in_block(*to)));
}

void take_from_block(const SelectedRows& from, SelectedRows* to) {
  const auto* block = static_cast<const char*>(from.value.raw());
  const auto* ids = reinterpret_cast<const int64_t*>(block + ids_in_block(from));
  const int64_t n = from.value.rows();
  const size_t row_bytes = static_cast<size_t>(from.value.row_elems()) * dtype_size(from.value.dtype());
  Shape shape = from.value.shape();
  shape.set(0, n - std::count(ids, ids + n, -1));
  to->height = from.height;
  to->rows.clear();
  to->rows.reserve(static_cast<size_t>(shape[0]));
  to->value.resize(shape, from.value.dtype());
  auto* values = static_cast<char*>(to->value.mutable_raw());
  for (int64_t k = 0; k < n; ++k, block += row_bytes) {
    if (ids[k] < 0) continue;
    to->rows.push_back(ids[k]);
    std::memcpy(values, block, row_bytes);
    values += row_bytes;
  }
}

}  // namespace anabranch
