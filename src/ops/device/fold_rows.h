// Rows of elements folded to one each, in an order that follows from their number and length alone. What is folded is
// described by a body:
//   using Wide = ...;                              what partial results are kept in
//   AB_HD static Wide start();                     what nothing folds to
//   AB_HD static Wide join(Wide a, Wide b);
//   AB_HD Wide at(int64_t row, int64_t i) const;   element i of a row
//   AB_HD void put(int64_t row, Wide total) const;
// Few long rows are cut into pieces, whose results lie in the workspace until they are joined in their order.
#pragma once
#include "ops/device/kernels.h"

namespace anabranch::device {

// What neighbouring lanes are to take: elements of one row, or, where those lie apart in memory, rows.
enum class Neighbours { kElements, kRows };

struct Cut {
  int64_t pieces, length;  // of a row
};

inline Cut cut_of(int64_t rows, int64_t width, Neighbours neighbours) {
  const bool lanes = neighbours == Neighbours::kElements;
  const int64_t wanted = lanes ? 1024 : 65536, least = lanes ? 4096 : 64;  // pieces in all; elements of each
  const int64_t most = (width + least - 1) / least;
  int64_t pieces = rows > 0 ? wanted / rows : 1;
  if (pieces > most) pieces = most;
  if (pieces < 1) pieces = 1;
  const int64_t length = (width + pieces - 1) / pieces;
  return {pieces, length};
}

template <class Wide> size_t fold_room(int64_t rows, int64_t width, Neighbours neighbours) {
  const Cut cut = cut_of(rows, width, neighbours);
  return cut.pieces > 1 ? static_cast<size_t>(rows * cut.pieces) * sizeof(Wide) : 0;
}

template <class B> struct JoinOf {
  AB_HD typename B::Wide operator()(typename B::Wide a, typename B::Wide b) const { return B::join(a, b); }
};

template <class B> struct FoldPieces {
  using Wide = typename B::Wide;
  B body;
  int64_t width;
  Cut cut;
  Wide* parts;  // null: there is one piece a row

  template <class L> AB_HD void operator()(const L& lanes, int64_t piece) const {
    const int64_t row = piece / cut.pieces, begin = piece % cut.pieces * cut.length;
    const int64_t end = begin + cut.length < width ? begin + cut.length : width;
    Wide total = B::start();
    for (int64_t i = begin + lanes.index(); i < end; i += lanes.count()) total = B::join(total, body.at(row, i));
    total = lanes.fold(total, JoinOf<B>{});
    if (lanes.index() != 0) return;
    if (parts) {
      parts[piece] = total;
    } else {
      body.put(row, total);
    }
  }
};

template <class B> struct FoldPiecesAlone {  // a piece for each thread
  FoldPieces<B> fold;
  AB_HD void operator()(int64_t piece) const { fold(OneLane{}, piece); }
};

template <class B> struct JoinPieces {
  B body;
  int64_t pieces;
  const typename B::Wide* parts;
  AB_HD void operator()(int64_t row) const {
    typename B::Wide total = B::start();
    for (int64_t k = 0; k < pieces; ++k) total = B::join(total, parts[row * pieces + k]);
    body.put(row, total);
  }
};

// `parts`: fold_room() bytes.
template <class B>
int fold_rows(const Launch& launch, int64_t n, int64_t width, Neighbours neighbours, const B& body,
              typename B::Wide* parts) {
  const Cut cut = cut_of(n, width, neighbours);
  const FoldPieces<B> fold{body, width, cut, cut.pieces > 1 ? parts : nullptr};
  const int failed = neighbours == Neighbours::kElements ? rows(launch, n * cut.pieces, cut.length, fold)
                                                         : each(launch, n * cut.pieces, FoldPiecesAlone<B>{fold});
  if (failed || cut.pieces == 1) return failed;
  return each(launch, n, JoinPieces<B>{body, cut.pieces, parts});
}

}  // namespace anabranch::device
