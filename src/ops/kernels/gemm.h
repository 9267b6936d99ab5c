// Matrix product C = alpha * op(A) * op(B), row-major, op = identity or transpose, for a batch of matrices.
//
//   const auto gemm = std::make_shared<Gemm<T>>();                   // in the factory: one for each product of a
//   kernel return [=](KernelContext& c) { gemm->run(c, {.m = m, .n = n, .k = k, .trans_b = true}, a, b, out); };
//
// float32 runs in oneDNN, batches of small matrices in loops of this folder, and float64 in plain loops (oneDNN has
// none). Work is split by size over the idle workers of the context; an epilogue is applied to each chunk while it is
// in the cache. Primitives are made on the first use of a shape and kept, so a steady step allocates nothing here. C
// must not overlap A or B; k = 0 gives zeros. A Gemm belongs to one kernel: run() must not be called concurrently.
#pragma once
#include <cstdint>
#include <memory>

#include "opdef/kernel_context.h"
#include "ops/kernels/operand.h"

namespace anabranch {

struct GemmDims {
  int64_t m = 0, n = 0, k = 0;  // op(A) is [m, k], op(B) is [k, n], C is [m, n]
  bool trans_a = false, trans_b = false;
  int64_t batch = 1;
  // Elements from one matrix of the batch to the next; 0 for an operand means that all matrices share it.
  int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
  // Elements from one stored row to the next; 0 means dense.
  int64_t ld_a = 0, ld_b = 0, ld_c = 0;
  bool operator==(const GemmDims&) const = default;
};

// An epilogue of C: adds a row to each of its rows, then applies a function to each element. float32 only.
struct GemmEpilogue {
  const float* row = nullptr;                                    // of n elements; null for none
  void (*act)(const float* x, float* out, int64_t n) = nullptr;  // a loop of simd.h; null for none
};

template <class T> class Gemm {
 public:
  explicit Gemm(double alpha = 1.0, Operand operand = Operand::kFull);
  ~Gemm();
  void run(const KernelContext& c, const GemmDims& dims, const T* a, const T* b, T* out,
           const GemmEpilogue& epilogue = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// float32 products of one shape that the caller has split: run() may be called concurrently for different tasks, but
// not for the same task. prepare() makes the primitives of a shape.
class TaskGemm {
 public:
  explicit TaskGemm(double alpha = 1.0);
  ~TaskGemm();
  void prepare(const GemmDims& dims, int64_t tasks);  // of one matrix; tasks are numbered from 0
  void run(int64_t task, const float* a, const float* b, float* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class Gemm<float>;
extern template class Gemm<double>;

}  // namespace anabranch
