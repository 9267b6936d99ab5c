// The sums of the gradients of broadcast operands of binary arithmetic.
#include "ops/device/sum_columns.h"
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

// Columns of a matrix, 16 bytes of them per thread, over a chunk of the rows.
template <class Term, class T> struct PackedColumns {
  using Wide = typename SumTerms<Term, T>::Wide;
  static constexpr int kPack = 16 / sizeof(Term), kSums = 1, kAtOnce = 8;
  using Read = Pack<Term, kPack>;
  const Term* terms;
  int64_t row;
  T* to;
  bool negative;

  static bool fit(const GradParts& parts, const Cut& cut, const Term* terms) {
    return parts.row > 0 && parts.row % kPack == 0 && parts.kept.count() % kPack == 0 && !cut.lanes && cut.chunks > 1 &&
           packed<Read>(terms);
  }
  AB_HD Read read(int64_t i, int64_t first) const { return *reinterpret_cast<const Read*>(terms + i * row + first); }
  AB_HD void add(const Read& in, Wide (&sums)[kSums][kPack]) const {
    for (int k = 0; k < kPack; ++k) sums[0][k] += static_cast<Wide>(load(in.at[k]));
  }
  AB_HD void put(int64_t column, const Wide (&totals)[kSums]) const {
    store(to + column, static_cast<Compute<T>>(negative ? 0 - totals[0] : totals[0]));
  }
};

template <class Term, class T>
int sum_terms(const Launch& launch, const GradParts& parts, const Term* terms, bool negative, T* to, void* room) {
  using Body = SumTerms<Term, T>;
  const Body body{parts.kept, parts.folded, terms, to, negative};
  auto* chunks = static_cast<typename Body::Wide*>(room);
  const int64_t n = parts.kept.count(), width = parts.folded.count();
  if constexpr (std::is_same_v<Term, T> && sizeof(T) < 8 && !std::is_integral_v<T>) {
    const Cut cut = cut_of(n, width, parts.neighbors);
    using Columns = PackedColumns<Term, T>;
    if (Columns::fit(parts, cut, terms)) {
      const Columns columns{terms, parts.row, to, negative};
      if (const int failed = sum_column_chunks(launch, width, n, cut, columns, chunks)) return failed;
      return join_columns(launch, n, cut, columns, chunks);
    }
  }
  return fold_rows(launch, n, width, parts.neighbors, body, chunks);
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
