// Bilinear forms: products of two vectors with each of several matrices between them.
#include <array>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/math/bilinear_on_device.h"

namespace anabranch::math::bilinear_tensor_product_op {
namespace {

void infer_bilinear(InferContext& c) {
  for (const char* slot : {"X", "Y", "Weight"}) check_same_dtype(c, "X", slot);
  check_rank(c, "X", 2, 2);
  check_rank(c, "Y", 2, 2);
  check_rank(c, "Weight", 3, 3);
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  AB_CHECK(compatible(Shape{x[0]}, Shape{y[0]}), ShapeMismatch, "Y must have the number of rows of X {}, got {}",
           x.str(), y.str());
  const int64_t m = c.in("Weight").shape[0];
  check_shape(c, "Weight", Shape{m, x[1], y[1]});
  if (c.has_in("Bias")) {
    check_same_dtype(c, "X", "Bias");
    check_shape(c, "Bias", Shape{1, m});
  }
  c.set_out("Out", Shape{x[0], m}, c.in("X").dtype);
  c.share_lod("Out", "X");
}

// to = rows of `from`, each times its number in column k of `by`.
template <class T>
void scale_rows(const KernelContext& c, const T* from, const T* by, int64_t k, int64_t columns, int64_t rows,
                int64_t width, T* to) {
  c.parallel_each(rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)), [=](int64_t r) {
    for (int64_t i = 0; i < width; ++i) to[r * width + i] = from[r * width + i] * by[r * columns + k];
  });
}

template <class T> void add_to(const KernelContext& c, const T* from, T* to, int64_t n) {
  map(c, kCheapGrain, n, from, to, to, [](T a, T b) { return a + b; });
}

constexpr auto forward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [add = device::kernel_of<T>("binary/add"), parts = BilinearThere<T>(), x = op.in("X"), y = op.in("Y"),
          w = op.in("Weight"), bias = op.in("Bias"), out = op.out("Out")](const DeviceContext& c) mutable {
    const BilinearSizes s(c[x].shape(), c[w].shape());
    Tensor& terms = parts.times_weights(c, s, c[x], c[w], false);
    parts.multiply(c, s, terms, c[y], false, terms);
    parts.sum_rows(c, s, terms, c[out]);
    if (!bias) return;
    const auto loop = broadcast_loop(c[out].shape(), c[out].shape(), c[bias].shape(), -1);
    c.launch(add, device::BinaryArgs{device::operand(std::as_const(c[out])),
                                     device::operand(c[bias]),
                                     device::operand(c[out]),
                                     device::axes_of(loop),
                                     {}});
  };
};

// One part per result: the shapes that their products are planned for do not change from step to step.
constexpr auto backward_there = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [parts = std::make_unique<std::array<BilinearThere<T>, 3>>(), x = op.in("X"), y = op.in("Y"),
          w = op.in("Weight"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
          dw = op.out("Weight@GRAD"), db = op.out("Bias@GRAD")](const DeviceContext& c) {
    const BilinearSizes s(c[x].shape(), c[w].shape());
    auto& [of_x, of_y, of_w] = *parts;
    if (c.needs(dx)) of_x.side(c, s, c[y], c[w], true, c[dout], c[dx]);
    if (c.needs(dy)) of_y.side(c, s, c[x], c[w], false, c[dout], c[dy]);
    if (c.needs(dw)) of_w.weights(c, s, c[x], c[y], c[dout], c[dw]);
    if (c.needs(db)) of_w.sum_first(c, c[dout], c[db]);
  };
};

void differentiate(GradContext& g) {
  auto op = g.op("bilinear_tensor_product_grad").in("Out@GRAD", g.dout("Out"));
  for (const char* slot : {"X", "Y", "Weight"}) op.in(slot, g.in(slot));
  if (!g.in("Bias").empty()) op.in("Bias", g.in("Bias"));
  for (const char* slot : {"X", "Y", "Weight", "Bias"}) op.out(ir::grad_name(slot), g.din(slot));
}

