// Lookahead convolution: replaces each row of a sequence by a weighted sum of itself and the rows after it, column by
// column. Sequences come from the LoD, or are the entries of a dense batch.
#include <algorithm>
#include <type_traits>

#include "ops/device/args_sequence.h"
#include "ops/device/upload.h"
#include "ops/device/zeros.h"
#include "ops/kernels/wide.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::row_conv_op {
namespace {

constexpr int64_t kGrain = 4096;
constexpr int64_t kColumns = 64;  // columns whose sums are kept at once

struct Ranges {
  const Offsets* lod = nullptr;
  int64_t count, length = 0;
  explicit Ranges(const Tensor& x) {
    if (x.shape().rank() == 3) {
      count = x.shape()[0], length = x.shape()[1];
    } else {
      lod = &offsets(x), count = sequence::count(*lod);
    }
  }
  int64_t begin(int64_t s) const { return lod ? (*lod)[static_cast<size_t>(s)] : s * length; }
  Offsets all() const {
    Offsets starts(static_cast<size_t>(count) + 1);
    for (int64_t s = 0; s <= count; ++s) starts[static_cast<size_t>(s)] = begin(s);
    return starts;
  }
};

void infer(InferContext& c) {
  check_rank(c, "X", 2, 3);
  check_rank(c, "Filter", 2, 2);
  check_same_dtype(c, "X", "Filter");
  const Shape &x = c.in("X").shape, &filter = c.in("Filter").shape;
  AB_CHECK(filter[0] != 0 && compatible(Shape{x[x.rank() - 1]}, Shape{filter[1]}), ShapeMismatch,
           "Filter must be [rows, {}] with at least one row, got {}", x[x.rank() - 1], filter.str());
  if (c.runtime() && x.rank() == 2) lod_of(c, "X");
  c.same_as("Out", "X");
}

// to = the sum of `taps` rows `stride` apart, each times its row of weights, for `count` columns.
template <class T, class Count>
void sum_taps(const T* row, int64_t stride, const T* weights, int64_t width, int64_t taps, Count columns, T* to) {
  constexpr int64_t kAtOnce = 32;
  T sums[kAtOnce] = {};
  for (int64_t j = 0; j < taps; ++j, row += stride, weights += width) {
    for (int64_t k = 0; k < columns; ++k) sums[k] += row[k] * weights[k];
  }
  for (int64_t k = 0; k < columns; ++k) to[k] = sums[k];
}

// to[t] = the sum of w[j] from[t + j step] for the rows of one sequence; step -1 is the transpose of step 1.
template <class T>
void slide(const T* from, const T* w, int64_t taps, int64_t step, int64_t rows, int64_t width, T* to) {
  using AtOnce = std::integral_constant<int64_t, 32>;
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t inside = std::min(taps, step > 0 ? rows - t : t + 1);
    int64_t k = 0;
    for (; k + AtOnce() <= width; k += AtOnce()) {
      sum_taps(from + t * width + k, step * width, w + k, width, inside, AtOnce(), to + t * width + k);
    }
    sum_taps(from + t * width + k, step * width, w + k, width, inside, width - k, to + t * width + k);
  }
}

template <class T>
void slide_all(const KernelContext& c, const Tensor& x, const T* from, const Tensor& filter, int64_t step, T* to) {
  const Ranges ranges(x);
  const int64_t taps = filter.shape()[0], width = filter.shape()[1];
  const int64_t work = std::max<int64_t>(1, x.numel() * taps / std::max<int64_t>(1, ranges.count));
  c.parallel_for(ranges.count, kGrain / work + 1, [&](int64_t first, int64_t last) {
    in_wide_vectors([&, w = filter.data<T>()] {
      for (int64_t s = first; s < last; ++s) {
        const int64_t at = ranges.begin(s) * width, rows = ranges.begin(s + 1) - ranges.begin(s);
        slide(from + at, w, taps, step, rows, width, to + at);
      }
    });
  });
}

