// Folds rows to one element each, in an order that depends only on their number and length. A body defines the fold:
//   using Wide = ...;                              the type of partial results
//   AB_HD static Wide start();                     the fold of no elements
//   AB_HD static Wide join(Wide a, Wide b);
//   AB_HD Wide at(int64_t row, int64_t i) const;   element i of a row
//   AB_HD void put(int64_t row, Wide total) const;
// Few long rows are split into chunks, whose results are kept in the workspace until they are joined in order.
#pragma once
#include "ops/device/kernels.h"

namespace anabranch::device {

// The data that adjacent lanes read: elements of one row, or rows if adjacent elements of a row are apart in memory.
enum class Neighbors { kElements, kRows };

// How rows are split: each chunk is folded by the lanes of a group, or by one thread; adjacent threads then have the
// same chunk of adjacent rows.
struct Cut {
  bool lanes;
  int64_t chunks, length;  // per row
};

inline Cut cut_of(int64_t rows, int64_t width, Neighbors neighbors) {
  // Strided data still comes from the cache if there is little of it, and many lanes hide its latency.
  constexpr int64_t kLittle = int64_t{1} << 18;
  const bool lanes = neighbors == Neighbors::kElements || rows * width <= kLittle;
  const int64_t needed = lanes ? 1024 : 262144, least = lanes ? 4096 : 32;  // chunks in all; elements of each
  const int64_t most = (width + least - 1) / least;
  int64_t chunks = rows > 0 ? needed / rows : 1;
  if (chunks > most) chunks = most;
  if (chunks < 1) chunks = 1;
  const int64_t length = (width + chunks - 1) / chunks;
  return {lanes, chunks, length};
}

template <class Wide> size_t fold_room(int64_t rows, int64_t width, Neighbors neighbors) {
  const Cut cut = cut_of(rows, width, neighbors);
  return cut.chunks > 1 ? static_cast<size_t>(rows * cut.chunks) * sizeof(Wide) : 0;
}

template <class B> struct JoinOf {
  AB_HD typename B::Wide operator()(typename B::Wide a, typename B::Wide b) const { return B::join(a, b); }
};

template <class B> struct FoldChunks {
  using Wide = typename B::Wide;
  B body;
  int64_t rows, width;
  Cut cut;
  Wide* parts;  // [chunk of a row, row]; null: one chunk per row

  template <class L> AB_HD void operator()(const L& lanes, int64_t n) const {
    const int64_t row = n % rows, begin = n / rows * cut.length;
    const int64_t end = begin + cut.length < width ? begin + cut.length : width;
    Wide total = B::start();
    AB_UNROLL for (int64_t i = begin + lanes.index(); i < end; i += lanes.count()) {
      total = B::join(total, body.at(row, i));
    }
    total = lanes.fold(total, JoinOf<B>{});
    if (lanes.index() != 0) return;
    if (parts) {
      parts[n] = total;
    } else {
      body.put(row, total);
    }
  }
};

template <class B> struct FoldChunksAlone {  // one thread per chunk
  FoldChunks<B> fold;
  AB_HD void operator()(int64_t n) const { fold(OneLane{}, n); }
};

template <class B> struct JoinChunks {
  B body;
  int64_t rows, chunks;
  const typename B::Wide* parts;
  template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
    typename B::Wide total = B::start();
    for (int64_t k = lanes.index(); k < chunks; k += lanes.count()) total = B::join(total, parts[k * rows + row]);
    total = lanes.fold(total, JoinOf<B>{});
    if (lanes.index() == 0) body.put(row, total);
  }
};

// `parts`: fold_room() bytes.
template <class B>
int fold_rows(const Launch& launch, int64_t n, int64_t width, Neighbors neighbors, const B& body,
              typename B::Wide* parts) {
  const Cut cut = cut_of(n, width, neighbors);
  const FoldChunks<B> fold{body, n, width, cut, cut.chunks > 1 ? parts : nullptr};
  const int failed = cut.lanes ? rows(launch, n * cut.chunks, cut.length, fold)
                               : each(launch, n * cut.chunks, FoldChunksAlone<B>{fold});
  if (failed || cut.chunks == 1) return failed;
  return rows(launch, n, cut.chunks, JoinChunks<B>{body, n, cut.chunks, parts});
}

}  // namespace anabranch::device
