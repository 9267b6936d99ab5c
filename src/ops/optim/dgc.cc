// Updates of deep gradient compression in one process: momentum until the compression starts, and plain steps
// afterwards, because the exchanged values then include the momentum. With a negative start step the ops do nothing.
#include <algorithm>
#include <cmath>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide.h"
#include "ops/optim/update.h"

namespace anabranch::optim::dgc_op {
namespace {

constexpr const char* kPaper = "Lin et al., ICLR 2018, arXiv:1712.01887";

void check_begin(float begin) {
  AB_CHECK(!std::isnan(begin), InvalidArgument, "rampup_begin_step must be a number, got {}", begin);
}

enum class Phase { kOff, kBefore, kCompressed };

// Steps are integers: truncates the fraction.
Phase phase_of(float begin, const Tensor& step) {
  const float first = std::trunc(begin);
  if (first < 0) return Phase::kOff;
  return std::trunc(scalar<float>(step)) < first ? Phase::kBefore : Phase::kCompressed;
}

// Scales the gradient by `share` and updates the parameter: by momentum until the compression starts.
template <class T> struct Step {
  T mu, rate, share;
  bool nesterov;
  void before(T* param, T* velocity, T* grad, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const T g = grad[i] * share, v = mu * velocity[i] + g;
      grad[i] = g;
      velocity[i] = v;
      param[i] -= rate * (nesterov ? g + mu * v : v);
    }
  }
  void compressed(T* param, T* grad, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      grad[i] *= share;
      param[i] -= rate * grad[i];
    }
  }
};

constexpr auto momentum_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const float begin = op.attr<float>("rampup_begin_step");
  const T mu = number<T>(op, "mu");
  const bool nesterov = op.attr<bool>("use_nesterov");
  return [=, param = op.in("Param"), grad = op.in("Grad"), velocity = op.in("Velocity"), rate = op.in("LearningRate"),
          step = op.in("current_step"), ranks = op.in("nranks"), param_out = op.out("ParamOut"),
          velocity_out = op.out("VelocityOut"), grad_out = op.out("Grad_out")](KernelContext& c) {
    const Phase phase = phase_of(begin, c[step]);
    const float workers = scalar<float>(c[ranks]);
    AB_CHECK(phase == Phase::kOff || workers >= 1, InvalidArgument, "nranks must be at least 1, got {}", workers);
    const Step<T> rule{mu, scalar<T>(c[rate]), T{1} / scalar<T>(c[ranks]), nesterov};
    T* p = updated<T>(c, param, param_out);
    T* v = updated<T>(c, velocity, velocity_out);
    T* g = updated<T>(c, grad, grad_out);
    if (phase == Phase::kOff) return;
    c.parallel_for(c[param].numel(), kGrain, [=](int64_t from, int64_t to) {
      in_wide_vectors([=, own = rule] {
        if (phase == Phase::kBefore) return own.before(p + from, v + from, g + from, to - from);
        own.compressed(p + from, g + from, to - from);
      });
    });
  };
};

void infer_momentum(InferContext& c) {
  infer_update(c, {{"Velocity", "VelocityOut"}});
  check_numel(c, "current_step", 1);
  check_numel(c, "nranks", 1);
  c.same_as("Grad_out", "Grad");
}

AB_OP(dgc_momentum)
    .doc(
        "Grad_out = Grad / nranks. Before rampup_begin_step: VelocityOut = mu Velocity + Grad_out, ParamOut = Param - "
        "LearningRate VelocityOut, or with Nesterov momentum Param - LearningRate (Grad_out + mu VelocityOut). "
        "Afterwards: ParamOut = Param - LearningRate Grad_out. With a negative rampup_begin_step nothing changes.")
    .source(kPaper)
    .in("current_step", "[1] float: number of steps so far")
    .in("nranks", "[1] float: number of workers, at least 1")
    .in("Param", "[...] float")
    .in("Grad", "like Param")
    .in("Velocity", "like Param")
    .in("LearningRate", "[1] float")
    .out("Grad_out", "like Param")
    .out("ParamOut", "Param, updated in place")
    .out("VelocityOut", "Velocity, updated in place")
    .updates("Grad", "Grad_out")
    .attr<float>("rampup_begin_step", 0.0f, "first step of the compression; negative: the op does nothing", check_begin)
    .attr<float>("mu", 0.0f, "momentum coefficient")
    .attr<bool>("use_nesterov", false, "uses Nesterov momentum")
    .dtype_of_input("Param")
    .infer(infer_momentum)
    .no_grad(kNoGrad)
    .cpu<float, double>(momentum_kernel);

AB_OP(dgc_clip_by_norm)
    .doc(
        "X|); before, or where it is negative, Out = X.|Out = X max_norm / max(max_norm, |X|) from rampup_begin_step "
        "on; before, or if it is negative, Out = X.|X|); before, or where it is negative, Out = X.")
    .source(kPaper)
    .in("current_step", "[1] float: number of steps so far")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .attr<float>("rampup_begin_step", 0.0f, "first step that clips", check_begin)
    .attr<float>("max_norm", 1.0f, "largest norm, above 0",
                 [](float v) { AB_CHECK(v > 0, InvalidArgument, "max_norm must be above 0, got {}", v); })
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_numel(c, "current_step", 1);
      c.same_as("Out", "X");
    })
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [begin = op.attr<float>("rampup_begin_step"), most = op.attr<float>("max_norm"),
              step = op.in("current_step"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        const int64_t n = c[x].numel();
        double factor = 1;
        if (phase_of(begin, c[step]) == Phase::kCompressed) {
          const double squares = parallel_total<double>(c, n, kCheapGrain, [=](int64_t first, int64_t last) {
            return sum_of<double>(last - first, [own = from + first](int64_t i) {
              return static_cast<double>(own[i]) * static_cast<double>(own[i]);
            });
          });
          factor = static_cast<double>(most) / std::max(static_cast<double>(most), std::sqrt(squares));
        }
        map(c, kCheapGrain, n, from, c[out].mutable_data<T>(),
            [factor](T v) { return static_cast<T>(static_cast<double>(v) * factor); });
      };
    });

}  // namespace
}  // namespace anabranch::optim::dgc_op
