// Losses of the order of two scores, and of one class against all others.
#include <memory>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/sums.h"
#include "ops/loss/classes.h"
#include "ops/loss/logistic_tiles.h"
#include "ops/loss/sides.h"

namespace anabranch::loss::ranking_op {
namespace {

void infer_rank_loss(InferContext& c) {
  const Shape rows{c.in("Label").shape.rank() > 0 ? c.in("Label").shape[0] : 1};
  for (const char* slot : {"Label", "Left", "Right"}) {
    const Shape& shape = c.in(slot).shape;
    AB_CHECK(compatible(shape, rows) || compatible(shape, Shape{rows[0], 1}), ShapeMismatch,
             "{} must be [{}] or [{}, 1], got {}", slot, rows[0], rows[0], shape.str());
    check_same_dtype(c, "Label", slot);
  }
  c.same_shape("Out", "Label");
}

AB_OP(rank_loss)
    .doc(
        "RankNet loss: Out = log(1 + e^d) - Label d with d = Left - Right, where Label is the probability that Left "
        "ranks before Right.")
    .source("Burges et al., ICML 2005, doi:10.1145/1102351.1102363")
    .in("Label", "[N] or [N, 1] float: probabilities in [0, 1]")
    .in("Left", "[N] or [N, 1] float: scores")
    .in("Right", "[N] or [N, 1] float: scores")
    .out("Out", "like Label")
    .dtype_of_input("Left")
    .infer(infer_rank_loss)
    .grad_reads({"Label", "Left", "Right"})
    .grad_to({"Left", "Right"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In label = op.in("Label"), left = op.in("Left"), right = op.in("Right");
      const Out out = op.out("Out");
      return [=](KernelContext& c) {
        const T *y = c[label].data<T>(), *a = c[left].data<T>(), *b = c[right].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[left].numel(), kMathGrain, [=](int64_t begin, int64_t end) {
          with_softplus(
              begin, end, to, [=](int64_t i) { return a[i] - b[i]; },
              [=](int64_t i, T t) { return t - y[i] * (a[i] - b[i]); });
        });
      };
    });

AB_GRAD(rank_loss)
    .doc("Left@GRAD = (sigmoid(Left - Right) - Label) Out@GRAD, Right@GRAD its negative.")
    .dtype_of_input("Left")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In label = op.in("Label"), left = op.in("Left"), right = op.in("Right"), dout = op.in("Out@GRAD");
      const Out dleft = op.out("Left@GRAD"), dright = op.out("Right@GRAD");
      return [=](KernelContext& c) {
        const T *y = c[label].data<T>(), *a = c[left].data<T>(), *b = c[right].data<T>(), *g = c[dout].data<T>();
        write_sides<T>(c, dleft, dright, c[left].numel(),
                       [=](int64_t i) { return g[i] * (logistic(a[i] - b[i]) - y[i]); });
      };
    });

AB_OP(margin_rank_loss)
    .doc("Out = max(0, margin - Label (X1 - X2)); Label 1 means X1 above X2, -1 below.")
    .in("X1", "[N, 1] float")
    .in("X2", "[N, 1] float")
    .in("Label", "[N, 1] float, 1 or -1")
    .out_intermediate("Activated", "[N, 1]: 1 where the loss is above 0")
    .out("Out", "[N, 1]")
    .attr<float>("margin", 0.0f, "margin between the scores")
    .infer([](InferContext& c) {
      check_same(c, "X1", "X2");
      check_same(c, "X1", "Label");
      c.same_shape("Out", "X1");
      c.same_shape("Activated", "X1");
    })
    .grad_reads({"Label"}, {"Activated"})
    .grad_to({"X1", "X2"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x1 = op.in("X1"), x2 = op.in("X2"), label = op.in("Label");
      const Out activated = op.out("Activated"), out = op.out("Out");
      const T margin = static_cast<T>(op.attr<float>("margin"));
      return [=](KernelContext& c) {
        const T *a = c[x1].data<T>(), *b = c[x2].data<T>(), *y = c[label].data<T>();
        T *on = c[activated].mutable_data<T>(), *to = c[out].mutable_data<T>();
        for (int64_t i = 0, n = c[x1].numel(); i < n; ++i) {
          const T value = margin - y[i] * (a[i] - b[i]);
          on[i] = value > 0 ? T{1} : T{0};
          to[i] = value < 0 ? T{0} : value;  // keeps NaN
        }
      };
    });