AB_OP(bilinear_tensor_product)
    .doc("Out[n, k] = X[n] Weight[k] Y[n] + Bias[k].")
    .in("X", "[N, P] float")
    .in("Y", "[N, Q] like X")
    .in("Weight", "[K, P, Q] like X, one matrix per result")
    .in_optional("Bias", "[1, K] like X")
    .out("Out", "[N, K]")
    .infer(infer_bilinear)
    .grad_reads({"X", "Y", "Weight", "Bias"})
    .grad(differentiate)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), w = op.in("Weight"), bias = op.in("Bias"), out = op.out("Out"),
              gemm = std::make_shared<Gemm<T>>(), scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const BilinearSizes s(c[x].shape(), c[w].shape());
        scratch->resize(Shape{s.n, s.dy}, dtype_of<T>);
        T *left = scratch->mutable_data<T>(), *to = c[out].mutable_data<T>();
        const T *ys = c[y].data<T>(), *b = bias ? c[bias].data<T>() : nullptr;
        for (int64_t k = 0; k < s.m; ++k) {
          gemm->run(c, {.m = s.n, .n = s.dy, .k = s.dx}, c[x].data<T>(), c[w].data<T>() + k * s.dx * s.dy, left);
          c.parallel_each(s.n, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, s.dy)), [=](int64_t r) {
            T sum = b ? b[k] : T{0};
            for (int64_t i = 0; i < s.dy; ++i) sum += left[r * s.dy + i] * ys[r * s.dy + i];
            to[r * s.m + k] = sum;
          });
        }
      };
    })
    .device<float, double, float16, bfloat16>(forward_there);

// The parts of the gradient kernel and the state that they keep between steps.
template <class T> struct BilinearGrad {
  In x, y, w, dout;
  Out dx, dy, dw, db;
  Gemm<T> forward, backward, weight;
  Tensor scaled, product;

  // to = the sum over k of rows of `from`, scaled by dOut, times Weight[k] or its transpose.
  void side(const KernelContext& c, const BilinearSizes& s, const Tensor& from, bool transposed, Gemm<T>* gemm, T* to) {
    const int64_t in = transposed ? s.dy : s.dx, width = transposed ? s.dx : s.dy;
    scaled.resize(Shape{s.n, in}, dtype_of<T>);
    product.resize(Shape{s.n, width}, dtype_of<T>);
    T *rows = scaled.mutable_data<T>(), *part = product.mutable_data<T>();
    for (int64_t k = 0; k < s.m; ++k) {
      scale_rows(c, from.data<T>(), c[dout].data<T>(), k, s.m, s.n, in, rows);
      gemm->run(c, {.m = s.n, .n = width, .k = in, .trans_b = transposed}, rows, c[w].data<T>() + k * s.dx * s.dy,
                part);
      add_to(c, part, to, s.n * width);
    }
  }

  void weights(const KernelContext& c, const BilinearSizes& s, T* to) {
    scaled.resize(Shape{s.n, s.dx}, dtype_of<T>);
    T* rows = scaled.mutable_data<T>();
    for (int64_t k = 0; k < s.m; ++k) {
      scale_rows(c, c[x].data<T>(), c[dout].data<T>(), k, s.m, s.n, s.dx, rows);
      weight.run(c, {.m = s.dx, .n = s.dy, .k = s.n, .trans_a = true}, rows, c[y].data<T>(), to + k * s.dx * s.dy);
    }
  }

  void run(const KernelContext& c) {
    const BilinearSizes s(c[x].shape(), c[w].shape());
    if (T* to = zeroed<T>(c, dx)) side(c, s, c[y], true, &backward, to);
    if (T* to = zeroed<T>(c, dy)) side(c, s, c[x], false, &forward, to);
    if (T* to = zeroed<T>(c, dw)) weights(c, s, to);
    if (T* to = zeroed<T>(c, db)) {
      const T* d = c[dout].data<T>();
      for (int64_t i = 0; i < s.n * s.m; ++i) to[i % s.m] += d[i];
    }
  }
};

AB_GRAD(bilinear_tensor_product)
    .doc(
        "The gradients of X[n] Weight[k] Y[n] + Bias[k] with respect to its factors and Bias, each times Out@GRAD[n, "
        "k] and summed.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      auto grad = std::make_shared<BilinearGrad<T>>();
      grad->x = op.in("X"), grad->y = op.in("Y"), grad->w = op.in("Weight"), grad->dout = op.in("Out@GRAD");
      grad->dx = op.out("X@GRAD"), grad->dy = op.out("Y@GRAD"), grad->dw = op.out("Weight@GRAD");
      grad->db = op.out("Bias@GRAD");
      return [grad](KernelContext& c) { grad->run(c); };
    })
    .device<float, double, float16, bfloat16>(backward_there);

}  // namespace
}  // namespace anabranch::math::bilinear_tensor_product_op
