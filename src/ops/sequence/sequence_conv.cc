// Convolution along the rows of each sequence: the rows around each row, concatenated, times a matrix.

#include "ops/device/args_sequence.h"
#include "ops/device/gemm.h"
#include "ops/device/scratch.h"
#include "ops/device/upload.h"
#include "ops/device/zeros.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/context.h"

namespace anabranch::sequence::sequence_conv_op {
namespace {

void check_attrs(const InferContext& c) {
  const int32_t length = c.attr<int32_t>("contextLength"), stride = c.attr<int32_t>("contextStride");
  AB_CHECK(length > 0, InvalidArgument, "contextLength must be at least 1, got {}", length);
  AB_CHECK(stride == 1, InvalidArgument, "contextStride must be 1, got {}", stride);
}

// The trainable padding before and after sequences.
void check_padding(const InferContext& c, int64_t width) {
  if (!c.attr<bool>("paddingTrainable")) return;
  AB_CHECK(c.has_in("PaddingData"), InvalidArgument, "PaddingData must be given if paddingTrainable is true");
  const Context context(c.op());
  check_rank(c, "PaddingData", 2, 2);
  check_same_dtype(c, "PaddingData", "X");
  check_shape(c, "PaddingData", Shape{context.before() + context.after(), width});
}

In padding_of(const KernelArgs& op) { return op.attr<bool>("paddingTrainable") ? op.in("PaddingData") : In{}; }

int64_t infer_columns(const InferContext& c) {
  check_attrs(c);
  check_rank(c, "X", 2, 2);
  check_rank(c, "Filter", 2, 2);
  check_same_dtype(c, "X", "Filter");
  const int64_t width = c.in("X").shape[1], needed = width * c.attr<int32_t>("contextLength");
  if (width >= 0) check_shape(c, "Filter", Shape{needed, kUnknown});
  check_padding(c, width);
  if (c.runtime()) lod_of(c, "X");
  return c.in("Filter").shape[1];
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
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
              c[out].mutable_data<T>());
  };
};

// Adds the columns to the gradients of X and of the padding; each may be null.
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

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
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
    if (c.needs(dfilter)) {
      gather_context(c, offsets(c[x]), context, c[x].data<T>(), width, buffer,
                     padding ? c[padding].data<T>() : nullptr);
      by_filter->run(c, {.m = k, .n = n, .k = rows, .trans_a = true}, buffer, g, c[dfilter].mutable_data<T>());
    }
    T *to_x = zeroed<T>(c, dx), *to_padding = zeroed<T>(c, dpadding);
    if (to_x || (padding && to_padding)) {
      by_x->run(c, {.m = rows, .n = k, .k = n, .trans_b = true}, g, c[filter].data<T>(), buffer);
      scatter(offsets(c[x]), context, buffer, width, to_x, padding ? to_padding : nullptr);
    }
  };
};

// ---- on devices

