// The sums of the gradients of binary arithmetic, of operands that were repeated.
#include "ops/math/binary_grad.h"

namespace anabranch::device {

template <class Term, class T> struct SumTerms {
  using Fold = FoldSum<Compute<T>>;
  using Wide = typename Fold::Wide;
  Walk<2> kept, folded;
  const Term* terms;
  T* to;
  bool negative;
  AB_HD static Wide start() { return Wide(0); }
  AB_HD static Wide join(Wide a, Wide b) { return Fold::join(a, b); }
  AB_HD Wide at(int64_t row, int64_t i) const {
    int64_t place[2], inside[2];
    kept.at(row, place);
    folded.at(i, inside);
    const Compute<T> term = load(terms[place[0] + inside[0]]);
    return static_cast<Wide>(negative ? math::negative(term) : term);
  }
  AB_HD void put(int64_t row, Wide total) const {
    int64_t place[2];
    kept.at(row, place);
    store(to + place[1], static_cast<Compute<T>>(total));
  }
};

// Columns of a matrix, as many for each thread as 16 bytes hold, of a piece of the rows.
template <class Term, class T> struct PackedColumns {
  using Wide = typename SumTerms<Term, T>::Wide;
  static constexpr int kPack = 16 / sizeof(Term);
  const Term* terms;
  int64_t columns, rows, row;
  Cut cut;
  bool negative;
  Wide* parts;

  static bool fit(const GradParts& parts, const Cut& cut, const Term* terms) {
    return parts.row > 0 && parts.row % kPack == 0 && parts.kept.count() % kPack == 0 && !cut.lanes && cut.pieces > 1 &&
           packed<Pack<Term, kPack>>(terms);
  }
  AB_HD void operator()(int64_t n) const {
    const int64_t packs = columns / kPack, first = n % packs * kPack, piece = n / packs;
    const int64_t begin = piece * cut.length, end = begin + cut.length < rows ? begin + cut.length : rows;
    Wide sums[kPack] = {};
    AB_UNROLL for (int64_t i = begin; i < end; ++i) {
      const auto p = *reinterpret_cast<const Pack<Term, kPack>*>(terms + i * row + first);
      for (int k = 0; k < kPack; ++k) sums[k] = SumTerms<Term, T>::join(sums[k], static_cast<Wide>(load(p.at[k])));
    }
    for (int k = 0; k < kPack; ++k) parts[piece * columns + first + k] = negative ? -sums[k] : sums[k];
  }
};

template <class Term, class T>
int sum_terms(const Launch& launch, const GradParts& parts, const Term* terms, bool negative, T* to, void* room) {
  using Body = SumTerms<Term, T>;
  const Body body{parts.kept, parts.folded, terms, to, negative};
  auto* pieces = static_cast<typename Body::Wide*>(room);
  const int64_t n = parts.kept.count(), width = parts.folded.count();
  if constexpr (std::is_same_v<Term, T> && sizeof(T) < 8 && !std::is_integral_v<T>) {
    const Cut cut = cut_of(n, width, parts.neighbours);
    using Columns = PackedColumns<Term, T>;
    if (Columns::fit(parts, cut, terms)) {
      const Columns columns{terms, n, width, parts.row, cut, negative, pieces};
      if (const int failed = each(launch, n / Columns::kPack * cut.pieces, columns)) return failed;
      return rows(launch, n, cut.pieces, JoinPieces<Body>{body, n, cut.pieces, pieces});
    }
  }
  return fold_rows(launch, n, width, parts.neighbours, body, pieces);
}

#define AB_SUM_TERMS(Term, T) \
  template int sum_terms<Term, T>(const Launch&, const GradParts&, const Term*, bool, T*, void*)
AB_SUM_TERMS(float, float);
AB_SUM_TERMS(double, double);
AB_SUM_TERMS(int32_t, int32_t);
AB_SUM_TERMS(int64_t, int64_t);
AB_SUM_TERMS(half, half);
AB_SUM_TERMS(float, half);
AB_SUM_TERMS(bfloat16, bfloat16);
AB_SUM_TERMS(float, bfloat16);
#undef AB_SUM_TERMS

}  // namespace anabranch::device
