// Elementwise losses of predictions and labels of one shape. A loss is a struct with
//   T value(T x, T y) const         the loss of prediction x and label y
//   T slope(T x, T y) const         its derivative by x
#include <string>

#include "ops/declare/declare.h"
#include "ops/device/launch_loss.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wide.h"
#include "ops/loss/logistic_tiles.h"
#include "ops/loss/loss_functions.h"

namespace anabranch::loss::elementwise_op {
namespace {

template <class T> struct LogLoss {
  T epsilon;
  T value(T p, T y) const { return log_loss(p, y, epsilon); }
  T slope(T p, T y) const { return log_loss_slope(p, y, epsilon); }
  // value() with vectorized logarithms.
  void run(const float* p, const float* y, float* out, int64_t begin, int64_t end) const {
    const auto of = [p, e = epsilon](int64_t i) { return p[i] + e; };
    const auto of_rest = [p, e = epsilon](int64_t i) { return 1 - p[i] + e; };
    each_tile(begin, end, simd::log, of, [&](int64_t first, int64_t count, const float* t) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = -(y[first + i] * t[i]);
    });
    each_tile(begin, end, simd::log, of_rest, [&](int64_t first, int64_t count, const float* t) {
      for (int64_t i = 0; i < count; ++i) out[first + i] -= (1 - y[first + i]) * t[i];
    });
  }
};

template <class T> struct Hinge {
  T value(T x, T y) const { return hinge(x, y); }
  T slope(T x, T y) const { return hinge_slope(x, y); }
  void run(const float* x, const float* y, float* out, int64_t begin, int64_t end) const {
    in_wide_vectors([=, own = *this] {
      for (int64_t i = begin; i < end; ++i) out[i] = own.value(x[i], y[i]);
    });
  }
};

// Bounds each logarithm below by -100.
template <class T> struct BinaryCrossEntropy {
  static T bounded_log(T p) { return std::max(std::log(p), T{-100}); }
  static void check(T p) {
    AB_CHECK(p >= 0 && p <= 1, InvalidArgument, "X must hold probabilities, from 0 to 1, got {}", p);
  }
  T value(T p, T y) const {
    check(p);
    return (y - 1) * bounded_log(1 - p) - y * bounded_log(p);
  }
  T slope(T p, T y) const { return (p - y) / std::max((1 - p) * p, T(1e-12)); }
  void run(const float* p, const float* y, float* out, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) check(static_cast<T>(p[i]));
    const auto bounded = [](float log) { return std::max(log, -100.0f); };
    each_tile(
        begin, end, simd::log, [p](int64_t i) { return 1 - p[i]; },
        [&](int64_t first, int64_t count, const float* t) {
          for (int64_t i = 0; i < count; ++i) out[first + i] = (y[first + i] - 1) * bounded(t[i]);
        });
    each_tile(
        begin, end, simd::log, [p](int64_t i) { return p[i]; },
        [&](int64_t first, int64_t count, const float* t) {
          for (int64_t i = 0; i < count; ++i) out[first + i] -= y[first + i] * bounded(t[i]);
        });
  }
};

template <class T> struct TeacherStudent {
  T low, high;  // bounds from which on the gradient is zero
  T value(T x, T y) const { return teacher_student(softplus(x), x, y); }
  void run(const float* x, const float* y, float* out, int64_t begin, int64_t end) const {
    each_tile(
        begin, end, simd::softplus, [x](int64_t i) { return x[i]; },
        [&](int64_t first, int64_t count, const float* s) {
          in_wide_vectors([=] {
            for (int64_t i = 0; i < count; ++i) {
              out[first + i] = static_cast<float>(teacher_student(s[i], x[first + i], y[first + i]));
            }
          });
        });
  }
  T slope(T x, T y) const { return teacher_student_slope(x, y, low, high); }
};

struct Row {
  const char *type, *doc, *source = "";
  struct {
    const char *name, *doc;
  } x, y, out;
  bool grad_has_lod = false;
  const char* kernel = nullptr;  // device kernel, and the attributes that it takes
  device::NumbersOf numbers = {};
};

// The device kernel that computes y, from the gradient dy if one is named.
auto there(const Row& row, const char* suffix, const std::string& dy, const std::string& y) {
  return [=]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return device::ElementLoss<T>(std::string(row.kernel) + suffix, op.in(row.x.name), op.in(row.y.name),
                                  dy.empty() ? In() : op.in(dy), op.out(y), row.numbers.read(op));
  };
}

