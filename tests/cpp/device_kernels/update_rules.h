// Update rules as formulas in float64, to compare with those of src/ops/optim.
#pragma once
#include "host_kernels.h"

namespace anabranch::device {

// Structs in device memory.
template <class S> struct Plain {
  std::vector<S> items;
  explicit Plain(size_t n) : items(n) { Blocks::all().add(items.data(), n * sizeof(S)); }
  ~Plain() { Blocks::all().remove(items.data()); }
  S& at(size_t i) { return items[i]; }
  DeviceIn in() const { return {items.data(), items.size() * sizeof(S)}; }
};

struct State {  // of one element
  double p, s[3];
};

struct Rule {
  const char* name;
  double p[8];
  int states, reads;
  void (*step)(State& e, double g, const double* p, double rate, const double* reads);
};

const Rule kRules[] = {
    {"sgd", {}, 0, 0, [](State& e, double g, const double*, double lr, const double*) { e.p -= lr * g; }},
    {"momentum",
     {0.9},
     1,
     0,
     [](State& e, double g, const double* p, double lr, const double*) {
       e.s[0] = p[0] * e.s[0] + g;
       e.p -= lr * e.s[0];
     }},
    {"nesterov",
     {0.9},
     1,
     0,
     [](State& e, double g, const double* p, double lr, const double*) {
       e.s[0] = p[0] * e.s[0] + g;
       e.p -= lr * (g + p[0] * e.s[0]);
     }},
    {"adagrad",
     {0.9, 0.1, 1e-3},
     1,
     0,
     [](State& e, double g, const double* p, double lr, const double*) {
       e.s[0] = p[0] * e.s[0] + p[1] * g * g;
       e.p -= lr * g / (std::sqrt(e.s[0]) + p[2]);
     }},
    {"adadelta",
     {0.95, 1e-3},
     2,
     0,
     [](State& e, double g, const double* p, double, const double*) {
       e.s[0] = p[0] * e.s[0] + (1 - p[0]) * g * g;
       const double u = std::sqrt((e.s[1] + p[1]) / (e.s[0] + p[1])) * g;
       e.s[1] = p[0] * e.s[1] + (1 - p[0]) * u * u;
       e.p -= std::sqrt((e.s[1] + p[1]) / (e.s[0] + p[1])) * g;
     }},
    {"adam",
     {0.9, 0.99, 1e-3},
     2,
     2,
     [](State& e, double g, const double* p, double lr, const double* r) {
       e.s[0] = p[0] * e.s[0] + (1 - p[0]) * g;
       e.s[1] = p[1] * e.s[1] + (1 - p[1]) * g * g;
       e.p -= lr * std::sqrt(1 - r[1]) / (1 - r[0]) * e.s[0] / (std::sqrt(e.s[1]) + p[2]);
     }},
    {"adamax",
     {0.9, 0.99, 1e-3},
     2,
     1,
     [](State& e, double g, const double* p, double lr, const double* r) {
       e.s[0] = p[0] * e.s[0] + (1 - p[0]) * g;
       e.s[1] = std::max(std::fabs(g), p[1] * e.s[1] + p[2]);
       e.p -= lr / (1 - r[0]) * e.s[0] / e.s[1];
     }},
    {"rmsprop",
     {0.9, 0.5, 1e-3},
     3,
     0,
     [](State& e, double g, const double* p, double lr, const double*) {
       e.s[0] = p[0] * e.s[0] + (1 - p[0]) * g * g;
       e.s[2] = p[0] * e.s[2] + (1 - p[0]) * g;
       e.s[1] = p[1] * e.s[1] + lr * g / std::sqrt(e.s[0] - e.s[2] * e.s[2] + p[2]);
       e.p -= e.s[1];
     }},
    {"ftrl",
     {0.1, 0.2, -0.5},
     2,
     0,
     [](State& e, double g, const double* p, double lr, const double*) {
       const double n = e.s[0] + g * g;
       e.s[1] += g - (std::sqrt(n) - std::sqrt(e.s[0])) / lr * e.p;
       const double sign = e.s[1] > 0 ? 1 : -1;
       e.p = std::fabs(e.s[1]) > p[0] ? (sign * p[0] - e.s[1]) / (std::sqrt(n) / lr + 2 * p[1]) : 0;
       e.s[0] = n;
     }},
};

constexpr double kReads[] = {0.81, 0.9};

}  // namespace anabranch::device
