// Sequences on devices: "sequence_pool", "sequence_softmax", "context" (the rows around each row, for convolutions),
// with "_grad"; "sum_rows", the gradient of repeated rows.
#include <cmath>

#include "ops/device/args_sequence.h"
#include "ops/device/groups.h"
#include "ops/device/kernels.h"
#include "ops/sequence/sequence_of.h"

namespace anabranch::device {

// The divisor of the sum of a sequence.
template <class C> AB_HD C divisor(int32_t mode, int64_t length) {
  if (mode == kPoolAverage) return static_cast<C>(length);
  return mode == kPoolSqrt ? std::sqrt(static_cast<C>(length)) : C(1);
}

struct SequencePool {
  using Args = SequencePoolArgs;
  template <class T> struct Body {
    using C = Compute<T>;
    const T* x;
    const int64_t* offsets;
    T* y;
    int32_t* index;
    int64_t width;
    C pad;
    int32_t mode;
    AB_HD C largest(int64_t first, int64_t last, int64_t column, int64_t* at) const {
      for (int64_t r = first + 1; r < last; ++r) {
        if (load(x[r * width + column]) > load(x[*at * width + column])) *at = r;
      }
      return load(x[*at * width + column]);
    }
    AB_HD void operator()(int64_t i) const {
      const int64_t first = offsets[i / width], last = offsets[i / width + 1], column = i % width;
      C result = pad;
      int64_t at = -1;
      if (first != last && mode == kPoolMax) {
        at = first;
        result = largest(first, last, column, &at);
      } else if (first != last && (mode == kPoolFirst || mode == kPoolLast)) {
        result = load(x[(mode == kPoolFirst ? first : last - 1) * width + column]);
      } else if (first != last) {
        C sum = load(x[first * width + column]);
        for (int64_t r = first + 1; r < last; ++r) sum += load(x[r * width + column]);
        result = sum / divisor<C>(mode, last - first);
      }
      store(y + i, result);
      if (index) index[i] = static_cast<int32_t>(at);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.sequences * a.width,
                Body<T>{a.x.get<T>(), a.offsets.get<int64_t>(), a.y.get<T>(), a.index.get<int32_t>(), a.width,
                        static_cast<Compute<T>>(a.pad), a.mode});
  }
};

struct SequencePoolGrad {
  using Args = SequencePoolArgs;
  template <class T> struct Body {
    using C = Compute<T>;
    const T* dout;
    const int64_t* offsets;
    const int32_t* index;
    T* dx;
    int64_t sequences, width;
    int32_t mode;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, column = i % width, s = sequence_of(offsets, sequences, row);
      const int64_t first = offsets[s], last = offsets[s + 1], from = s * width + column;
      const C d = load(dout[from]);
      if (mode == kPoolSum || mode == kPoolAverage || mode == kPoolSqrt) {
        return store(dx + i, d / divisor<C>(mode, last - first));
      }
      const int64_t taken = mode == kPoolMax ? index[from] : mode == kPoolFirst ? first : last - 1;
      store(dx + i, row == taken ? d : C(0));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width,
                Body<T>{a.x.get<T>(), a.offsets.get<int64_t>(), a.index_in.get<int32_t>(), a.y.get<T>(), a.sequences,
                        a.width, a.mode});
  }
};

struct ContextDims {
  const int64_t* offsets;
  int64_t sequences, width, length, start;
  explicit ContextDims(const ContextArgs& a)
      : offsets(a.offsets.get<int64_t>()), sequences(a.sequences), width(a.width), length(a.length), start(a.start) {}
  // Number of rows that may be read before the first row of a sequence, and after its last.
  AB_HD int64_t before() const { return start < 0 ? -start : 0; }
  AB_HD int64_t after() const { return start + length - 1 > 0 ? start + length - 1 : 0; }
};

