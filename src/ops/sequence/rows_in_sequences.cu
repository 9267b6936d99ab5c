// Kernels that need the position of a row in its sequence, on devices: "row_conv", with "_grad", "position_encoding".
#include "ops/device/args_sequence.h"
#include "ops/device/kernels.h"
#include "ops/sequence/sequence_of.h"

namespace anabranch::device {

struct RowConvDims {
  const int64_t* offsets;
  int64_t sequences, rows, width, taps;
  explicit RowConvDims(const RowConvArgs& a)
      : offsets(a.offsets.get<int64_t>()), sequences(a.sequences), rows(a.rows), width(a.width), taps(a.taps) {}
  AB_HD int64_t sequence(int64_t row) const { return sequence_of(offsets, sequences, row); }
};

// y[t] = the sum of filter[j] x[t + j step] within the sequence; step -1 is the transpose of step 1.
template <class T> struct Slide {
  RowConvDims d;
  const T *x, *filter;
  T* y;
  int64_t step;
  AB_HD void operator()(int64_t i) const {
    const int64_t row = i / d.width, column = i % d.width, s = d.sequence(row);
    const int64_t ahead = step > 0 ? d.offsets[s + 1] - row : row - d.offsets[s] + 1;
    const int64_t inside = ahead < d.taps ? ahead : d.taps;
    Compute<T> sum = 0;
    for (int64_t j = 0; j < inside; ++j) sum += load(x[i + j * step * d.width]) * load(filter[j * d.width + column]);
    store(y + i, sum);
  }
};

struct RowConv {
  using Args = RowConvArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width, Slide<T>{RowConvDims(a), a.x.get<T>(), a.filter.get<T>(), a.y.get<T>(), 1});
  }
};

struct RowConvGrad {
  using Args = RowConvArgs;
  template <class T> struct OfFilter {
    RowConvDims d;
    const T *x, *dout;
    T* dfilter;
    template <class L> AB_HD void operator()(const L& lanes, int64_t i) const {
      const int64_t tap = i / d.width, column = i % d.width;
      double sum = 0;
      for (int64_t row = lanes.index(); row < d.rows; row += lanes.count()) {
        if (row + tap >= d.offsets[d.sequence(row) + 1]) continue;
        sum += static_cast<double>(load(x[(row + tap) * d.width + column])) *
               static_cast<double>(load(dout[row * d.width + column]));
      }
      sum = lanes.sum(sum);
      if (lanes.index() == 0) store(dfilter + i, static_cast<Compute<T>>(sum));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const RowConvDims d(a);
    const T* dout = a.dout.get<T>();
    if (a.y.there()) {
      const Slide<T> back{d, dout, a.filter.get<T>(), a.y.get<T>(), -1};
      if (const int failed = each(launch, a.rows * a.width, back)) return failed;
    }
    if (!a.dfilter.there()) return 0;
    return rows(launch, a.taps * a.width, a.rows, OfFilter<T>{d, a.x.get<T>(), dout, a.dfilter.get<T>()});
  }
};

struct PositionEncoding {
  using Args = EncodingArgs;
  template <class T> struct Body {
    const T* x;
    const int64_t* offsets;
    const double* table;
    T* y;
    int64_t sequences, width;
    double alpha, beta;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, place = row - offsets[sequence_of(offsets, sequences, row)];
      const double v = alpha * static_cast<double>(load(x[i])) + beta * table[place * width + i % width];
      store(y + i, static_cast<Compute<T>>(v));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width,
                Body<T>{a.x.get<T>(), a.offsets.get<int64_t>(), a.table.get<double>(), a.y.get<T>(), a.sequences,
                        a.width, a.alpha, a.beta});
  }
};

AB_KERNEL("row_conv", RowConv, float, double, half, bfloat16);
AB_KERNEL("row_conv_grad", RowConvGrad, float, double, half, bfloat16);
AB_KERNEL("position_encoding", PositionEncoding, float, double, half, bfloat16);

}  // namespace anabranch::device
