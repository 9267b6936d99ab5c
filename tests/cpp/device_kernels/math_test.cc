// Elementwise kernels against formulas in float64, written down again here.
#include "host_kernels.h"
#include "ops/device/args_math.h"

namespace anabranch::device {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double clamp(double x, double lo, double hi) { return std::min(std::max(x, lo), hi); }

struct Unary {
  const char* name;
  double p[kMaxNumbers];
  double low, high;  // of X
  double (*f)(double, const double*);
  bool of_out;  // the gradient reads Out
};

const Unary kUnary[] = {
    {"sigmoid", {}, -6, 6, [](double x, const double*) { return sigmoid(x); }, true},
    {"tanh", {}, -3, 3, [](double x, const double*) { return std::tanh(x); }, true},
    {"exp", {}, -3, 3, [](double x, const double*) { return std::exp(x); }, true},
    {"log", {}, 0.2, 5, [](double x, const double*) { return std::log(x); }, false},
    {"log1p", {}, -0.5, 5, [](double x, const double*) { return std::log(1 + x); }, false},
    {"mish", {20}, -4, 4, [](double x, const double*) { return x * std::tanh(softplus(x)); }, false},
    {"softplus", {}, -5, 5, [](double x, const double*) { return softplus(x); }, false},
    {"logsigmoid", {}, -5, 5, [](double x, const double*) { return std::log(sigmoid(x)); }, false},
    {"tanh_shrink", {}, -3, 3, [](double x, const double*) { return x - std::tanh(x); }, false},
    {"stanh", {0.67, 1.7}, -3, 3, [](double x, const double* p) { return p[1] * std::tanh(p[0] * x); }, false},
    {"sqrt", {}, 0.3, 9, [](double x, const double*) { return std::sqrt(x); }, true},
    {"rsqrt", {}, 0.3, 9, [](double x, const double*) { return std::pow(x, -0.5); }, true},
    {"square", {}, -3, 3, [](double x, const double*) { return x * x; }, false},
    {"reciprocal", {}, 0.5, 3, [](double x, const double*) { return 1 / x; }, true},
    {"abs", {}, -3, 3, [](double x, const double*) { return std::fabs(x); }, false},
    {"sin", {}, -3, 3, [](double x, const double*) { return std::sin(x); }, false},
    {"cos", {}, -3, 3, [](double x, const double*) { return std::cos(x); }, false},
    {"acos", {}, -0.9, 0.9, [](double x, const double*) { return std::acos(x); }, false},
    {"asin", {}, -0.9, 0.9, [](double x, const double*) { return std::asin(x); }, false},
    {"atan", {}, -3, 3, [](double x, const double*) { return std::atan(x); }, false},
    {"erf", {}, -2, 2, [](double x, const double*) { return std::erf(x); }, false},
    {"relu", {}, -3, 3, [](double x, const double*) { return std::max(x, 0.0); }, true},
    {"relu6", {6}, -3, 9, [](double x, const double* p) { return clamp(x, 0, p[0]); }, true},
    {"brelu", {-1, 2}, -3, 4, [](double x, const double* p) { return clamp(x, p[0], p[1]); }, false},
    {"leaky_relu", {0.1}, -3, 3, [](double x, const double* p) { return std::max(x, p[0] * x); }, true},
    {"leaky_relu", {1.5}, -3, 3, [](double x, const double* p) { return std::max(x, p[0] * x); }, true},
    {"elu", {0.8}, -3, 3, [](double x, const double* p) { return x > 0 ? x : p[0] * (std::exp(x) - 1); }, false},
    {"selu",
     {1.05, 1.67},
     -3,
     3,
     [](double x, const double* p) { return p[0] * (x > 0 ? x : p[1] * (std::exp(x) - 1)); },
     true},
    {"thresholded_relu", {1}, -3, 4, [](double x, const double* p) { return x > p[0] ? x : 0; }, false},
    {"hard_shrink", {0.5}, -3, 3, [](double x, const double* p) { return std::fabs(x) > p[0] ? x : 0; }, false},
    {"softshrink",
     {0.5},
     -3,
     3,
     [](double x, const double* p) { return x > p[0]    ? x - p[0]
                                            : x < -p[0] ? x + p[0]
                                                        : 0; },
     false},
    {"softsign", {}, -3, 3, [](double x, const double*) { return x / (1 + std::fabs(x)); }, false},
    {"swish", {1.5}, -3, 3, [](double x, const double* p) { return x * sigmoid(p[0] * x); }, false},
    {"hard_sigmoid", {0.2, 0.5}, -4, 4, [](double x, const double* p) { return clamp(p[0] * x + p[1], 0, 1); }, true},
    {"hard_swish",
     {6, 6, 3},
     -5,
     5,
     [](double x, const double* p) { return x * clamp(x + p[2], 0, p[0]) / p[1]; },
     false},
    {"soft_relu",
     {4},
     -3.9,
     3.9,
     [](double x, const double* p) { return std::log(1 + std::exp(clamp(x, -p[0], p[0]))); },
     true},
    {"gelu", {}, -3, 3, [](double x, const double*) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, false},
    {"gelu_tanh",
     {},
     -3,
     3,
     [](double x, const double*) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     false},
};

template <class T> class DeviceMath : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceMath, Floats);

