// Convolution along the rows of each sequence: the rows around each row, side by side, times a matrix.
#include <algorithm>

#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/context.h"

namespace anabranch::sequence {
namespace {

void check_attrs(const InferContext& c) {
  const int32_t length = c.attr<int32_t>("contextLength"), stride = c.attr<int32_t>("contextStride");
  AB_CHECK(length > 0, InvalidArgument, "contextLength must be at least 1, got {}", length);
  AB_CHECK(stride == 1, InvalidArgument, "contextStride must be 1, got {}", stride);
}

// What stands before and behind the sequences, where it is trained.
void check_padding(const InferContext& c, int64_t width) {
  if (!c.attr<bool>("paddingTrainable")) return;
  AB_CHECK(c.has_in("PaddingData"), InvalidArgument, "PaddingData must be given where paddingTrainable is true");
  const Context context(c.op());
  check_tensor(c, "PaddingData");
  check_rank(c, "PaddingData", 2, 2);
  check_same_dtype(c, "PaddingData", "X");
  check_shape(c, "PaddingData", Shape{context.before() + context.behind(), width});
}

In padding_of(const KernelArgs& op) { return op.attr<bool>("paddingTrainable") ? op.in("PaddingData") : In{}; }

int64_t infer_columns(const InferContext& c) {
  check_attrs(c);
  check_tensor(c, "X");
  check_rank(c, "X", 2, 2);
  check_rank(c, "Filter", 2, 2);
  check_same_dtype(c, "X", "Filter");
  const int64_t width = c.in("X").shape[1], wanted = width * c.attr<int32_t>("contextLength");
  if (width >= 0) check_shape(c, "Filter", Shape{wanted, kUnknown});
  check_padding(c, width);
  if (c.runtime()) lod_of(c, "X");
  return c.in("Filter").shape[1];
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("X"), filter = op.in("Filter"), padding = padding_of(op);
  const Out out = op.out("Out");
  const Context context(op.op());
  const auto gemm = std::make_shared<Gemm<T>>();
  const auto columns = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const int64_t rows = c[x].rows(), width = c[x].shape()[1], k = context.length * width;
    columns->resize(Shape{rows, k}, dtype_of<T>);
    gather_context(c, offsets(c[x]), context, c[x].data<T>(), width, columns->mutable_data<T>(),
                   padding ? c[padding].data<T>() : nullptr);
    gemm->run(c, {.m = rows, .n = c[filter].shape()[1], .k = k}, columns->data<T>(), c[filter].data<T>(),
              c[out].template mutable_data<T>());
  };
}

// Adds the columns up to the gradients of X and of what stands outside, of which each may be unwanted.
template <class T>
void scatter(const Offsets& o, const Context& context, const T* columns, int64_t width, T* dx, T* dpadding) {
  for (int64_t s = 0; s < count(o); ++s) {
    each_tap(o, context, s, [&](int64_t row, int64_t tap, int64_t source) {
      if (source < 0 ? !dpadding : !dx) return;
      const T* from = columns + (row * context.length + tap) * width;
      T* to = source < 0 ? dpadding + (-1 - source) * width : dx + source * width;
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    });
  }
}

template <class T> Kernel backward(const KernelArgs& op) {
  const In x = op.in("X"), filter = op.in("Filter"), dout = op.in("Out@GRAD"), padding = padding_of(op);
  const Out dx = op.out("X@GRAD"), dfilter = op.out("Filter@GRAD"), dpadding = op.out("PaddingData@GRAD");
  const Context context(op.op());
  const auto by_x = std::make_shared<Gemm<T>>(), by_filter = std::make_shared<Gemm<T>>();
  const auto columns = std::make_shared<Tensor>();
  return [=](KernelContext& c) {
    const int64_t rows = c[x].rows(), width = c[x].shape()[1], k = context.length * width, n = c[filter].shape()[1];
    columns->resize(Shape{rows, k}, dtype_of<T>);
    T* buffer = columns->mutable_data<T>();
    const T* g = c[dout].data<T>();
    if (c.wants(dfilter)) {
      gather_context(c, offsets(c[x]), context, c[x].data<T>(), width, buffer,
                     padding ? c[padding].data<T>() : nullptr);
      by_filter->run(c, {.m = k, .n = n, .k = rows, .trans_a = true}, buffer, g, c[dfilter].template mutable_data<T>());
    }
    T *to_x = zeroed<T>(c, dx), *to_padding = zeroed<T>(c, dpadding);
    if (to_x || (padding && to_padding)) {
      by_x->run(c, {.m = rows, .n = k, .k = n, .trans_b = true}, g, c[filter].data<T>(), buffer);
      scatter(offsets(c[x]), context, buffer, width, to_x, padding ? to_padding : nullptr);
    }
  };
}

AB_OP(sequence_conv)
    .doc(
        "Out[t] = [X[t + contextStart], ..., X[t + contextStart + contextLength - 1]] Filter, where rows outside the "
        "sequence are zero, or with paddingTrainable those of PaddingData.")
    .in("X", "[rows, width] float with sequences")
    .in_optional("PaddingData", "[rows before and behind a sequence that may be asked for, width]")
    .in("Filter", "[contextLength * width, columns]")
    .out("Out", "[rows, columns], with the sequences of X")
    .attr<bool>("paddingTrainable", false, "PaddingData stands outside of the sequences")
    .attr<int32_t>("contextLength", 1, "rows side by side")
    .attr<int32_t>("contextStart", 0, "the first of them, relative to the row")
    .attr<int32_t>("contextStride", 1, "1")
    .infer([](InferContext& c) {
      c.set_out("Out", Shape{c.in("X").shape[0], infer_columns(c)}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Filter", "PaddingData"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

AB_GRAD(sequence_conv)
    .doc("Gradients of sequence_conv by X, Filter and PaddingData.")
    .infer([](InferContext& c) {
      check_shape(c, "Out@GRAD", Shape{c.in("X").shape[0], infer_columns(c)});
      check_same_dtype(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X", "X");
      grad_as(c, "Filter@GRAD", "Filter");
      grad_as(c, "PaddingData@GRAD", "PaddingData");
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch::sequence