// The rows around each row side by side, in memory owned by the kernel, and back.
template <class T> class QueuedContext {
 public:
  explicit QueuedContext(const KernelArgs& op) : context_(op.op()) {}
  int64_t columns(int64_t width) const { return context_.length * width; }

  const Tensor& gather(const DeviceContext& c, const Tensor& x, const Tensor* padding) {
    device::ContextArgs a = args(c, x);
    Tensor& made = room(c, x);
    a.x = device::operand(x);
    if (padding) a.padding = device::operand(*padding);
    a.columns = device::operand(made);
    c.launch(gather_, a);
    return made;
  }
  // x: the tensor with LoD. Sums the contents of room(); results may be missing.
  void scatter(const DeviceContext& c, const Tensor& x, device::DeviceOut dx, device::DeviceOut dpadding) {
    device::ContextArgs a = args(c, x);
    a.x = device::operand(std::as_const(room(c, x)));
    a.columns = dx;
    a.dpadding = dpadding;
    c.launch(scatter_, a);
  }
  Tensor& room(const DeviceContext& c, const Tensor& x) {
    return columns_.of(c, Shape{x.rows(), columns(x.shape()[1])}, dtype_of<T>);
  }

 private:
  device::ContextArgs args(const DeviceContext& c, const Tensor& x) {
    device::ContextArgs a{};
    a.offsets = offsets_.of(c, offsets(x));
    a.sequences = count(offsets(x));
    a.rows = x.rows();
    a.width = x.shape()[1];
    a.length = context_.length;
    a.start = context_.start;
    return a;
  }

  Context context_;
  ab_kernel gather_ = device::kernel_of<T>("context"), scatter_ = device::kernel_of<T>("context_grad");
  device::Upload offsets_;
  device::Scratch columns_;
};

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [around = QueuedContext<T>(op), product = device::Gemm<T>(), x = op.in("X"), filter = op.in("Filter"),
          padding = padding_of(op), out = op.out("Out")](const DeviceContext& c) mutable {
    const Tensor& columns = around.gather(c, c[x], padding ? &c[padding] : nullptr);
    product.run(c, {.m = c[x].rows(), .n = c[filter].shape()[1], .k = columns.shape()[1]}, columns, c[filter], c[out]);
  };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [around = QueuedContext<T>(op), by_x = device::Gemm<T>(), by_filter = device::Gemm<T>(), x = op.in("X"),
          filter = op.in("Filter"), dout = op.in("Out@GRAD"), padding = padding_of(op), dx = op.out("X@GRAD"),
          dfilter = op.out("Filter@GRAD"), dpadding = op.out("PaddingData@GRAD")](const DeviceContext& c) mutable {
    const int64_t rows = c[x].rows(), k = around.columns(c[x].shape()[1]), n = c[filter].shape()[1];
    if (c.needs(dfilter)) {
      const Tensor& columns = around.gather(c, c[x], padding ? &c[padding] : nullptr);
      by_filter.run(c, {.m = k, .n = n, .k = rows, .trans_a = true}, columns, c[dout], c[dfilter]);
    }
    if (!padding) device::fill_zero_if_needed(c, dpadding);
    const device::DeviceOut to_x = device::needed_operand(c, dx);
    const device::DeviceOut to_padding = padding ? device::needed_operand(c, dpadding) : device::DeviceOut{};
    if (!to_x.there() && !to_padding.there()) return;
    by_x.run(c, {.m = rows, .n = k, .k = n, .trans_b = true}, c[dout], c[filter], around.room(c, c[x]));
    around.scatter(c, c[x], to_x, to_padding);
  };
};

void differentiate(GradContext& g) {
  auto op = g.op("sequence_conv_grad").in("X", g.in("X")).in("Filter", g.in("Filter")).in("Out@GRAD", g.dout("Out"));
  op.out("X@GRAD", g.din("X")).out("Filter@GRAD", g.din("Filter"));
  if (g.in("PaddingData").empty()) return;
  op.in("PaddingData", g.in("PaddingData")).out("PaddingData@GRAD", g.din("PaddingData"));
}

AB_OP(sequence_conv)
    .doc(
        "Out[t] = [X[t + contextStart], ..., X[t + contextStart + contextLength - 1]] Filter, where rows outside the "
        "sequence are zero, or with paddingTrainable those of PaddingData.")
    .in("X", "[rows, width] float with LoD")
    .in_optional("PaddingData", "[rows that windows reach before and after a sequence, width]")
    .in("Filter", "[contextLength * width, columns]")
    .out("Out", "[rows, columns], with the LoD of X")
    .attr<bool>("paddingTrainable", false, "uses PaddingData outside of the sequences")
    .attr<int32_t>("contextLength", 1, "number of rows in a window")
    .attr<int32_t>("contextStart", 0, "first row of the window, relative to the current row")
    .attr<int32_t>("contextStride", 1, "1")
    .infer([](InferContext& c) {
      c.set_out("Out", Shape{c.in("X").shape[0], infer_columns(c)}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Filter", "PaddingData"})
    .grad(differentiate)
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>(queued_forward);

AB_GRAD(sequence_conv)
    .doc("Gradients of sequence_conv with respect to X, Filter and PaddingData.")
    .infer([](InferContext& c) {
      check_shape(c, "Out@GRAD", Shape{c.in("X").shape[0], infer_columns(c)});
      check_same_dtype(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X", "X");
      grad_as(c, "Filter@GRAD", "Filter");
      grad_as(c, "PaddingData@GRAD", "PaddingData");
    })
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(queued_backward);

}  // namespace
}  // namespace anabranch::sequence::sequence_conv_op
