// Losses of the distance between predictions and targets: Huber, and the smooth L1 loss of detection networks.

#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_loss.h"
#include "ops/device/scratch.h"
#include "ops/loss/loss_functions.h"
#include "ops/loss/sides.h"

namespace anabranch::loss::regression_op {
namespace {

AB_OP(huber_loss)
    .doc("With r = Y - X: Out = r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2).")
    .source("Huber 1964, doi:10.1214/aoms/1177703732")
    .in("X", "[N, 1] float predictions")
    .in("Y", "like X, targets")
    .out_intermediate("Residual", "Y - X")
    .out("Out", "like X")
    .attr<float>("delta", 1.0f, "residual above which the loss is linear")
    .infer([](InferContext& c) {
      check_same(c, "X", "Y");
      c.same_as("Out", "X");
      c.same_shape("Residual", "X");
    })
    .grad_reads({}, {"Residual"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), y = op.in("Y");
      const Out residual = op.out("Residual"), out = op.out("Out");
      const T delta = static_cast<T>(op.attr<float>("delta"));
      return [=](KernelContext& c) {
        const T *p = c[x].data<T>(), *q = c[y].data<T>();
        T *r = c[residual].mutable_data<T>(), *to = c[out].mutable_data<T>();
        for (int64_t i = 0, n = c[x].numel(); i < n; ++i) {
          r[i] = q[i] - p[i];
          to[i] = Huber::forward(r[i], &delta);
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [subtract = device::kernel_of<T>("binary/sub"), huber = device::kernel_of<T>("map/huber"), x = op.in("X"),
              y = op.in("Y"), residual = op.out("Residual"), out = op.out("Out"),
              delta = static_cast<double>(op.attr<float>("delta"))](const DeviceContext& c) {
        device::launch_pairs(c, subtract, c[y], c[x], c[residual]);
        device::launch_map(c, huber, c[residual], c[out], delta);
      };
    });

AB_GRAD(huber_loss)
    .doc("Gradients of huber_loss: Out@GRAD times the residual clipped to +-delta, with the sign of each side.")
    .infer([](InferContext& c) {
      check_same(c, "Residual", "Out@GRAD");
      grad_as(c, "X@GRAD", "Residual");
      grad_as(c, "Y@GRAD", "Residual");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In residual = op.in("Residual"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD"), dy = op.out("Y@GRAD");
      const T delta = static_cast<T>(op.attr<float>("delta"));
      return [=](KernelContext& c) {
        const T *r = c[residual].data<T>(), *g = c[dout].data<T>();
        write_sides<T>(c, dy, dx, c[residual].numel(), [=](int64_t i) { return Huber::backward(r[i], g[i], &delta); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [slope = device::kernel_of<T>("map_grad/huber"), residual = op.in("Residual"), dout = op.in("Out@GRAD"),
              sides = device::BothSides<T>(op.out("Y@GRAD"), op.out("X@GRAD")),
              delta = static_cast<double>(op.attr<float>("delta"))](const DeviceContext& c) mutable {
        sides.run(c, [&](Tensor& made) { device::launch_map_grad(c, slope, c[residual], c[dout], made, delta); });
      };
    });

// ---- smooth_l1_loss

// Rows of a tensor: [samples, values of a sample].
struct Rows {
  int64_t count, width;
  explicit Rows(const Tensor& t) : count(t.shape()[0]), width(t.row_elems()) {}
};

void check_weights(const InferContext& c, const char* like) {
  for (const char* slot : {"InsideWeight", "OutsideWeight"}) {
    if (c.has_in(slot)) check_same(c, slot, like);
  }
}

template <class T> const T* optional_data(KernelContext& c, In in) { return in ? c[in].data<T>() : nullptr; }

AB_OP(smooth_l1_loss)
    .doc(
        "With d = (X - Y) InsideWeight and s = sigma^2: Out = sum over a sample of OutsideWeight times (s d^2 / 2 "
        "where |d| < 1 / s, else |d| - 1 / (2 s)).")
    .source("Girshick, ICCV 2015, arXiv:1504.08083")
    .in("X", "[N, ...] float predictions")
    .in("Y", "like X, targets")
    .in_optional("InsideWeight", "like X; 1 if not given")
    .in_optional("OutsideWeight", "like X; 1 if not given")
    .out_intermediate("Diff", "(X - Y) InsideWeight")
    .out("Out", "[N, 1]")
    .attr<float>("sigma", 1.0f, "scale of the quadratic part")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, kMaxRank);
      check_same(c, "X", "Y");
      check_weights(c, "X");
      c.same_shape("Diff", "X");
      c.set_out("Out", Shape{c.in("X").shape[0], 1}, c.in("X").dtype);
    })
    .grad_reads({"InsideWeight", "OutsideWeight"}, {"Diff"})
    .grad_to({"X", "Y"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), y = op.in("Y"), inside = op.in("InsideWeight"), outside = op.in("OutsideWeight");
      const Out diff = op.out("Diff"), out = op.out("Out");
      const T sigma = static_cast<T>(op.attr<float>("sigma")), square = sigma * sigma;
      return [=](KernelContext& c) {
        const Rows rows(c[x]);
        const T *p = c[x].data<T>(), *q = c[y].data<T>();
        const T *in_w = optional_data<T>(c, inside), *out_w = optional_data<T>(c, outside);
        T *d = c[diff].mutable_data<T>(), *to = c[out].mutable_data<T>();
        for (int64_t r = 0; r < rows.count; ++r) {
          T sum = 0;
          for (int64_t i = r * rows.width; i < (r + 1) * rows.width; ++i) {
            d[i] = (p[i] - q[i]) * (in_w ? in_w[i] : T{1});
            sum += SmoothL1::forward(d[i], &square) * (out_w ? out_w[i] : T{1});
          }
          to[r] = sum;
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto sigma = static_cast<device::Compute<T>>(op.attr<float>("sigma"));
      return [subtract = device::kernel_of<T>("binary/sub"), multiply = device::kernel_of<T>("binary/mul"),
              smooth = device::kernel_of<T>("map/smooth_l1"), sum = device::kernel_of<T>("fold_axes/sum"),
              scratch = device::Scratch(), x = op.in("X"), y = op.in("Y"), inside = op.in("InsideWeight"),
              outside = op.in("OutsideWeight"), diff = op.out("Diff"), out = op.out("Out"),
              square = static_cast<double>(sigma * sigma)](const DeviceContext& c) mutable {
        const Shape all = {c[x].rows(), c[x].row_elems()};
        Tensor& terms = scratch.of(c, all, dtype_of<T>);
        device::launch_pairs(c, subtract, c[x], c[y], c[diff]);
        if (inside) device::launch_pairs(c, multiply, c[diff], c[inside], c[diff]);
        device::launch_map(c, smooth, c[diff], terms, square);
        if (outside) device::launch_pairs(c, multiply, terms, c[outside], terms);
        device::launch_fold(c, sum, terms, all, Shape{all[0], 1}, c[out]);
      };
    });

AB_GRAD(smooth_l1_loss)
    .doc("Gradients of smooth_l1_loss with respect to X and Y.")
    .dtype_of_input("Diff")
    .infer([](InferContext& c) {
      check_rank(c, "Diff", 2, kMaxRank);
      check_weights(c, "Diff");
      check_numel(c, "Out@GRAD", c.in("Diff").shape[0]);
      check_same_dtype(c, "Diff", "Out@GRAD");
      grad_as(c, "X@GRAD", "Diff");
      grad_as(c, "Y@GRAD", "Diff");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In diff = op.in("Diff"), dout = op.in("Out@GRAD"), inside = op.in("InsideWeight"),
               outside = op.in("OutsideWeight");
      const Out dx = op.out("X@GRAD"), dy = op.out("Y@GRAD");
      const T sigma = static_cast<T>(op.attr<float>("sigma")), square = sigma * sigma;
      return [=](KernelContext& c) {
        const Rows rows(c[diff]);
        const T *d = c[diff].data<T>(), *g = c[dout].data<T>();
        const T *in_w = optional_data<T>(c, inside), *out_w = optional_data<T>(c, outside);
        write_sides<T>(c, dx, dy, rows.count * rows.width, [=](int64_t i) {
          const T slope = SmoothL1::slope(d[i], &square);
          return g[i / rows.width] * slope * (in_w ? in_w[i] : T{1}) * (out_w ? out_w[i] : T{1});
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto sigma = static_cast<device::Compute<T>>(op.attr<float>("sigma"));
      return [spread = device::kernel_of<T>("fold_axes_grad/sum"), multiply = device::kernel_of<T>("binary/mul"),
              slope = device::kernel_of<T>("map_grad/smooth_l1"), diff = op.in("Diff"), dout = op.in("Out@GRAD"),
              inside = op.in("InsideWeight"), outside = op.in("OutsideWeight"),
              sides = device::BothSides<T>(op.out("X@GRAD"), op.out("Y@GRAD")),
              square = static_cast<double>(sigma * sigma)](const DeviceContext& c) mutable {
        const Shape all = {c[diff].rows(), c[diff].row_elems()};
        sides.run(c, [&](Tensor& made) {
          device::launch_fold_grad(c, spread, nullptr, nullptr, c[dout], all, Shape{all[0], 1}, made);
          if (inside) device::launch_pairs(c, multiply, made, c[inside], made);
          if (outside) device::launch_pairs(c, multiply, made, c[outside], made);
          device::launch_map_grad(c, slope, c[diff], made, made, square);
        });
      };
    });

}  // namespace
}  // namespace anabranch::loss::regression_op
