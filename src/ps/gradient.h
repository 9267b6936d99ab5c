// The part of a gradient that a worker sends: all of it, or some of its rows. A view of the sender's memory.
#pragma once
#include <cstdint>
#include <span>

#include "ps/names.h"

namespace anabranch::ps {

struct Gradient {
  Gradient(const Tensor& whole) : dense(&whole) {}  // implicit: most gradients are tensors
  Gradient(std::span<const int64_t> rows, int64_t n, const void* from, DType type, int64_t row_elems)
      : ids(rows), height(n), values(from), dtype(type), width(row_elems) {}

  void add_to(Message* message, uint32_t variable) const {
    dense ? message->add(variable, *dense) : message->add_rows(variable, ids, height, values, dtype, width);
  }

  const Tensor* dense = nullptr;  // null: rows
  std::span<const int64_t> ids;
  int64_t height = 0;
  const void* values = nullptr;
  DType dtype = DType::kFloat32;
  int64_t width = 0;
};

}  // namespace anabranch::ps
