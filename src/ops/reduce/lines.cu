// Lines along one axis on devices: indices of extremes ("arg_max/<x>/<place>"), Euclidean lengths ("norm",
// "norm_grad"), running sums ("running_sum").
#include "ops/device/args_fold.h"
#include "ops/device/args_tensor.h"
#include "ops/device/fold_rows.h"
#include "ops/kernels/folds.h"

namespace anabranch::device {

struct Line {  // of a tensor [outer, width, inner]
  int64_t width, inner;
  AB_HD int64_t begin(int64_t line) const { return line / inner * width * inner + line % inner; }
};

// y[line] = the index of the first extreme; NaN never wins, except as the first element.
template <bool kLargest> struct ArgExtreme {
  using Args = FoldArgs;
  template <class T, class Place> struct Body {
    Line line;
    const T* x;
    Place* y;
    AB_HD static bool wins(Compute<T> a, Compute<T> top) { return (kLargest ? !(a <= top) : !(a >= top)) && a == a; }
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const T* from = x + line.begin(row);
      int64_t place = lanes.index() < line.width ? lanes.index() : 0;
      Compute<T> top = load(from[place * line.inner]);
      for (int64_t i = lanes.index() + lanes.count(); i < line.width; i += lanes.count()) {
        const Compute<T> v = load(from[i * line.inner]);
        if (!wins(v, top)) continue;
        top = v;
        place = i;
      }
      const Compute<T> best = lanes.fold(top, Winner{});
      const int64_t mine = top == best ? place : best == best ? line.width : 0;
      const int64_t first = lanes.min(mine);
      if (lanes.index() == 0) y[row] = static_cast<Place>(first);
    }
    struct Winner {
      AB_HD Compute<T> operator()(Compute<T> a, Compute<T> b) const { return a != a || wins(b, a) ? b : a; }
    };
  };
  template <class T, class Place> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.width, Body<T, Place>{{a.width, a.inner}, a.x.get<T>(), a.y.get<Place>()});
  }
};

struct NormLine {
  using Args = NormArgs;
  template <class T> struct Body {
    Line line;
    const T* x;
    T *y, *length;
    double epsilon;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const int64_t at = line.begin(row);
      double sum = 0;
      for (int64_t i = lanes.index(); i < line.width; i += lanes.count()) {
        const double v = static_cast<double>(load(x[at + i * line.inner]));
        sum += v * v;
      }
      const auto size = static_cast<Compute<T>>(std::sqrt(lanes.sum(sum) + epsilon));
      for (int64_t i = lanes.index(); i < line.width; i += lanes.count()) {
        store(y + at + i * line.inner, load(x[at + i * line.inner]) / size);
      }
      if (length && lanes.index() == 0) store(length + row, size);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const auto epsilon = static_cast<double>(static_cast<Compute<T>>(a.p[0]));
    return rows(launch, a.outer * a.inner, a.width,
                Body<T>{{a.width, a.inner}, a.x.get<T>(), a.y.get<T>(), a.length.get<T>(), epsilon});
  }
};

// dx = (dy - x (x . dy) / length^2) / length
struct NormLineGrad {
  using Args = NormArgs;
  template <class T> struct Body {
    Line line;
    const T *x, *dy, *length;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const int64_t at = line.begin(row);
      double dot = 0;
      for (int64_t i = lanes.index(); i < line.width; i += lanes.count()) {
        const int64_t k = at + i * line.inner;
        dot += static_cast<double>(load(x[k])) * static_cast<double>(load(dy[k]));
      }
      const Compute<T> size = load(length[row]);
      const auto share =
          static_cast<Compute<T>>(lanes.sum(dot) / (static_cast<double>(size) * static_cast<double>(size)));
      for (int64_t i = lanes.index(); i < line.width; i += lanes.count()) {
        const int64_t k = at + i * line.inner;
        store(dx + k, (load(dy[k]) - load(x[k]) * share) / size);
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.width,
                Body<T>{{a.width, a.inner}, a.x.get<T>(), a.dy.get<T>(), a.length_in.get<T>(), a.y.get<T>()});
  }
};

struct RunningSum {
  using Args = RunningSumArgs;
  template <class T> struct Body {  // one thread per line
    Line line;
    const T* x;
    T* y;
    bool exclusive, from_end;
    AB_HD void operator()(int64_t row) const {
      const int64_t first = line.begin(row);
      Compute<T> sum = 0;
      for (int64_t i = 0; i < line.width; ++i) {
        const int64_t at = first + (from_end ? line.width - 1 - i : i) * line.inner;
        const Compute<T> value = load(x[at]), next = FoldSum<Compute<T>>::join(sum, value);
        store(y + at, exclusive ? sum : next);
        sum = next;
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.inner,
                Body<T>{{a.width, a.inner}, a.x.get<T>(), a.y.get<T>(), (a.flags & 1) != 0, (a.flags & 2) != 0});
  }
};

AB_KERNEL("arg_max", ArgExtreme<true>, Types<float, int64_t>, Types<double, int64_t>, Types<half, int64_t>,
          Types<int32_t, int64_t>, Types<int64_t, int64_t>, Types<float, int32_t>, Types<double, int32_t>);
AB_KERNEL("arg_min", ArgExtreme<false>, Types<float, int64_t>, Types<double, int64_t>, Types<half, int64_t>,
          Types<int32_t, int64_t>, Types<int64_t, int64_t>, Types<float, int32_t>, Types<double, int32_t>);
AB_KERNEL("norm", NormLine, float, double, half, bfloat16);
AB_KERNEL("norm_grad", NormLineGrad, float, double, half, bfloat16);
AB_KERNEL("running_sum", RunningSum, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