struct ContextOf {
  using Args = ContextArgs;
  template <class T> struct Body {
    ContextDims d;
    const T *x, *padding;
    T* columns;
    AB_HD void operator()(int64_t i) const {
      const int64_t column = i % d.width, tap = i / d.width % d.length, row = i / d.width / d.length;
      const int64_t s = sequence_of(d.offsets, d.sequences, row), first = d.offsets[s], last = d.offsets[s + 1];
      const int64_t source = row + d.start + tap;
      if (source >= first && source < last) {
        columns[i] = x[source * d.width + column];
      } else {
        const int64_t outside = d.before() + source - (source < first ? first : last);
        columns[i] = padding ? padding[outside * d.width + column] : static_cast<T>(Compute<T>(0));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.length * a.width,
                Body<T>{ContextDims(a), a.x.get<T>(), a.padding.get<T>(), a.columns.get<T>()});
  }
};

struct ContextGrad {
  using Args = ContextArgs;
  template <class T> struct OfRows {
    ContextDims d;
    const T* columns;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / d.width, column = i % d.width, s = sequence_of(d.offsets, d.sequences, row);
      Compute<T> sum = 0;
      for (int64_t tap = d.length - 1; tap >= 0; --tap) {  // in ascending order of rows
        const int64_t from = row - d.start - tap;
        if (from < d.offsets[s] || from >= d.offsets[s + 1]) continue;
        sum += load(columns[(from * d.length + tap) * d.width + column]);
      }
      store(dx + i, sum);
    }
  };
  template <class T> struct OfPadding {
    ContextDims d;
    const T* columns;
    T* dpadding;
    AB_HD void operator()(int64_t i) const {
      const int64_t outside = i / d.width - d.before(), column = i % d.width;
      Compute<T> sum = 0;
      for (int64_t s = 0; s < d.sequences; ++s) {
        const int64_t first = d.offsets[s], last = d.offsets[s + 1];
        const int64_t source = outside < 0 ? first + outside : last + outside;
        for (int64_t tap = d.length - 1; tap >= 0; --tap) {
          const int64_t from = source - d.start - tap;
          if (from < first || from >= last) continue;
          sum += load(columns[(from * d.length + tap) * d.width + column]);
        }
      }
      store(dpadding + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const ContextDims d(a);
    const T* columns = a.x.get<T>();
    if (a.columns.there()) {
      if (const int failed = each(launch, a.rows * a.width, OfRows<T>{d, columns, a.columns.get<T>()})) return failed;
    }
    if (!a.dpadding.there()) return 0;
    return each(launch, (d.before() + d.after()) * a.width, OfPadding<T>{d, columns, a.dpadding.get<T>()});
  }
};

struct SequenceSoftmax {
  using Args = SequenceSoftmaxArgs;
  template <class T> struct Body {
    const T* x;
    const int64_t* offsets;
    T* y;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sequence) const {
      const int64_t first = offsets[sequence], last = offsets[sequence + 1];
      if (first == last) return;
      Compute<T> top = load(x[first]);
      for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) top = MaxOf{}(top, load(x[i]));
      top = lanes.max(top);
      Compute<T> sum = 0;
      for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) sum += std::exp(load(x[i]) - top);
      sum = lanes.sum(sum);
      for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) {
        store(y + i, std::exp(load(x[i]) - top) / sum);
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.sequences, 32, Body<T>{a.x.get<T>(), a.offsets.get<int64_t>(), a.y.get<T>()});
  }
};

// dx = y (dy - sum y dy).
struct SequenceSoftmaxGrad {
  using Args = SequenceSoftmaxArgs;
  template <class T> struct Body {
    const T *y, *dy;
    const int64_t* offsets;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sequence) const {
      const int64_t first = offsets[sequence], last = offsets[sequence + 1];
      double total = 0;
      for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) {
        total += static_cast<double>(load(y[i]) * load(dy[i]));
      }
      const auto sum = static_cast<Compute<T>>(lanes.sum(total));
      for (int64_t i = first + lanes.index(); i < last; i += lanes.count()) {
        store(dx + i, load(y[i]) * (load(dy[i]) - sum));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.sequences, 32, Body<T>{a.x.get<T>(), a.dy.get<T>(), a.offsets.get<int64_t>(), a.y.get<T>()});
  }
};

struct SumRows {
  using Args = SumRowsArgs;
  template <class T> struct Body {
    const T* x;
    const int64_t *starts, *places;
    T* y;
    int64_t width;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, column = i % width;
      Compute<T> sum = 0;
      for (int64_t k = starts[row]; k < starts[row + 1]; ++k) sum = sum_of(sum, load(x[places[k] * width + column]));
      store(y + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width,
                Body<T>{a.x.get<T>(), a.starts.get<int64_t>(), a.places.get<int64_t>(), a.y.get<T>(), a.width});
  }
};

AB_KERNEL("sequence_softmax", SequenceSoftmax, float, double, half, bfloat16);
AB_KERNEL("sequence_softmax_grad", SequenceSoftmaxGrad, float, double, half, bfloat16);
AB_KERNEL("sum_rows", SumRows, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("sequence_pool", SequencePool, float, double, half, bfloat16);
AB_KERNEL("sequence_pool_grad", SequencePoolGrad, float, double, half, bfloat16);
AB_KERNEL("context", ContextOf, float, double, half, bfloat16);
AB_KERNEL("context_grad", ContextGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
