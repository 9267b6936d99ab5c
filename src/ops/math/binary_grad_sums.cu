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

template <class Term, class T>
int sum_terms(const Launch& launch, const GradParts& parts, const Term* terms, bool negative, T* to, void* room) {
  using Body = SumTerms<Term, T>;
  return fold_rows(launch, parts.kept.count(), parts.folded.count(), parts.neighbours,
                   Body{parts.kept, parts.folded, terms, to, negative}, static_cast<typename Body::Wide*>(room));
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