TYPED_TEST(DeviceMath, FunctionsAndTheirSlopes) {
  using T = TypeParam;
  for (const Unary& u : kUnary) {
    const auto x = held<T>(random_values(301, u.low, u.high)), dy = held<T>(random_values(301, -2, 2, 2));
    Array<T> in(x), out(x.size()), grad(dy), dx(x.size());
    MapArgs args = {in.in(), out.out(), static_cast<int64_t>(x.size()), {}};
    std::memcpy(args.p, u.p, sizeof args.p);
    launch(key_of<T>(std::string("map/") + u.name), args);
    std::vector<double> y, slope;
    // Where the gradient reads Out it reads a rounded one: the slope is taken of that.
    for (size_t i = 0; i < x.size(); ++i) {
      const double h = 1e-6, up = u.f(x[i] + h, u.p), down = u.f(x[i] - h, u.p);
      y.push_back(u.f(x[i], u.p));
      slope.push_back(dy[i] * (up - down) / (2 * h));
    }
    expect_all(out, y, u.name, 4);
    MapGradArgs back = {u.of_out ? DeviceIn{} : in.in(),
                        u.of_out ? out.in() : DeviceIn{},
                        grad.in(),
                        dx.out(),
                        static_cast<int64_t>(x.size()),
                        {}};
    std::memcpy(back.p, u.p, sizeof back.p);
    launch(key_of<T>(std::string("map_grad/") + u.name), back);
    expect_all(dx, slope, std::string(u.name) + "_grad", std::is_same_v<T, double> ? 1e5 : 60);
  }
}

TYPED_TEST(DeviceMath, SpecialValuesAndSteps) {
  using T = TypeParam;
  const double inf = INFINITY, nan = NAN;
  Array<T> x({nan, inf, -inf, 0, 2.5, -2.5, 0.5, -0.5});
  const std::vector<std::pair<const char*, std::vector<double>>> expected = {
      {"relu", {nan, inf, 0, 0, 2.5, 0, 0.5, 0}},
      {"sigmoid", {nan, 1, 0, 0.5, sigmoid(2.5), sigmoid(-2.5), sigmoid(0.5), sigmoid(-0.5)}},
      {"round", {nan, inf, -inf, 0, 3, -3, 1, -1}},
      {"floor", {nan, inf, -inf, 0, 2, -3, 0, -1}},
      {"ceil", {nan, inf, -inf, 0, 3, -2, 1, 0}},
      {"sqrt", {nan, inf, nan, 0, std::sqrt(2.5), nan, std::sqrt(0.5), nan}},
  };
  for (const auto& [name, values] : expected) {
    Array<T> y(x.size());
    launch(key_of<T>(std::string("map/") + name), MapArgs{x.in(), y.out(), 8, {}});
    expect_all(y, values, name, 2);
  }
  Array<T> none(0);
  launch(key_of<T>("map/relu"), MapArgs{none.in(), none.out(), 0, {}});
}

}  // namespace
}  // namespace anabranch::device