// dw[k] = sum over all rows t of x[t + tap][k] g[t][k], for columns [begin, end) of one tap.
template <class T>
void filter_gradient(const Ranges& ranges, const T* x, const T* g, int64_t tap, int64_t width, int64_t begin,
                     int64_t end, T* dw) {
  double sums[kColumns] = {};
  for (int64_t s = 0; s < ranges.count; ++s) {
    for (int64_t t = ranges.begin(s); t + tap < ranges.begin(s + 1); ++t) {
      const T *row = x + (t + tap) * width, *grad = g + t * width;
      for (int64_t k = begin; k < end; ++k) sums[k - begin] += static_cast<double>(row[k]) * grad[k];
    }
  }
  std::transform(sums, sums + (end - begin), dw + begin, [](double sum) { return static_cast<T>(sum); });
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), filter = op.in("Filter"), dout = op.in("Out@GRAD");
  const Out dx = op.out("X@GRAD"), dfilter = op.out("Filter@GRAD");
  return [=](KernelContext& c) {
    const T *xs = c[x].data<T>(), *g = c[dout].data<T>();
    if (c.needs(dx)) slide_all(c, c[x], g, c[filter], -1, c[dx].mutable_data<T>());
    if (!c.needs(dfilter)) return;
    const int64_t taps = c[filter].shape()[0], width = c[filter].shape()[1], blocks = (width + kColumns - 1) / kColumns;
    T* dw = c[dfilter].mutable_data<T>();
    const Ranges ranges(c[x]);
    const int64_t work = std::max<int64_t>(1, c[x].numel() / std::max<int64_t>(1, blocks));
    c.parallel_each(taps * blocks, kGrain / work + 1, [&](int64_t i) {
      const int64_t tap = i / blocks, begin = i % blocks * kColumns;
      filter_gradient(ranges, xs, g, tap, width, begin, std::min(width, begin + kColumns), dw + tap * width);
    });
  };
};

// ---- on devices

device::RowConvArgs args_of(const DeviceContext& c, In x, In filter, device::Upload* upload) {
  const Ranges ranges(c[x]);
  device::RowConvArgs a{};
  a.x = device::operand(c[x]);
  a.filter = device::operand(c[filter]);
  a.offsets = upload->of(c, ranges.all());
  a.sequences = ranges.count;
  a.rows = ranges.begin(ranges.count);
  a.width = c[filter].shape()[1];
  a.taps = c[filter].shape()[0];
  return a;
}

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("row_conv"), upload = device::Upload(), x = op.in("X"),
          filter = op.in("Filter"), out = op.out("Out")](const DeviceContext& c) mutable {
    device::RowConvArgs a = args_of(c, x, filter, &upload);
    a.y = device::operand(c[out]);
    c.launch(kernel, a);
  };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("row_conv_grad"), upload = device::Upload(), x = op.in("X"),
          filter = op.in("Filter"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
          dfilter = op.out("Filter@GRAD")](const DeviceContext& c) mutable {
    device::RowConvArgs a = args_of(c, x, filter, &upload);
    a.dout = device::operand(c[dout]);
    a.y = device::needed_operand(c, dx);
    a.dfilter = device::needed_operand(c, dfilter);
    c.launch(kernel, a);
  };
};

AB_OP(row_conv)
    .doc("Out[t] = the sum over j of X[t + j] Filter[j], column by column, for t + j within the sequence.")
    .source("Amodei et al., Deep Speech 2, ICML 2016")
    .in("X", "[rows, width] float with LoD, or [batch, rows, width]")
    .in("Filter", "[rows ahead + 1, width]")
    .out("Out", "like X")
    .infer(infer)
    .grad_reads({"X", "Filter"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), filter = op.in("Filter"), out = op.out("Out")](KernelContext& c) {
        slide_all(c, c[x], c[x].data<T>(), c[filter], 1, c[out].mutable_data<T>());
      };
    })
    .device<float, double, float16, bfloat16>(queued_forward);

AB_GRAD(row_conv)
    .doc("Gradients of row_conv with respect to X and Filter.")
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(queued_backward);

}  // namespace
}  // namespace anabranch::sequence::row_conv_op
