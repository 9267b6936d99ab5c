// Many lookups at once on devices: their rows side by side, pooled or not ("gather_parts"), and the rows of a sparse
// gradient from several tensors ("source_rows").
#include <cmath>

#include "ops/device/args_sparse.h"
#include "ops/device/kernels.h"
#include "ops/sequence/sequence_of.h"

namespace anabranch::device {

struct IdsOf {
  const int32_t* narrow;
  const int64_t* wide;
  IdsOf() = default;
  IdsOf(const DeviceIn& ids, int32_t flags)
      : narrow((flags & kIdsOf32) ? ids.get<int32_t>() : nullptr),
        wide((flags & kIdsOf32) ? nullptr : ids.get<int64_t>()) {}
  AB_HD bool there() const { return narrow || wide; }
  AB_HD int64_t operator[](int64_t i) const { return narrow ? int64_t{narrow[i]} : wide[i]; }
};

// The divisor of the sum over a sequence.
template <class T> AB_HD T over(int32_t mode, int64_t length) {
  if (mode == kPoolAverage) return static_cast<T>(length);
  return mode == kPoolSqrt ? std::sqrt(static_cast<T>(length)) : T(1);
}

struct GatherParts {
  using Args = GatherPartsArgs;
  template <class T> struct Part {
    const T* x;
    IdsOf ids;
    const int64_t* offsets;
    int64_t height, width, per_row, padding, column;
    T empty;
    int32_t mode;
    bool pads;
  };
  template <class T> struct Body {
    Part<T> parts[kMostLookups];
    T* y;
    FaultReport report;
    int64_t stride, first_column, columns;
    int32_t count;

    AB_HD T element(const Part<T>& p, int64_t place, int64_t column) const {
      const int64_t id = p.ids[place];
      if (p.pads && id == p.padding) return 0;
      if (id >= 0 && id < p.height) return p.x[id * p.width + column];
      if (column == 0) report(1, id);
      return 0;
    }
    AB_HD T pooled(const Part<T>& p, int64_t row, int64_t column) const {
      const int64_t first = p.offsets[row], last = p.offsets[row + 1];
      if (first == last) return p.empty;
      T sum = element(p, first, column);
      for (int64_t k = first + 1; k < last; ++k) sum += element(p, k, column);
      return p.mode == kPoolSum ? sum : sum / over<T>(p.mode, last - first);
    }
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / columns, column = first_column + i % columns;
      int32_t k = count - 1;
      while (parts[k].column > column) --k;
      const Part<T>& p = parts[k];
      const int64_t own = column - p.column;
      T* to = y + row * stride + column;
      if (!p.ids.there())
        *to = p.x[row * p.width + own];
      else if (p.offsets)
        *to = pooled(p, row, own);
      else
        *to = element(p, row * p.per_row + own / p.width, own % p.width);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    Body<T> body{{}, a.y.get<T>(), FaultReport(a.fault), a.stride, a.first_column, a.columns, a.count};
    for (int k = 0; k < a.count; ++k) {
      const LookupPart& p = a.parts[k];
      body.parts[k] = {p.x.get<T>(),
                       IdsOf(p.ids, p.flags),
                       p.offsets.get<int64_t>(),
                       p.height,
                       p.width,
                       p.per_row,
                       p.padding,
                       p.column,
                       static_cast<T>(p.empty),
                       p.mode,
                       (p.flags & kSkipsPadding) != 0};
    }
    return each(launch, a.rows * a.columns, body);
  }
};

struct SourceRows {
  using Args = SourceRowsArgs;
  template <class T> struct Source {
    IdsOf ids;
    const int64_t* offsets;
    const T* grad;
    int64_t begin, stride, column, per_row, padding, sequences;
    int32_t mode;
    bool pads;
  };
  template <class T> struct Body {
    Source<T> sources[kMostLookups];
    int64_t* ids;
    T* values;
    int64_t width;
    int32_t count;
    AB_HD void operator()(int64_t i) const {
      const int64_t place = i / width, column = i % width;
      int32_t k = count - 1;
      while (sources[k].begin > place) --k;
      const Source<T>& s = sources[k];
      const int64_t own = place - s.begin;
      if (column == 0) ids[place] = s.pads && s.ids[own] == s.padding ? -1 : s.ids[own];
      if (s.offsets) {
        const int64_t sequence = sequence_of(s.offsets, s.sequences, own);
        const T divisor = over<T>(s.mode, s.offsets[sequence + 1] - s.offsets[sequence]);
        values[i] = s.grad[sequence * s.stride + s.column + column] / divisor;
      } else {
        values[i] = s.grad[own / s.per_row * s.stride + s.column + own % s.per_row * width + column];
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    Body<T> body{{}, a.ids.get<int64_t>(), a.values.get<T>(), a.width, a.count};
    for (int k = 0; k < a.count; ++k) {
      const RowSource& s = a.sources[k];
      body.sources[k] = {IdsOf(s.ids, s.flags),
                         s.offsets.get<int64_t>(),
                         s.grad.get<T>(),
                         s.begin,
                         s.stride,
                         s.column,
                         s.per_row,
                         s.padding,
                         s.sequences,
                         s.mode,
                         (s.flags & kSkipsPadding) != 0};
    }
    return each(launch, a.n * a.width, body);
  }
};

AB_KERNEL("gather_parts", GatherParts, float, double);
AB_KERNEL("source_rows", SourceRows, float, double);

}  // namespace anabranch::device
