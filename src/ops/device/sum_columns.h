// Columns of a matrix added up, to one sum each or to several of the same elements, which are read once. The order is
// that of fold_rows() for neighbours that are rows, whatever number of columns a thread takes. A body:
//   using Wide = ...;                                       what is added up in
//   static constexpr int kPack, kSums, kAtOnce;             columns of a thread; sums of a column; loads under way
//   struct Read;                                            kPack elements, and what belongs to their row
//   AB_HD Read read(int64_t row, int64_t first) const;      of the columns from `first` on
//   AB_HD void add(const Read& in, Wide (&sums)[kSums][kPack]) const;
//   AB_HD void put(int64_t column, const Wide (&totals)[kSums]) const;
#pragma once
#include "ops/device/fold_rows.h"

namespace anabranch::device {

template <class B> struct ColumnPieces {
  using Wide = typename B::Wide;
  static constexpr int kPack = B::kPack, kSums = B::kSums, kAtOnce = B::kAtOnce;
  B body;
  int64_t rows, columns;
  Cut cut;
  Wide* parts;  // [piece of the rows, sum, column]; null: there is one piece

  template <class L> AB_HD void operator()(const L& lanes, int64_t n) const {
    const int64_t packs = columns / kPack, first = n % packs * kPack, piece = n / packs;
    const int64_t begin = piece * cut.length, end = begin + cut.length < rows ? begin + cut.length : rows;
    Wide sums[kSums][kPack] = {};
    int64_t row = begin + lanes.index();
    for (; row + (kAtOnce - 1) * lanes.count() < end; row += kAtOnce * lanes.count())
      add<kAtOnce>(lanes, row, first, sums);
    for (; row < end; row += lanes.count()) add<1>(lanes, row, first, sums);
    for (int s = 0; s < kSums; ++s) {
      for (int k = 0; k < kPack; ++k) sums[s][k] = lanes.sum(sums[s][k]);
    }
    if (lanes.index() == 0) keep(piece, first, sums);
  }

 private:
  // All is read before anything is computed: a compiler moves no loads across a division, which may branch.
  template <int kRows, class L>
  AB_HD void add(const L& lanes, int64_t row, int64_t first, Wide (&sums)[kSums][kPack]) const {
    typename B::Read in[kRows];
    for (int k = 0; k < kRows; ++k) in[k] = body.read(row + k * lanes.count(), first);
    for (int k = 0; k < kRows; ++k) body.add(in[k], sums);
  }
  AB_HD void keep(int64_t piece, int64_t first, const Wide (&sums)[kSums][kPack]) const {
    for (int k = 0; k < kPack; ++k) {
      Wide of_column[kSums];
      for (int s = 0; s < kSums; ++s) of_column[s] = sums[s][k];
      if (!parts) {
        body.put(first + k, of_column);
        continue;
      }
      for (int s = 0; s < kSums; ++s) parts[(piece * kSums + s) * columns + first + k] = of_column[s];
    }
  }
};

template <class B> struct ColumnPiecesAlone {  // a piece for each thread
  ColumnPieces<B> pieces;
  AB_HD void operator()(int64_t n) const { pieces(OneLane{}, n); }
};

template <class B> struct JoinColumns {
  using Wide = typename B::Wide;
  B body;
  int64_t columns, pieces;
  const Wide* parts;
  template <class L> AB_HD void operator()(const L& lanes, int64_t column) const {
    Wide totals[B::kSums] = {};
    AB_UNROLL for (int64_t piece = lanes.index(); piece < pieces; piece += lanes.count()) {
      for (int s = 0; s < B::kSums; ++s) totals[s] += parts[(piece * B::kSums + s) * columns + column];
    }
    for (int s = 0; s < B::kSums; ++s) totals[s] = lanes.sum(totals[s]);
    if (lanes.index() == 0) body.put(column, totals);
  }
};

// Bytes of `parts`, whether packs are taken or not.
template <class Wide, int kSums> size_t sum_columns_room(int64_t rows, int64_t columns) {
  return kSums * fold_room<Wide>(columns, rows, Neighbours::kRows);
}

// make(std::integral_constant<int, kPack>) gives a body: of kPack columns where packs are allowed, else of one.
template <int kPack, class Wide, class Make>
int sum_columns(const Launch& launch, int64_t rows, int64_t columns, bool packs, const Make& make, Wide* parts) {
  const Cut cut = cut_of(columns, rows, Neighbours::kRows);
  if (cut.pieces == 1) parts = nullptr;
  const auto one = make(std::integral_constant<int, 1>{});
  const auto pieces_of = [&](const auto& body) {
    return ColumnPieces<std::decay_t<decltype(body)>>{body, rows, columns, cut, parts};
  };
  const auto alone = [&](auto pack) {
    const auto body = make(pack);
    return each(launch, columns / decltype(pack)::value * cut.pieces,
                ColumnPiecesAlone<std::decay_t<decltype(body)>>{pieces_of(body)});
  };
  int failed = 0;
  if (cut.lanes)
    failed = device::rows(launch, columns * cut.pieces, cut.length, pieces_of(one));
  else
    failed = packs ? alone(std::integral_constant<int, kPack>{}) : alone(std::integral_constant<int, 1>{});
  if (failed || cut.pieces == 1) return failed;
  return device::rows(launch, columns, cut.pieces,
                      JoinColumns<std::decay_t<decltype(one)>>{one, columns, cut.pieces, parts});
}

}  // namespace anabranch::device
