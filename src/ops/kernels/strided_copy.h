// Copies elements of any type between two strided views, for shape ops.
#pragma once
#include "ops/kernels/copy.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch {

// fn(pointer type) with an unsigned integer of the element's size.
template <class Fn> decltype(auto) visit_size(size_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1: return fn(TypeTag<uint8_t>{});
    case 2: return fn(TypeTag<uint16_t>{});
    case 4: return fn(TypeTag<uint32_t>{});
    default: return fn(TypeTag<uint64_t>{});
  }
}

namespace copy_detail {

// Two inner axes with stride 1 in the target and in the source, respectively: copied in squares that fit the cache.
template <class E>
void transpose_block(const E* from, int64_t from_row, E* to, int64_t to_row, int64_t rows, int64_t cols) {
  constexpr int64_t kSquare = 16;
  for (int64_t i = 0; i < rows; i += kSquare) {
    const int64_t i_end = std::min(rows, i + kSquare);
    for (int64_t j = 0; j < cols; j += kSquare) {
      const int64_t j_end = std::min(cols, j + kSquare);
      for (int64_t r = i; r < i_end; ++r) {
        for (int64_t s = j; s < j_end; ++s) to[r * to_row + s] = from[s * from_row + r];
      }
    }
  }
}

}  // namespace copy_detail

// loop: operand 0 is the target, 1 the source; offsets and strides count elements.
template <class E> void strided_copy(const KernelContext& c, const NdLoop<2>& loop, const E* from, E* to) {
  const int last = loop.rank() - 1;
  const bool square = last >= 1 && loop.strides(last)[0] == 1 && loop.strides(last - 1)[1] == 1;
  if (square) {
    const int64_t rows = loop.extent(last - 1), cols = loop.extent(last);
    NdLoop<2> blocks;
    for (int i = 0; i < last - 1; ++i) blocks.add_axis(loop.extent(i), loop.strides(i));
    // Slabs of rows are tasks, so one large matrix is split like many small ones.
    constexpr int64_t kSlab = 64;
    const int64_t slabs = (rows + kSlab - 1) / kSlab, to_row = loop.strides(last - 1)[0],
                  from_row = loop.strides(last)[1];
    const int64_t per_block = std::max<int64_t>(1, blocks.inner());
    c.parallel_each(blocks.total() * slabs, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, kSlab * cols)),
                    [&](int64_t k) {
                      const int64_t block = k / slabs, row = k % slabs * kSlab;
                      blocks.each_run(block / per_block, block / per_block + 1, [&](const auto& at) {
                        const auto step = blocks.inner_strides();
                        const int64_t i = block % per_block;
                        copy_detail::transpose_block(from + at[1] + i * step[1] + row, from_row,
                                                     to + at[0] + i * step[0] + row * to_row, to_row,
                                                     std::min(kSlab, rows - row), cols);
                      });
                    });
    return;
  }
  const auto step = loop.inner_strides();
  loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
    const E* source = from + at[1];
    E* target = to + at[0];
    if (step[0] == 1 && step[1] == 1) {
      std::memcpy(target, source, static_cast<size_t>(n) * sizeof(E));
    } else {
      for (int64_t i = 0; i < n; ++i) target[i * step[0]] = source[i * step[1]];
    }
  });
}

// Offsets are those of the first element of the loop.
inline void strided_copy(const KernelContext& c, const NdLoop<2>& loop, const Tensor& from, int64_t from_offset,
                         Tensor* to, int64_t to_offset) {
  AB_CHECK(from.dtype() == to->dtype(), Internal, "elements of {} are copied to {}", dtype_name(from.dtype()),
           dtype_name(to->dtype()));
  visit_size(dtype_size(from.dtype()), [&]<class E>(TypeTag<E>) {
    strided_copy(c, loop, static_cast<const E*>(from.raw()) + from_offset,
                 static_cast<E*>(to->mutable_raw()) + to_offset);
  });
}

// The loop of the inverse copy: swaps source and target.
inline NdLoop<2> turned(const NdLoop<2>& loop) {
  NdLoop<2> back;
  for (int i = 0; i < loop.rank(); ++i) back.add_axis(loop.extent(i), {loop.strides(i)[1], loop.strides(i)[0]});
  return back;
}

}  // namespace anabranch
