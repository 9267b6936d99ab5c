// Learning rates scaled by the norms of a parameter and its step: LARS and LAMB. DPSGD clips a norm and adds noise.
#include <cmath>

#include "ops/device/launch_update.h"
#include "ops/kernels/philox.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/update.h"

namespace anabranch::optim::norms_op {
namespace {

// In double: the squares of a gradient may underflow or overflow float32.
template <class T> double squares_of(const T* x, int64_t n) {
  return sum_of<double>(n, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

// Chunks depend only on n: every split of the update gives the same norm.
template <class T> T norm_of(const KernelContext& c, const T* x, int64_t n) {
  return static_cast<T>(std::sqrt(parallel_total<double>(c, n, kCheapGrain, [x](int64_t begin, int64_t end) {
    double sum = 0;
    in_wide_vectors([=, &sum] { sum = squares_of(x + begin, end - begin); });
    return sum;
  })));
}

// The gradient as a dense array: norms and noise cover all elements.
template <class T> class DenseGradient {
 public:
  const T* read(KernelContext& c, const Value& grad, const Tensor& param) {
    if (!grad.get<SelectedRows>()) return grad.tensor().data<T>();
    dense_->resize(param.shape(), param.dtype());
    gradients_.read(grad, param);
    T* to = dense_->mutable_data<T>();
    gradients_.update(c, Rows::kAll, [=](int64_t i, int64_t n, const T* g) { std::copy(g, g + n, to + i); });
    return to;
  }

 private:
  Gradients<T> gradients_;
  std::shared_ptr<Tensor> dense_ = std::make_shared<Tensor>();
};

constexpr auto lars_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In param = op.in("Param"), grad = op.in("Grad"), velocity = op.in("Velocity"), rate = op.in("LearningRate");
  const Out param_out = op.out("ParamOut"), velocity_out = op.out("VelocityOut");
  const T mu = number<T>(op, "mu"), coeff = number<T>(op, "lars_coeff"), decay = number<T>(op, "lars_weight_decay");
  DenseGradient<T> dense;
  return [=](KernelContext& c) mutable {
    const T lr = scalar<T>(c[rate]);
    T* p = updated<T>(c, param, param_out);
    T* v = updated<T>(c, velocity, velocity_out);
    const T* g = dense.read(c, c.value(grad), c[param]);
    const int64_t n = c[param].numel();
    const T p_norm = norm_of(c, p, n), g_norm = norm_of(c, g, n);
    const T local = rules::lars_rate(lr, p_norm, g_norm, coeff, decay);
    c.parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
      in_wide_vectors([=] {
        for (int64_t i = begin; i < end; ++i) rules::lars(p[i], v[i], g[i], mu, local, decay);
      });
    });
  };
};

template <class T> struct Lamb {
  T beta1, beta2, epsilon, decay;
  void moments(const T* p, T* m1, T* m2, const T* g, T* step, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      step[i] = rules::lamb_step(p[i], m1[i], m2[i], g[i], beta1, beta2, epsilon, decay);
    }
  }
};

constexpr auto lamb_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In param = op.in("Param"), grad = op.in("Grad"), m1 = op.in("Moment1"), m2 = op.in("Moment2"),
           rate = op.in("LearningRate");
  const Out param_out = op.out("ParamOut"), m1_out = op.out("Moment1Out"), m2_out = op.out("Moment2Out");
  const Lamb<T> rule{number<T>(op, "beta1"), number<T>(op, "beta2"), number<T>(op, "epsilon"),
                     number<T>(op, "weight_decay")};
  DenseGradient<T> dense;
  const auto step = std::make_shared<Tensor>();
  return [=](KernelContext& c) mutable {
    T* p = updated<T>(c, param, param_out);
    T* first = updated<T>(c, m1, m1_out);
    T* second = updated<T>(c, m2, m2_out);
    if (skips_step(c.value(grad))) return;
    const T* g = dense.read(c, c.value(grad), c[param]);
    const int64_t n = c[param].numel();
    step->resize(c[param].shape(), c[param].dtype());
    T* s = step->mutable_data<T>();
    c.parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { rule.moments(p, first, second, g, s, begin, end); });
    const T p_norm = norm_of(c, p, n), s_norm = norm_of(c, s, n);
    const T lr = rules::lamb_rate(scalar<T>(c[rate]), p_norm, s_norm);
    c.parallel_each(n, kGrain, [=](int64_t i) { p[i] -= lr * s[i]; });
  };
};

