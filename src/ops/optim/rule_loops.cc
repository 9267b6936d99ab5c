#include "ops/optim/rule_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/rule_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::optim::loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// fn(d, grad, state&...) updates vectors of d's width until less than a vector is left.
template <class D, class Fn, class... State>
HWY_INLINE int64_t whole_vectors(D d, int64_t i, int64_t n, Fn&& fn, const float* grad, State*... state) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto store_all = [&](const auto&... v) HWY_ATTR { (hn::StoreU(v, d, state + i), ...); };
  for (; i + lanes <= n; i += lanes) {
    [&](auto... v) HWY_ATTR {
      fn(d, hn::LoadU(d, grad + i), v...);
      store_all(v...);
    }(hn::LoadU(d, state + i)...);
  }
  return i;
}

// The tail shorter than the machine's vectors uses ever shorter ones, with the same operations.
template <class Fn, class... State> HWY_INLINE void update(int64_t n, Fn&& fn, const float* grad, State*... state) {
  int64_t i = whole_vectors(hn::ScalableTag<float>(), 0, n, fn, grad, state...);
  i = whole_vectors(hn::CappedTag<float, 4>(), i, n, fn, grad, state...);
  whole_vectors(hn::CappedTag<float, 1>(), i, n, fn, grad, state...);
}

template <class D, class V> HWY_INLINE V average(D d, V old, float keep, V value, float add) {
  return hn::Add(hn::Mul(hn::Set(d, keep), old), hn::Mul(hn::Set(d, add), value));
}

void Sgd(float* param, const float* grad, float rate, int64_t n) {
  update(
      n, [=](auto d, auto g, auto& p) HWY_ATTR { p = hn::Sub(p, hn::Mul(hn::Set(d, rate), g)); }, grad, param);
}

void MomentumStep(const Momentum& rule, float* param, float* velocity, const float* grad, float rate, int64_t n) {
  const float mu = rule.mu;
  if (rule.nesterov) {
    update(
        n,
        [=](auto d, auto g, auto& p, auto& v) HWY_ATTR {
          v = hn::Add(hn::Mul(v, hn::Set(d, mu)), g);
          p = hn::Sub(p, hn::Mul(hn::Add(g, hn::Mul(v, hn::Set(d, mu))), hn::Set(d, rate)));
        },
        grad, param, velocity);
    return;
  }
  update(
      n,
      [=](auto d, auto g, auto& p, auto& v) HWY_ATTR {
        v = hn::Add(hn::Mul(v, hn::Set(d, mu)), g);
        p = hn::Sub(p, hn::Mul(hn::Set(d, rate), v));
      },
      grad, param, velocity);
}

void AdamStep(const Adam& rule, float* param, float* m1, float* m2, const float* grad, float rate, int64_t n) {
  const float keep1 = rule.beta1, keep2 = rule.beta2, add1 = 1 - keep1, add2 = 1 - keep2, epsilon = rule.epsilon;
  update(
      n,
      [=](auto d, auto g, auto& p, auto& first, auto& second) HWY_ATTR {
        first = average(d, first, keep1, g, add1);
        second = average(d, second, keep2, hn::Mul(g, g), add2);
        const auto step = hn::Div(first, hn::Add(hn::Sqrt(second), hn::Set(d, epsilon)));
        p = hn::Sub(p, hn::Mul(hn::Set(d, rate), step));
      },
      grad, param, m1, m2);
}

void AdamaxStep(const Adam& rule, float* param, float* moment, float* norm, const float* grad, float rate, int64_t n) {
  const float keep1 = rule.beta1, keep2 = rule.beta2, add1 = 1 - keep1, epsilon = rule.epsilon;
  update(
      n,
      [=](auto d, auto g, auto& p, auto& m, auto& u) HWY_ATTR {
        m = average(d, m, keep1, g, add1);
        const auto size = hn::Abs(g), old = hn::Add(hn::Mul(hn::Set(d, keep2), u), hn::Set(d, epsilon));
        u = hn::IfThenElse(hn::Lt(size, old), old, size);
        p = hn::Sub(p, hn::Mul(hn::Set(d, rate), hn::Div(m, u)));
      },
      grad, param, moment, norm);
}

void AdagradStep(const Adagrad& rule, float* param, float* moment, const float* grad, float rate, int64_t n) {
  const float keep = rule.keep, add = rule.add, epsilon = rule.epsilon;
  update(
      n,
      [=](auto d, auto g, auto& p, auto& m) HWY_ATTR {
        m = hn::Add(hn::Mul(hn::Set(d, keep), m), hn::Mul(hn::Mul(hn::Set(d, add), g), g));
        p = hn::Sub(p, hn::Div(hn::Mul(hn::Set(d, rate), g), hn::Add(hn::Sqrt(m), hn::Set(d, epsilon))));
      },
      grad, param, moment);
}