// make(TypeTag<T>(), op) returns the loss for the type of the tag.
template <class Make> void declare_backward(const Row& row, Make make) {
  const std::string x = row.x.name, y = row.y.name, dx = x + "@GRAD", dout = row.out.name + std::string("@GRAD");
  OpDef& def = declare_gradient(row.type, __FILE__);
  if (row.grad_has_lod) def.grad_lod(dx, x);
  if (row.kernel) def.device<float, double, float16, bfloat16>(there(row, "_grad", dout, dx));
  def.cpu<float, double>([=]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return [loss = make(TypeTag<T>(), op), x = op.in(x), y = op.in(y), dout = op.in(dout),
            dx = op.out(dx)](KernelContext& c) {
      const T *p = c[x].data<T>(), *q = c[y].data<T>(), *d = c[dout].data<T>();
      T* to = c[dx].mutable_data<T>();
      c.parallel_each(c[x].numel(), kMathGrain, [=](int64_t i) { to[i] = d[i] * loss.slope(p[i], q[i]); });
    };
  });
}

template <class Make> OpDef& declare_loss(const Row& row, Make make) {
  const std::string x = row.x.name, y = row.y.name, out = row.out.name;
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).source(row.source).in(x, row.x.doc).in(y, row.y.doc).out(out, row.out.doc);
  def.grad_reads({x, y}).grad_to({x}).infer([=](InferContext& c) {
    check_same(c, x, y);
    c.same_as(out, x);
  });
  declare_backward(row, make);
  if (row.kernel) def.device<float, double, float16, bfloat16>(there(row, "", "", out));
  return def.cpu<float, double>([=]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return [loss = make(TypeTag<T>(), op), x = op.in(x), y = op.in(y), out = op.out(out)](KernelContext& c) {
      const T *p = c[x].data<T>(), *q = c[y].data<T>();
      T* to = c[out].mutable_data<T>();
      c.parallel_for(c[x].numel(), kMathGrain, [=](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, float> && requires { loss.run(p, q, to, begin, end); }) {
          return loss.run(p, q, to, begin, end);
        }
        for (int64_t i = begin; i < end; ++i) to[i] = loss.value(p[i], q[i]);
      });
    };
  });
}

void declare_losses() {
  declare_loss(
      {.type = "log_loss",
       .doc = "Cross entropy of a probability p (Predicted) and a label y (Labels): Loss = -y log(p + "
              "epsilon) - (1 - y) log(1 - p + epsilon).",
       .x = {"Predicted", "[N, 1] float: probabilities in [0, 1]"},
       .y = {"Labels", "[N, 1] float: labels in [0, 1]"},
       .out = {"Loss", "[N, 1], dtype of Predicted"},
       .kernel = "log_loss",
       .numbers = {"epsilon"}},
      []<class T>(TypeTag<T>, const KernelArgs& op) { return LogLoss<T>{static_cast<T>(op.attr<float>("epsilon"))}; })
      .attr<float>("epsilon", 1.0e-4f, "small number that keeps the logarithms finite");
  declare_loss({.type = "bce_loss",
                .doc = "Out = -Label log(X) - (1 - Label) log(1 - X), with logarithms bounded below by -100.",
                .x = {"X", "[...] float in [0, 1], probabilities"},
                .y = {"Label", "like X, in [0, 1]"},
                .out = {"Out", "[...] like X"},
                .grad_has_lod = true},
               []<class T>(TypeTag<T>, const KernelArgs&) { return BinaryCrossEntropy<T>{}; });
  declare_loss({.type = "hinge_loss",
                .doc = "Loss = max(0, 1 - x (2 y - 1)) of a score x and a label y of 0 or 1.",
                .source = "Rosasco et al. 2004, doi:10.1162/089976604773135104",
                .x = {"Logits", "[N, 1] float"},
                .y = {"Labels", "[N, 1] float, 0 or 1"},
                .out = {"Loss", "[N, 1]"},
                .kernel = "hinge_loss"},
               []<class T>(TypeTag<T>, const KernelArgs&) { return Hinge<T>{}; });
  declare_loss({.type = "teacher_student_sigmoid_loss",
                .doc = "Y = the cross entropy of sigmoid(X) with a click label, plus that with a teacher's score if "
                       "the label has one.",
                .x = {"X", "[N, 1] float"},
                .y = {"Label", "[N, 1] float: -2 no click, -1 click, score z without click: z, with click: 1 + z"},
                .out = {"Y", "[N, 1]"},
                .grad_has_lod = true,
                .kernel = "teacher_student",
                .numbers = {"soft_max_lower_bound", "soft_max_up_bound"}},
               []<class T>(TypeTag<T>, const KernelArgs& op) {
                 return TeacherStudent<T>{static_cast<T>(op.attr<float>("soft_max_lower_bound")),
                                          static_cast<T>(op.attr<float>("soft_max_up_bound"))};
               })
      .attr<float>("soft_max_up_bound", 15.0f, "no gradient where X is larger")
      .attr<float>("soft_max_lower_bound", -15.0f, "no gradient where X is smaller");
}
AB_OPS(declare_losses);

}  // namespace
}  // namespace anabranch::loss::elementwise_op
