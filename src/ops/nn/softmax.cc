// Softmax and its logarithm over one axis.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/nn/softmax_block.h"

namespace anabranch::nn::softmax_op {
namespace {

void infer(InferContext& c) {
  normal_axis(c.attr<int32_t>("axis"), c.in("X").shape.rank(), "axis");
  c.same_as("Out", "X");
}

void infer_grad(InferContext& c) {
  check_same(c, "Out", "Out@GRAD");
  normal_axis(c.attr<int32_t>("axis"), c.in("Out").shape.rank(), "axis");
  grad_as(c, "X@GRAD", "Out");
}

// The logarithm of the softmax, which out holds temporarily.
template <class T> void log_softmax_block(const T* x, int64_t classes, int64_t inner, T* out) {
  softmax_block(x, classes, inner, out, [=](int64_t first, int64_t columns, const Norm<T>* norms) {
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t row = k * inner + first;
      for (int64_t j = 0; j < columns; ++j) out[row + j] = norms[j].log_softmax(x[row + j]);
    }
  });
}

template <class T> void log_softmax_blocks(const T* x, int64_t blocks, int64_t classes, int64_t inner, T* out) {
  const int64_t block = classes * inner;
  for (int64_t i = 0; i < blocks; ++i) log_softmax_block(x + i * block, classes, inner, out + i * block);
}

// dx = dy - exp(y) sum_k dy
template <class T> void log_softmax_grad_block(const T* y, const T* dy, int64_t classes, int64_t inner, T* dx) {
  T sum[kSoftmaxColumns];
  for (int64_t from = 0; from < inner; from += kSoftmaxColumns) {
    const int64_t columns = std::min(kSoftmaxColumns, inner - from);
    std::fill(sum, sum + columns, T{0});
    for (int64_t k = 0; k < classes; ++k) {
      for (int64_t j = 0; j < columns; ++j) sum[j] += dy[k * inner + from + j];
    }
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t row = k * inner + from;
      for (int64_t j = 0; j < columns; ++j) dx[row + j] = dy[row + j] - std::exp(y[row + j]) * sum[j];
    }
  }
}

// blocks(x, count, classes, inner, out): for `count` blocks.
template <class T, class Blocks> Kernel forward(const KernelArgs& op, Blocks blocks) {
  const In x = op.in("X");
  const Out out = op.out("Out");
  const int axis = op.attr<int32_t>("axis");
  return [=](KernelContext& c) {
    const ClassAxis a(c[x].shape(), axis);
    const T* from = c[x].data<T>();
    T* to = c[out].mutable_data<T>();
    c.parallel_for(a.blocks(), a.grain(), [&](int64_t begin, int64_t end) {
      blocks(from + begin * a.block(), end - begin, a.classes, a.inner, to + begin * a.block());
    });
  };
}

template <class T>
void log_softmax_grad_blocks(const T* y, const T* dy, int64_t blocks, int64_t classes, int64_t inner, T* dx) {
  const int64_t block = classes * inner;
  for (int64_t i = 0; i < blocks; ++i) {
    log_softmax_grad_block(y + i * block, dy + i * block, classes, inner, dx + i * block);
  }
}

template <class T, class Blocks> Kernel backward(const KernelArgs& op, Blocks blocks) {
  const In y = op.in("Out"), dy = op.in("Out@GRAD");
  const Out dx = op.out("X@GRAD");
  const int axis = op.attr<int32_t>("axis");
  return [=](KernelContext& c) {
    const ClassAxis a(c[y].shape(), axis);
    const T *value = c[y].data<T>(), *grad = c[dy].data<T>();
    T* to = c[dx].mutable_data<T>();
    c.parallel_for(a.blocks(), a.grain(), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * a.block();
      blocks(value + at, grad + at, end - begin, a.classes, a.inner, to + at);
    });
  };
}

// By the device kernel "<op>/<type>". x: X, or Out for a gradient, which has `dout`, too.
template <class T> Kernel on_device(const KernelArgs& op, const char* x_slot, const char* dout_slot, const char* to) {
  return [kernel = device::kernel_of<T>(op.op().type), axis = op.attr<int32_t>("axis"), x = op.in(x_slot),
          dout = dout_slot ? op.in(dout_slot) : In(), y = op.out(to)](const DeviceContext& c) {
    const ClassAxis axes(c[x].shape(), axis);
    device::ClassArgs a{};
    a.x = device::operand(c[x]);
    if (dout) a.dy = device::operand(c[dout]);
    a.y = device::operand(c[y]);
    a.outer = axes.outer, a.classes = axes.classes, a.inner = axes.inner;
    c.launch(kernel, a);
  };
}
constexpr auto forward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return on_device<T>(op, "X", nullptr, "Out");
};
constexpr auto backward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return on_device<T>(op, "Out", "Out@GRAD", "X@GRAD");
};

AB_OP(softmax)
    .doc("Softmax along `axis`: Out = exp(X) / sum(exp(X)), where X is at least its maximum on the axis minus 64.")
    .in("X", "[...] float")
    .out("Out", "like X")
    .may_share("X", "Out")
    .attr<int32_t>("axis", -1,
                   "axis along which the elements of the result sum to 1; a negative axis counts from the last")
    .ignores({"use_cudnn", "use_mkldnn", "data_format", "is_test"})
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return forward<T>(op, softmax_blocks<T>);
    })
    .device<float, double, float16, bfloat16>(forward_on_device);

AB_GRAD(softmax)
    .doc("X@GRAD = Out (Out@GRAD - sum(Out Out@GRAD)) over `axis`.")
    .grad(second_order::through([](second_order::Ops& o) {
      const std::string out = o.in("Out"), dout = o.in("Out@GRAD");
      const std::string whole = o.sum(o.mul(dout, out), {o.attr<int32_t>("axis")}, true);
      o.is("X@GRAD", o.mul(o.sub(dout, whole), out));
    }))
    .may_share("Out@GRAD", "X@GRAD")
    .infer(infer_grad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return backward<T>(op, softmax_grad_blocks<T>);
    })
    .device<float, double, float16, bfloat16>(backward_on_device);

AB_OP(log_softmax)
    .doc("Out = X - log(sum(exp(X))) over `axis`, with X bounded below by 64 less than its maximum on the axis.")
    .in("X", "[...] float")
    .out("Out", "like X")
    .attr<int32_t>("axis", -1, "axis whose exponentials sum to 1")
    .infer(infer)
    .grad_reads({}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return forward<T>(op, log_softmax_blocks<T>);
    })
    .device<float, double, float16, bfloat16>(forward_on_device);

AB_GRAD(log_softmax)
    .doc("X@GRAD = Out@GRAD - exp(Out) sum(Out@GRAD) over `axis`.")
    .grad(second_order::through([](second_order::Ops& o) {
      const std::string dout = o.in("Out@GRAD"), whole = o.sum(dout, {o.attr<int32_t>("axis")}, true);
      o.is("X@GRAD", o.sub(dout, o.mul(o.unary("exp", o.in("Out")), whole)));
    }))
    .may_share("Out@GRAD", "X@GRAD")
    .infer(infer_grad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return backward<T>(op, log_softmax_grad_blocks<T>);
    })
    .device<float, double, float16, bfloat16>(backward_on_device);

}  // namespace
}  // namespace anabranch::nn::softmax_op
