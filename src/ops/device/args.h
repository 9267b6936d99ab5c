// The arguments of device kernels, one struct per launch shape: the engine fills them and kernels read them, in two
// compilations. Plain data only: operands first, then extents and strides in elements (int64_t), then numeric
// attributes (double for every element type), then counts and flags (int32_t, in pairs). The dtype is not here: it is
// in the kernel's key. Values that run() or room() branch on must be here, never in device memory.
// A family adds its structs at the end of this file, or in args_<family>.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch::device {

inline constexpr int kMaxAxes = 9;  // the engine's kMaxRank
inline constexpr int kMaxNumbers = 4;

// Axes of a loop over several operands, outermost first; adjacent axes that every operand traverses without a gap are
// merged. A stride is 0 where an operand is broadcast.
template <int kOperands> struct Axes {
  int64_t extent[kMaxAxes];
  int64_t stride[kOperands][kMaxAxes];
  int32_t rank;
  int32_t reserved;

  // The offset in operand k of element i, counted with the last axis fastest.
  AB_HD int64_t offset(int k, int64_t i) const {
    int64_t at = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += i % extent[axis] * stride[k][axis];
      i /= extent[axis];
    }
    return at;
  }
  AB_HD int64_t count() const {
    int64_t n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= extent[axis];
    return n;
  }
};

// "map/...": y[i] = f(x[i]).
struct MapArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t n;
  double p[kMaxNumbers];
};

// "map_grad/...": dx[i] = f'(x[i], y[i], dy[i]); x or y is missing if the function does not read it.
struct MapGradArgs {
  DeviceIn x, y, dy;
  DeviceOut dx;
  int64_t n;
  double p[kMaxNumbers];
};

// "binary/...", "compare/...": out = f(x, y), broadcast. Operands of axes: out, x, y.
struct BinaryArgs {
  DeviceIn x, y;
  DeviceOut out;
  Axes<3> axes;
  double p[kMaxNumbers];
};

// "binary_grad/...": dx and dy, each summed over the axes on which its operand was broadcast; either may be missing.
// Operands of axes: dout (and out), x, y.
struct BinaryGradArgs {
  DeviceIn x, y, out, dout;
  DeviceOut dx, dy;
  Axes<3> axes;
  double p[kMaxNumbers];
};

// "copy/...": out = x along strides, starting at the given first element of each. Operands of axes: out, x. The key's
// type is an unsigned integer of the element's size, or that of a fill value.
struct CopyArgs {
  DeviceIn x;
  DeviceOut out;
  int64_t out_first, x_first;
  Axes<2> axes;
  double value;
};

// "fold/...": y[o, i] = fold of x[o, :, i].
struct FoldArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t outer, width, inner;
  double p[kMaxNumbers];
};

// "rows/...": one row at a time. Each kernel documents the meaning of its operands and numbers.
struct RowArgs {
  DeviceIn x[4];
  DeviceOut y[3];
  FaultSink fault;
  int64_t rows, width;
  double p[kMaxNumbers];
  int32_t flags, axis;
};

// "index/...": gathers rows of `table` by ids, or adds to them. A row has `width` elements.
struct IndexArgs {
  DeviceIn x, ids;
  DeviceOut y;
  FaultSink fault;
  int64_t ids_count, height, width, padding;
  int32_t flags, reserved;
};

// "update/...": one parameter; states and further inputs of a rule are in the order in which its kernel lists them.
struct UpdateArgs {
  DeviceOut param, state[4];
  DeviceIn grad, rate, reads[4];
  int64_t n;
  double p[8];
  int32_t flags, reserved;
};

// "draw/...": number i of the stream (seed, stream, iterations, step, replica). The step, a uint32_t, is in device
// memory because it changes from run to run; if missing, `fixed_step`.
struct DrawArgs {
  DeviceIn x, step;
  DeviceOut y, mask;
  int64_t n;
  uint64_t seed, stream, iterations;  // iterations: of the enclosing loops, as in RandomKey
  double p[kMaxNumbers];
  uint32_t fixed_step, replica;
  int32_t flags, reserved;
};

// Descriptions that library calls are planned with.

// Epilogues of a product, applied in this order; for float32 and 16-bit floats.
enum GemmEpilogues : int32_t {
  kGemmBias = 1,  // adds one number to each column: a fourth operand, n elements of the product's type
  kGemmRelu = 2,
};

// "gemm": out = alpha * op(a) op(b) + beta * out, row-major, `batch` times with the given strides. Operands: a, b, out,
// bias. With an epilogue beta must be 0, and k more than 0.
struct GemmDesc {
  int64_t m, n, k, batch;
  int64_t row_a, row_b, row_out;           // elements from row to row as stored
  int64_t stride_a, stride_b, stride_out;  // from matrix to matrix
  double alpha, beta;
  int32_t transposed_a, transposed_b;
  int32_t dtype, epilogue;  // ab_dtype; GemmEpilogues
};

template <class T> inline constexpr bool is_plain_args = std::is_trivially_copyable_v<T>&& std::is_standard_layout_v<T>;
static_assert(is_plain_args<MapArgs> && is_plain_args<MapGradArgs> && is_plain_args<BinaryArgs> &&
              is_plain_args<BinaryGradArgs> && is_plain_args<CopyArgs> && is_plain_args<FoldArgs> &&
              is_plain_args<RowArgs> && is_plain_args<IndexArgs> && is_plain_args<UpdateArgs> &&
              is_plain_args<DrawArgs> && is_plain_args<GemmDesc>);
static_assert(sizeof(BinaryGradArgs) <= 4096);  // of a GPU's arguments

}  // namespace anabranch::device
