// Sums the columns of a matrix, to one sum each or to several of the same elements, which are read once. The order is
// that of fold_rows() for adjacent rows, independent of the number of columns per thread. A body:
//   using Wide = ...;                                       the type of partial sums
//   static constexpr int kPack, kSums, kAtOnce;             columns of a thread; sums of a column; rows read at once
//   struct Read;                                            kPack elements, and operands of their row
//   AB_HD Read read(int64_t row, int64_t first) const;      of the columns from `first` on
//   AB_HD void add(const Read& in, Wide (&sums)[kSums][kPack]) const;
//   AB_HD void put(int64_t column, const Wide (&totals)[kSums]) const;
#pragma once
#include "ops/device/fold_rows.h"

namespace anabranch::device {

template <class B> struct ColumnChunks {
  using Wide = typename B::Wide;
  static constexpr int kPack = B::kPack, kSums = B::kSums, kAtOnce = B::kAtOnce;
  B body;
  int64_t rows, columns;
  Cut cut;
  Wide* parts;  // [chunk of rows, sum, column]; null: a single chunk

  template <class L> AB_HD void operator()(const L& lanes, int64_t n) const {
    const int64_t packs = columns / kPack, first = n % packs * kPack, chunk = n / packs;
    const int64_t begin = chunk * cut.length, end = begin + cut.length < rows ? begin + cut.length : rows;
    Wide sums[kSums][kPack] = {};
    int64_t row = begin + lanes.index();
    for (; row + (kAtOnce - 1) * lanes.count() < end; row += kAtOnce * lanes.count())
      add<kAtOnce>(lanes, row, first, sums);
    if (row + (kAtOnce / 2 - 1) * lanes.count() < end) {
      add<kAtOnce / 2>(lanes, row, first, sums);
      row += kAtOnce / 2 * lanes.count();
    }
    for (; row < end; row += lanes.count()) add<1>(lanes, row, first, sums);
    for (int s = 0; s < kSums; ++s) {
      for (int k = 0; k < kPack; ++k) sums[s][k] = lanes.sum(sums[s][k]);
    }
    if (lanes.index() == 0) keep(chunk, first, sums);
  }

 private:
  // Reads everything before computing: a compiler moves no load across a division, which may branch.
  template <int kRows, class L>
  AB_HD void add(const L& lanes, int64_t row, int64_t first, Wide (&sums)[kSums][kPack]) const {
    typename B::Read in[kRows];
    for (int k = 0; k < kRows; ++k) in[k] = body.read(row + k * lanes.count(), first);
    for (int k = 0; k < kRows; ++k) body.add(in[k], sums);
  }
  AB_HD void keep(int64_t chunk, int64_t first, const Wide (&sums)[kSums][kPack]) const {
    for (int k = 0; k < kPack; ++k) {
      Wide of_column[kSums];
      for (int s = 0; s < kSums; ++s) of_column[s] = sums[s][k];
      if (!parts) {
        body.put(first + k, of_column);
        continue;
      }
      for (int s = 0; s < kSums; ++s) parts[(chunk * kSums + s) * columns + first + k] = of_column[s];
    }
  }
};

template <class B> struct ColumnChunksAlone {  // one thread per chunk
  ColumnChunks<B> chunks;
  AB_HD void operator()(int64_t n) const { chunks(OneLane{}, n); }
};

// Few threads with many loads in flight: registers for these gain more than a higher occupancy, which the compiler
// would choose.
#if defined(__CUDACC__)
template <class B>
__global__ void __launch_bounds__(kBlock, 2) column_chunks_kernel(int64_t n, ColumnChunksAlone<B> body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}
#endif
template <class B> int each_column_chunk(const Launch& launch, int64_t n, const ColumnChunksAlone<B>& body) {
#if defined(__CUDACC__)
  if (n <= 0) return 0;
  column_chunks_kernel<<<blocks_of(n), kBlock, 0, launch.stream>>>(n, body);
  return static_cast<int>(cudaGetLastError());
#else
  return each(launch, n, body);
#endif
}

template <class B> struct JoinColumns {
  using Wide = typename B::Wide;
  B body;
  int64_t columns, chunks;
  const Wide* parts;
  template <class L> AB_HD void operator()(const L& lanes, int64_t column) const {
    Wide totals[B::kSums] = {};
    AB_UNROLL for (int64_t chunk = lanes.index(); chunk < chunks; chunk += lanes.count()) {
      for (int s = 0; s < B::kSums; ++s) totals[s] += parts[(chunk * B::kSums + s) * columns + column];
    }
    for (int s = 0; s < B::kSums; ++s) totals[s] = lanes.sum(totals[s]);
    if (lanes.index() == 0) body.put(column, totals);
  }
};

// Bytes of `parts`, with or without packs.
template <class Wide, int kSums> size_t sum_columns_room(int64_t rows, int64_t columns) {
  return kSums * fold_room<Wide>(columns, rows, Neighbors::kRows);
}

// The sums of chunks, or of columns with a single chunk. A body of one column is also for lanes.
template <class B>
int sum_column_chunks(const Launch& launch, int64_t rows, int64_t columns, const Cut& cut, const B& body,
                      typename B::Wide* parts) {
  const ColumnChunks<B> chunks{body, rows, columns, cut, cut.chunks > 1 ? parts : nullptr};
  if constexpr (B::kPack == 1) {
    if (cut.lanes) return device::rows(launch, columns * cut.chunks, cut.length, chunks);
  }
  return each_column_chunk(launch, columns / B::kPack * cut.chunks, ColumnChunksAlone<B>{chunks});
}

template <class B>
int join_columns(const Launch& launch, int64_t columns, const Cut& cut, const B& body, const typename B::Wide* parts) {
  if (cut.chunks == 1) return 0;
  return rows(launch, columns, cut.chunks, JoinColumns<B>{body, columns, cut.chunks, parts});
}

// make(std::integral_constant<int, kPack>) returns a body: of kPack columns if packs are allowed, else of one.
template <int kPack, class Wide, class Make>
int sum_columns(const Launch& launch, int64_t rows, int64_t columns, bool packs, const Make& make, Wide* parts) {
  const Cut cut = cut_of(columns, rows, Neighbors::kRows);
  const auto one = make(std::integral_constant<int, 1>{});
  const auto in_chunks = [&](const auto& body) { return sum_column_chunks(launch, rows, columns, cut, body, parts); };
  const int failed = packs && !cut.lanes ? in_chunks(make(std::integral_constant<int, kPack>{})) : in_chunks(one);
  return failed ? failed : join_columns(launch, columns, cut, one, parts);
}

}  // namespace anabranch::device
