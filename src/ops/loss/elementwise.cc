#include "ops/loss/elementwise.h"

#include <algorithm>
#include <cmath>

namespace anabranch::loss {
namespace {

template <class T> struct LogLoss {
  T epsilon;
  T value(T p, T y) const { return -(y * std::log(p + epsilon)) - (1 - y) * std::log(1 - p + epsilon); }
  T slope(T p, T y) const { return -(y / (p + epsilon)) + (1 - y) / (1 - p + epsilon); }
};

template <class T> struct Hinge {
  T value(T x, T y) const {
    const T gap = 1 - x * (2 * y - 1);
    return gap < 0 ? T{0} : gap;  // a NaN stays one
  }
  T slope(T x, T y) const { return x * (2 * y - 1) < 1 ? 1 - 2 * y : T{0}; }
};

// Labels carry a click and perhaps a teacher's score: below -1: no click, no score; below 0: click, no score;
// [0, 1): no click, score y; from 1: click, score y - 1.
template <class T> struct TeacherStudent {
  T low, high;  // the teacher's gradient is cut off where x is outside
  T value(T x, T y) const {
    const T s = softplus(x);
    if (y < -1) return s;
    if (y < 0) return s - x;
    return y < 1 ? s + s - x * y : s - x + s - x * (y - 1);
  }
  T slope(T x, T y) const {
    if (x > high || x < low) return 0;
    const T p = logistic(x);
    if (y < -1) return p;
    return y < 0 ? p - 1 : 2 * p - y;
  }
};

[[maybe_unused]] const int log_loss = [] {
  OpDef& def = declare_op("log_loss", __FILE__);
  def.doc("Loss = -y log(p + epsilon) - (1 - y) log(1 - p + epsilon) of a probability p and a label y.")
      .in("Predicted", "[N, 1] float in [0, 1]")
      .in("Labels", "[N, 1] float in [0, 1]")
      .out("Loss", "[N, 1]")
      .attr<float>("epsilon", 1.0e-4f, "keeps the logarithms finite");
  declare_elementwise(def, declare_op("log_loss_grad", __FILE__), {"Predicted", "Labels", "Loss"},
                      [](auto tag, const KernelArgs& op) {
                        using T = typename decltype(tag)::type;
                        return LogLoss<T>{static_cast<T>(op.attr<float>("epsilon"))};
                      });
  return 0;
}();

[[maybe_unused]] const int hinge_loss = [] {
  OpDef& def = declare_op("hinge_loss", __FILE__);
  def.doc("Loss = max(0, 1 - x (2 y - 1)) of a score x and a label y of 0 or 1.")
      .source("Rosasco et al. 2004, doi:10.1162/089976604773135104")
      .in("Logits", "[N, 1] float")
      .in("Labels", "[N, 1] float, 0 or 1")
      .out("Loss", "[N, 1]");
  declare_elementwise(def, declare_op("hinge_loss_grad", __FILE__), {"Logits", "Labels", "Loss"},
                      [](auto tag, const KernelArgs&) { return Hinge<typename decltype(tag)::type>{}; });
  return 0;
}();

[[maybe_unused]] const int teacher_student = [] {
  OpDef& def = declare_op("teacher_student_sigmoid_loss", __FILE__);
  def.doc("Cross entropy of sigmoid(X) with a click, plus that with a teacher's score where the label has one.")
      .in("X", "[N, 1] float")
      .in("Label", "[N, 1] float: -2 no click, -1 click, score z without click: z, with click: 1 + z")
      .out("Y", "[N, 1]")
      .attr<float>("soft_max_up_bound", 15.0f, "no gradient where X is above")
      .attr<float>("soft_max_lower_bound", -15.0f, "no gradient where X is below");
  declare_elementwise(def, declare_op("teacher_student_sigmoid_loss_grad", __FILE__), {"X", "Label", "Y", true},
                      [](auto tag, const KernelArgs& op) {
                        using T = typename decltype(tag)::type;
                        return TeacherStudent<T>{static_cast<T>(op.attr<float>("soft_max_lower_bound")),
                                                 static_cast<T>(op.attr<float>("soft_max_up_bound"))};
                      });
  return 0;
}();

}  // namespace
}  // namespace anabranch::loss
