// The formulas of cells for one number: on devices, and on the host in float64.
#pragma once
#include "ops/sequence/cells.h"

namespace anabranch::sequence {

AB_HD inline Act act_of(int32_t number) { return static_cast<Act>(number); }

template <class T> struct OneNumber {
  AB_HD T of(const T* row, int64_t i) const { return row ? row[i] : T(0); }
  AB_HD T sum(const T* row, int64_t i, int) const { return of(row, i); }
  AB_HD T number(T x) const { return x; }
  AB_HD void put(T x, T* row, int64_t i) const { row[i] = x; }
};

#define AB_CELL_FN AB_HD inline
#include "ops/sequence/cell_formulas-inl.h"
#undef AB_CELL_FN

// The kernel of a cell as a loop over the units of all rows.
template <class K, class T> struct EachUnit {
  typename K::Args args;
  typename K::template Row<T> first;
  explicit EachUnit(const typename K::Args& a) : args(a), first(K::template first<T>(a)) {}
  int64_t count() const { return args.rows * args.rule.units; }
  AB_HD void operator()(int64_t i) const {
    const int64_t d = args.rule.units;
    compute(K(), OneNumber<T>(), args.rule, first, UnitPlace(i / d, i % d, d, K::kGates, K::distance(args)));
  }
};

}  // namespace anabranch::sequence
