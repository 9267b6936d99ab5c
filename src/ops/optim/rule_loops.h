// The float32 loops of update rules in the widest vectors of the machine (Highway, chosen at run time). Element i of
// every array depends only on element i of the arrays, and each operation rounds separately, so a loop may be split
// anywhere and gives the bits of the plain loops that float64 uses. Arrays must not overlap. Single-threaded.
#pragma once
#include <cstdint>

namespace anabranch::optim::loops {

void sgd(float* param, const float* grad, float rate, int64_t n);

struct Momentum {
  float mu;
  bool nesterov;
};
void momentum(const Momentum& rule, float* param, float* velocity, const float* grad, float rate, int64_t n);

struct Adam {
  float beta1, beta2, epsilon;
};
void adam(const Adam& rule, float* param, float* m1, float* m2, const float* grad, float rate, int64_t n);
void adamax(const Adam& rule, float* param, float* moment, float* norm, const float* grad, float rate, int64_t n);

struct Adagrad {
  float keep, add, epsilon;  // moment = keep * moment + add * grad^2
};
void adagrad(const Adagrad& rule, float* param, float* moment, const float* grad, float rate, int64_t n);

struct Adadelta {
  float rho, epsilon;
};
void adadelta(const Adadelta& rule, float* param, float* squared_grad, float* squared_update, const float* grad,
              int64_t n);

struct RmsProp {
  float decay, momentum, epsilon;
};
// mean: the mean of gradients, or null if the rule is not centered.
void rmsprop(const RmsProp& rule, float* param, float* square, float* moment, float* mean, const float* grad,
             float rate, int64_t n);

struct Ftrl {  // with the power -1/2
  float l1, l2;
};
void ftrl(const Ftrl& rule, float* param, float* squared, float* linear, const float* grad, float rate, int64_t n);

}  // namespace anabranch::optim::loops