AB_GRAD(margin_rank_loss)
    .doc("X1@GRAD = -Label Out@GRAD where the loss is above 0, X2@GRAD its negative.")
    .infer([](InferContext& c) {
      check_same(c, "Label", "Activated");
      check_same(c, "Label", "Out@GRAD");
      for (const char* slot : {"X1@GRAD", "X2@GRAD"}) grad_as(c, slot, "Label");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In label = op.in("Label"), activated = op.in("Activated"), dout = op.in("Out@GRAD");
      const Out dx1 = op.out("X1@GRAD"), dx2 = op.out("X2@GRAD");
      return [=](KernelContext& c) {
        const T *y = c[label].data<T>(), *on = c[activated].data<T>(), *g = c[dout].data<T>();
        write_sides<T>(c, dx2, dx1, c[label].numel(), [=](int64_t i) { return g[i] * y[i] * on[i]; });
      };
    });

// ---- bpr_loss: one score against each of the others of a row

// The sum over the classes except `own` of log(1 + e^(x - x[own])).
double others_of(const float* x, int64_t classes, int64_t own) {
  double sum = 0;
  each_tile(
      0, classes, simd::softplus, [=](int64_t k) { return x[k] - x[own]; },
      [&](int64_t first, int64_t count, const float* t) {
        sum += sum_of<double>(count, [=](int64_t k) { return first + k == own ? 0.0 : static_cast<double>(t[k]); });
      });
  return sum;
}
double others_of(const double* x, int64_t classes, int64_t own) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += k == own ? 0.0 : softplus(x[k] - x[own]);
  return sum;
}

int64_t row_grain(const ClassAxis& a) { return std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, a.classes)); }

void infer_bpr(InferContext& c) {
  const Shape one = infer_classes(c, "X", false, -1), &x = c.in("X").shape;
  AB_CHECK(x[x.rank() - 1] != 1, InvalidArgument, "X must have at least two classes, got {}", x.str());
  c.set_out("Y", one, c.in("X").dtype);
  c.share_lod("Y", "X");
}

AB_OP(bpr_loss)
    .doc(
        "Bayesian personalized ranking loss: Y = mean of log(1 + e^(X[j] - X[Label])) over all classes j except Label.")
    .source("Rendle et al., UAI 2009, arXiv:1205.2618")
    .in("X", "[N, ..., classes] float: scores")
    .in("Label", "[N, ..., 1] int64: the class that must rank first")
    .out("Y", "[N, ..., 1], dtype of X")
    .dtype_of_input("X")
    .infer(infer_bpr)
    .grad_reads({"X", "Label"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label");
      const Out y = op.out("Y");
      const auto scratch = std::make_shared<Tensor>();
      return [=](KernelContext& c) {
        const ClassAxis a(c[x].shape(), -1);
        const T* p = c[x].data<T>();
        const int64_t* own = as_int64(c[label], scratch.get());
        check_labels(own, a.outer, a.classes);
        T* to = c[y].mutable_data<T>();
        c.parallel_each(a.outer, row_grain(a), [=](int64_t i) {
          to[i] = static_cast<T>(others_of(p + i * a.classes, a.classes, own[i])) / static_cast<T>(a.classes - 1);
        });
      };
    });

AB_GRAD(bpr_loss)
    .doc("Gradient of bpr_loss: sigmoid(X[j] - X[label]) for the others, minus their sum for the label.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label"), dy = op.in("Y@GRAD");
      const Out dx = op.out("X@GRAD");
      const auto scratch = std::make_shared<Tensor>();
      return [=](KernelContext& c) {
        const ClassAxis a(c[x].shape(), -1);
        const T *p = c[x].data<T>(), *g = c[dy].data<T>();
        const int64_t* own = as_int64(c[label], scratch.get());
        check_labels(own, a.outer, a.classes);
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(a.outer, row_grain(a), [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T* x = p + i * a.classes;
            T* slopes = to + i * a.classes;
            const int64_t label = own[i];
            const T share = g[i] / static_cast<T>(a.classes - 1);
            with_logistic(
                0, a.classes, slopes, [=](int64_t k) { return x[k] - x[label]; },
                [=](int64_t k, T t) { return k == label ? T{0} : share * t; });
            slopes[label] = -sum_of<T>(a.classes, [=](int64_t k) { return slopes[k]; });
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::loss::ranking_op
