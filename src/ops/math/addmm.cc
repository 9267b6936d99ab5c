#include "ops/declare/declare.h"
#include "ops/device/gemm.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_math.h"
#include "ops/device/scratch.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/gemm.h"

namespace anabranch::math::addmm_op {
namespace {

OpDef& addmm_attrs(OpDef& def) {
  return def.ignores({"use_mkldnn"})
      .attr<float>("Alpha", 1.0f, "factor for the product")
      .attr<float>("Beta", 1.0f, "factor for Input");
}

Shape product_shape(const InferContext& c) {
  for (const char* slot : {"Input", "X", "Y"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "X");
  }
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape, &input = c.in("Input").shape;
  AB_CHECK(x[1] == y[0] || x[1] == kUnknown || y[0] == kUnknown, ShapeMismatch,
           "the inner extents of X and Y must be equal, got {} and {}", x.str(), y.str());
  const Shape out{x[0], y[1]};
  for (int axis = 0; axis < 2; ++axis) {
    AB_CHECK(input[axis] == 1 || input[axis] == kUnknown || out[axis] == kUnknown || input[axis] == out[axis],
             ShapeMismatch, "extents of Input must be 1 or those of the product {}, got {}", out.str(), input.str());
  }
  return out;
}

// Operand 0 is the product, 1 is Input, whose extents of 1 are broadcast.
NdLoop<2> repeated(const Shape& out, const Shape& input) {
  NdLoop<2> loop;
  loop.add_axis(out[0], {out[1], input[0] == 1 ? 0 : input[1]});
  loop.add_axis(out[1], {1, input[1] == 1 ? 0 : 1});
  return loop;
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const auto gemm = std::make_shared<Gemm<T>>(static_cast<double>(op.attr<float>("Alpha")));
  const T beta = static_cast<T>(op.attr<float>("Beta"));
  return [=, input = op.in("Input"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
    const Shape &a = c[x].shape(), &b = c[y].shape();
    T* to = c[out].mutable_data<T>();
    gemm->run(c, {.m = a[0], .n = b[1], .k = a[1]}, c[x].data<T>(), c[y].data<T>(), to);
    const T* from = c[input].data<T>();
    const NdLoop<2> loop = repeated(c[out].shape(), c[input].shape());
    const auto step = loop.inner_strides();
    loop.run(c, 32768, [=](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at[0] + i * step[0]] += beta * from[at[1] + i * step[1]];
    });
  };
};

template <class T> void add_up(const Tensor& dout, T beta, Tensor* dinput) {
  T* to = dinput->mutable_data<T>();
  std::fill(to, to + dinput->numel(), T{0});
  const T* g = dout.data<T>();
  const NdLoop<2> loop = repeated(dout.shape(), dinput->shape());
  const auto step = loop.inner_strides();
  if (loop.total() == 0) return;
  loop.each_run(0, loop.outer(), [&](const auto& at) {
    for (int64_t i = 0; i < loop.inner(); ++i) to[at[1] + i * step[1]] += beta * g[at[0] + i * step[0]];
  });
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const double alpha = static_cast<double>(op.attr<float>("Alpha"));
  const auto for_x = std::make_shared<Gemm<T>>(alpha), for_y = std::make_shared<Gemm<T>>(alpha);
  const T beta = static_cast<T>(op.attr<float>("Beta"));
  return [=, x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dinput = op.out("Input@GRAD"),
          dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](KernelContext& c) {
    const int64_t m = c[x].shape()[0], k = c[x].shape()[1], n = c[y].shape()[1];
    const T* g = c[dout].data<T>();
    if (c.needs(dx)) {
      for_x->run(c, {.m = m, .n = k, .k = n, .trans_b = true}, g, c[y].data<T>(), c[dx].mutable_data<T>());
    }
    if (c.needs(dy)) {
      for_y->run(c, {.m = k, .n = n, .k = m, .trans_a = true}, c[x].data<T>(), g, c[dy].mutable_data<T>());
    }
    if (c.needs(dinput)) add_up<T>(c[dout], beta, &c[dinput]);
  };
};

// ---- on devices

template <class T> class TimesBeta {
 public:
  explicit TimesBeta(const KernelArgs& op) : beta_(static_cast<device::Compute<T>>(op.attr<float>("Beta"))) {}
  bool changes() const { return beta_ != 1; }
  void run(const DeviceContext& c, const Tensor& x, Tensor& y) const {
    device::ScalarArgs a{};
    device::put(a, 0, beta_);
    device::launch_scalar(c, kernel_, a, x, y);
  }

 private:
  device::Compute<T> beta_;
  ab_kernel kernel_ = device::kernel_of<T>("scalar/scale");
};

constexpr auto forward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [product = device::Gemm<T>(static_cast<double>(op.attr<float>("Alpha"))),
          add = device::kernel_of<T>("binary/add"), times = TimesBeta<T>(op), scratch = device::Scratch(),
          input = op.in("Input"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](const DeviceContext& c) mutable {
    const Shape &a = c[x].shape(), &b = c[y].shape();
    product.run(c, {.m = a[0], .n = b[1], .k = a[1]}, c[x], c[y], c[out]);
    const Tensor* term = &c[input];
    if (times.changes()) {
      Tensor& made = scratch.of(c, term->shape(), dtype_of<T>);
      times.run(c, *term, made);
      term = &made;
    }
    const auto loop = broadcast_loop(c[out].shape(), c[out].shape(), term->shape(), -1);
    c.launch(add, device::BinaryArgs{device::operand(std::as_const(c[out])),
                                     device::operand(*term),
                                     device::operand(c[out]),
                                     device::axes_of(loop),
                                     {}});
  };
};

constexpr auto backward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const double alpha = static_cast<double>(op.attr<float>("Alpha"));
  return [for_x = device::Gemm<T>(alpha), for_y = device::Gemm<T>(alpha), sum = device::kernel_of<T>("fold_axes/sum"),
          times = TimesBeta<T>(op), x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"),
          dinput = op.out("Input@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) mutable {
    const int64_t m = c[x].shape()[0], k = c[x].shape()[1], n = c[y].shape()[1];
    if (c.needs(dx)) for_x.run(c, {.m = m, .n = k, .k = n, .trans_b = true}, c[dout], c[y], c[dx]);
    if (c.needs(dy)) for_y.run(c, {.m = k, .n = n, .k = m, .trans_a = true}, c[x], c[dout], c[dy]);
    if (!c.needs(dinput)) return;
    device::launch_fold(c, sum, c[dout], c[dout].shape(), c[dinput].shape(), c[dinput]);
    if (times.changes()) times.run(c, c[dinput], c[dinput]);
  };
};

AB_OP(addmm)
    .doc("Matrix product plus a matrix: Out = Alpha X Y + Beta Input.")
    .in("Input", "[M, N] float; extents of 1 are broadcast")
    .in("X", "[M, K], dtype of Input")
    .in("Y", "[K, N], dtype of Input")
    .out("Out", "[M, N], dtype of Input")
    .with(addmm_attrs)
    .infer([](InferContext& c) {
      c.set_out("Out", product_shape(c), c.in("X").dtype);
      share_fitting_lod(c, "Out", "Input");
    })
    .grad_reads({"Input", "X", "Y"})
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>(forward_there);

AB_GRAD(addmm)
    .doc("Gradients of addmm.")
    .grad_lod("Input@GRAD", "Out@GRAD")
    .grad_lod("X@GRAD", "X")
    .grad_lod("Y@GRAD", "Y")
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(backward_there);

}  // namespace
}  // namespace anabranch::math::addmm_op