void AdadeltaStep(const Adadelta& rule, float* param, float* squared_grad, float* squared_update, const float* grad,
                  int64_t n) {
  const float keep = rule.rho, add = 1 - keep, epsilon = rule.epsilon;
  update(
      n,
      [=](auto d, auto g, auto& p, auto& gradients, auto& updates) HWY_ATTR {
        const auto eps = hn::Set(d, epsilon);
        gradients = average(d, gradients, keep, hn::Mul(g, g), add);
        const auto under = hn::Add(gradients, eps);
        const auto by = hn::Mul(hn::Neg(hn::Sqrt(hn::Div(hn::Add(updates, eps), under))), g);
        updates = average(d, updates, keep, hn::Mul(by, by), add);
        p = hn::Sub(p, hn::Mul(hn::Sqrt(hn::Div(hn::Add(updates, eps), under)), g));
      },
      grad, param, squared_grad, squared_update);
}

void RmsPropStep(const RmsProp& rule, float* param, float* square, float* moment, float* mean, const float* grad,
                 float rate, int64_t n) {
  const float keep = rule.decay, add = 1 - keep, mu = rule.momentum, epsilon = rule.epsilon;
  const auto move = [=](auto d, auto g, auto under, auto& p, auto& m) HWY_ATTR {
    const auto by = hn::Div(hn::Mul(hn::Set(d, rate), g), hn::Sqrt(hn::Add(under, hn::Set(d, epsilon))));
    m = hn::Add(hn::Mul(hn::Set(d, mu), m), by);
    p = hn::Sub(p, m);
  };
  if (mean) {
    update(
        n,
        [=](auto d, auto g, auto& p, auto& s, auto& m, auto& a) HWY_ATTR {
          s = average(d, s, keep, hn::Mul(g, g), add);
          a = average(d, a, keep, g, add);
          move(d, g, hn::Sub(s, hn::Mul(a, a)), p, m);
        },
        grad, param, square, moment, mean);
    return;
  }
  update(
      n,
      [=](auto d, auto g, auto& p, auto& s, auto& m) HWY_ATTR {
        s = average(d, s, keep, hn::Mul(g, g), add);
        move(d, g, s, p, m);
      },
      grad, param, square, moment);
}

void FtrlStep(const Ftrl& rule, float* param, float* squared, float* linear, const float* grad, float rate, int64_t n) {
  const float l1 = rule.l1, l2_twice = 2 * rule.l2;
  update(
      n,
      [=](auto d, auto g, auto& p, auto& s, auto& z) HWY_ATTR {
        const auto zero = hn::Zero(d), by_rate = hn::Set(d, rate), border = hn::Set(d, l1);
        const auto sum = hn::Add(s, hn::Mul(g, g));
        const auto root = hn::Sqrt(sum);
        z = hn::Add(z, hn::Sub(g, hn::Mul(hn::Div(hn::Sub(root, hn::Sqrt(s)), by_rate), p)));
        const auto low = hn::IfThenElse(hn::Lt(z, zero), hn::Neg(border), zero);
        const auto pull = hn::Sub(hn::IfThenElse(hn::Gt(z, zero), border, low), z);
        const auto moved = hn::Div(pull, hn::Add(hn::Div(root, by_rate), hn::Set(d, l2_twice)));
        p = hn::IfThenElseZero(hn::Gt(hn::Abs(z), border), moved);
        s = sum;
      },
      grad, param, squared, linear);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::optim::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::optim::loops {

HWY_EXPORT(Sgd);
HWY_EXPORT(MomentumStep);
HWY_EXPORT(AdamStep);
HWY_EXPORT(AdamaxStep);
HWY_EXPORT(AdagradStep);
HWY_EXPORT(AdadeltaStep);
HWY_EXPORT(RmsPropStep);
HWY_EXPORT(FtrlStep);

void sgd(float* param, const float* grad, float rate, int64_t n) { HWY_DYNAMIC_DISPATCH(Sgd)(param, grad, rate, n); }
void momentum(const Momentum& rule, float* param, float* velocity, const float* grad, float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MomentumStep)(rule, param, velocity, grad, rate, n);
}
void adam(const Adam& rule, float* param, float* m1, float* m2, const float* grad, float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamStep)(rule, param, m1, m2, grad, rate, n);
}
void adamax(const Adam& rule, float* param, float* moment, float* norm, const float* grad, float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamaxStep)(rule, param, moment, norm, grad, rate, n);
}
void adagrad(const Adagrad& rule, float* param, float* moment, const float* grad, float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdagradStep)(rule, param, moment, grad, rate, n);
}
void adadelta(const Adadelta& rule, float* param, float* squared_grad, float* squared_update, const float* grad,
              int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdadeltaStep)(rule, param, squared_grad, squared_update, grad, n);
}
void rmsprop(const RmsProp& rule, float* param, float* square, float* moment, float* mean, const float* grad,
             float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RmsPropStep)(rule, param, square, moment, mean, grad, rate, n);
}
void ftrl(const Ftrl& rule, float* param, float* squared, float* linear, const float* grad, float rate, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FtrlStep)(rule, param, squared, linear, grad, rate, n);
}

}  // namespace anabranch::optim::loops
#endif  // HWY_ONCE