constexpr auto dpsgd_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In param = op.in("Param"), grad = op.in("Grad"), rate = op.in("LearningRate");
  const Out param_out = op.out("ParamOut");
  const float clip = op.attr<float>("clip"), batch = op.attr<float>("batch_size"), sigma = op.attr<float>("sigma");
  RandomKey key = op.random();
  key.repeats = false;  // noise that repeats in every step would hide nothing
  DenseGradient<T> dense;
  return [=](KernelContext& c) mutable {
    const T lr = scalar<T>(c[rate]);
    T* p = updated<T>(c, param, param_out);
    const T* g = dense.read(c, c.value(grad), c[param]);
    const int64_t n = c[param].numel();
    const double shrink = std::max(1.0, static_cast<double>(norm_of(c, g, n)) / static_cast<double>(clip));
    const Philox random(with_step(key, c));
    c.parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      random.each_normal(begin, end, p + begin, [&](int64_t i, double z) {
        return p[i] - lr * static_cast<T>(static_cast<double>(g[i]) / shrink + sigma * z / batch);
      });
    });
  };
};

AB_OP(lars_momentum)
    .doc(
        "Momentum with a learning rate per parameter: local = LearningRate lars_coeff |Param| / (|Grad| + "
        "lars_weight_decay |Param|); VelocityOut = mu Velocity + local (Grad + lars_weight_decay Param); ParamOut = "
        "Param - VelocityOut.")
    .source("You et al. 2017, arXiv:1708.03888")
    .with(updates({{"Velocity", "VelocityOut"}}))
    .attr<float>("mu", 0.0f, "momentum coefficient")
    .attr<float>("lars_coeff", 0.001f, "trust coefficient, the factor for the ratio of norms")
    .attr<float>("lars_weight_decay", 0.0005f, "weight decay")
    .traits(kWholeParameter)
    .cpu<float, double>(lars_kernel)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "lars_momentum",
                                    .states = {{"Velocity", "VelocityOut"}},
                                    .numbers = {device::attribute<T>(op, "mu"), device::attribute<T>(op, "lars_coeff"),
                                                device::attribute<T>(op, "lars_weight_decay")}});
    });

AB_OP(lamb)
    .doc(
        "Adam's step plus weight_decay Param, scaled to the norm of the parameter: with s = m1 / (sqrt(m2) + epsilon) "
        "+ weight_decay Param, ParamOut = Param - LearningRate |Param| / |s| s.")
    .source("You et al., ICLR 2020, arXiv:1904.00962")
    .with(updates({{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}))
    .in("Beta1Pow", "[1], ignored: the moments are not corrected")
    .in("Beta2Pow", "[1], ignored")
    .attr<float>("weight_decay", 0.0f, "weight of the parameter in the step")
    .attr<float>("beta1", 0.9f, "decay of the first moment")
    .attr<float>("beta2", 0.999f, "decay of the second moment")
    .attr<float>("epsilon", 1.0e-6f, "keeps the quotient finite")
    .traits(kWholeParameter)
    .infer([](InferContext& c) {
      infer_update(c, {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}});
      check_numel(c, "Beta1Pow", 1);
      check_numel(c, "Beta2Pow", 1);
    })
    .cpu<float, double>(lamb_kernel)
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(
          op, {.name = "lamb",
               .states = {{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}},
               .numbers = {device::attribute<T>(op, "beta1"), device::attribute<T>(op, "beta2"),
                           device::attribute<T>(op, "epsilon"), device::attribute<T>(op, "weight_decay")}});
    });

AB_OP(dpsgd)
    .doc(
        "Differentially private SGD: scales Grad to a norm of at most clip, adds normal noise with standard deviation "
        "sigma / batch_size to every element, and sets ParamOut = Param - LearningRate times the result.")
    .source("Abadi et al., CCS 2016, doi:10.1145/2976749.2978318")
    .with(updates())
    .attr<float>("clip", 10.0f, "largest norm of the gradient, above 0",
                 [](float v) { AB_CHECK(v > 0, InvalidArgument, "clip must be above 0, got {}", v); })
    .attr<float>("batch_size", 16.0f, "number of samples per batch, not 0",
                 [](float v) { AB_CHECK(v != 0, InvalidArgument, "batch_size must not be 0"); })
    .attr<float>("sigma", 1.0f, "standard deviation of the noise")
    .attr<int32_t>("seed", 0, "seed of the noise; 0: uses the seed of the process")
    .effects(kRandom)
    .traits(kWholeParameter)
    .cpu<float, double>(dpsgd_kernel);

}  // namespace
}  // namespace anabranch::optim::norms_op
