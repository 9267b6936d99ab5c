// Splits one matrix product into chunks for the workers: by its dimensions, never by the number of workers.
#pragma once
#include <algorithm>

#include "ops/kernels/gemm.h"
#include "ops/kernels/plain_product.h"

namespace anabranch {

// One row times a row-major matrix at least a vector wide: every element is used once, so the product is bound by
// reading the matrix.
inline bool is_row_product(const GemmDims& d) { return d.m == 1 && d.n >= 16 && !d.trans_b; }

// In multiply-adds of a product whose operands are reused many times.
inline double work_of(const GemmDims& d) {
  constexpr double kRead = 8;  // an element from the second or third cache
  const double work = static_cast<double>(d.m) * static_cast<double>(d.n) * static_cast<double>(d.k);
  return is_row_product(d) ? kRead * work : work;
}

struct Cut {
  // A product is split along the longer side of C, or along the depth: then each chunk computes partial sums.
  enum Along { kRows, kColumns, kDepth };
  Along along;
  int64_t step, count;

  // In multiply-adds.
  static constexpr double kChunkWork = 1 << 21;  // large chunks: each packs the operand that it shares
  static constexpr double kWorthTwo = 1 << 19;   // from here on two workers are faster than one: about 5 us
  static constexpr double kChunkLength = 64;     // rows or columns: shorter ones spend too much on packing
  static constexpr double kMaxChunks = 16;

  Cut(const GemmDims& d, bool by_depth) : along(by_depth ? kDepth : d.m >= d.n ? kRows : kColumns) {
    const int64_t length = length_of(d);
    const int64_t needed = by_depth ? depth_chunks(d) : chunks(d, length);
    step = ((length + needed - 1) / needed + 15) / 16 * 16;  // whole blocks of the library's inner kernels
    count = (length + step - 1) / step;
  }

  int64_t length_of(const GemmDims& d) const { return along == kRows ? d.m : along == kColumns ? d.n : d.k; }

  static int64_t chunks(const GemmDims& d, int64_t length) {
    const double work = work_of(d);
    const double most = std::clamp(static_cast<double>(length) / kChunkLength, 2.0, kMaxChunks);
    return static_cast<int64_t>(std::clamp(work / kChunkWork, work < kWorthTwo ? 1.0 : 2.0, most));
  }
  // Each chunk keeps a matrix of m n elements.
  static int64_t depth_chunks(const GemmDims& d) {
    const double work = static_cast<double>(d.m) * static_cast<double>(d.n) * static_cast<double>(d.k);
    return static_cast<int64_t>(std::clamp(work / kWorthTwo, 2.0, d.m * d.n > (1 << 18) ? 4.0 : 8.0));
  }
};

// Whether to split long sums: chunks of rows or columns each pack the whole shared operand, which for the gradient of a
// weight over many rows is far larger than the matrices of partial sums.
inline bool sums_in_chunks(const GemmDims& d) {
  const int64_t length = std::max(d.m, d.n);
  if (d.batch != 1 || d.k < 2 * length) return false;
  const auto packed =
      static_cast<double>(Cut::chunks(d, length)) * static_cast<double>(std::min(d.m, d.n)) * static_cast<double>(d.k);
  const auto kept = static_cast<double>(Cut::depth_chunks(d)) * 2.0 * static_cast<double>(d.m * d.n);
  return Cut::chunks(d, length) > 1 && packed > 2 * kept;
}

inline GemmDims chunk_dims(const Cut& cut, int64_t i, GemmDims d) {
  int64_t& length = cut.along == Cut::kRows ? d.m : cut.along == Cut::kColumns ? d.n : d.k;
  length = std::min(cut.step, length - i * cut.step);
  return d;
}

template <class In, class T>
Operands<In, T> chunk_operands(const Cut& cut, int64_t i, const GemmDims& d, const Operands<In, T>& p) {
  const int64_t from = i * cut.step, row = from * d.ld_b, column = from;
  const In *a = p.a + from * (d.trans_a ? 1 : d.ld_a), *b = p.b + (d.trans_b ? row : column);
  switch (cut.along) {
    case Cut::kRows: return {a, p.b, p.out + from * d.ld_c};
    case Cut::kColumns: return {p.a, b, p.out + from};
    case Cut::kDepth: break;
  }
  return {p.a + from * (d.trans_a ? d.ld_a : 1), p.b + (d.trans_b ? column : row), p.out};
}

}  // namespace anabranch
