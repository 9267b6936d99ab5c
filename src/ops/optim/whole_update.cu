// Rules that need norms of a whole parameter, and sums of parameters over steps, on devices: "update/lars_momentum",
// "update/lamb", "clip_by_norm", "average_accumulates".
#include "ops/device/fold_rows.h"
#include "ops/optim/device_rules.h"

namespace anabranch::device {

// The workspace of a kernel with the norms of two arrays: the norms, partial sums, then kernel-specific data.
struct NormSpace {
  static size_t parts_at() { return 2 * sizeof(double); }
  static size_t end(int64_t rows, int64_t n) { return parts_at() + fold_room<double>(rows, n, Neighbors::kElements); }
};

// norms[row] = the Euclidean norm of x[row].
template <class T> struct Norms {
  using Wide = double;
  const T* x[2];
  double* norms;
  AB_HD static Wide start() { return 0; }
  AB_HD static Wide join(Wide a, Wide b) { return a + b; }
  AB_HD Wide at(int64_t row, int64_t i) const {
    const double v = static_cast<double>(load(x[row][i]));
    return v * v;
  }
  AB_HD void put(int64_t row, Wide total) const { norms[row] = std::sqrt(total); }
};

template <class T> int take_norms(const Launch& launch, int64_t n, const T* a, const T* b) {
  unsigned char* space = launch.workspace.get<unsigned char>();
  return fold_rows(launch, b ? 2 : 1, n, Neighbors::kElements, Norms<T>{{a, b}, reinterpret_cast<double*>(space)},
                   reinterpret_cast<double*>(space + NormSpace::parts_at()));
}

struct Lars {  // state: Velocity; p: mu, lars_coeff, lars_weight_decay
  using Args = UpdateArgs;
  template <class T> struct Body : RuleBase<T> {
    const T* grad;
    const double* norms;
    T mu, coeff, decay;
    explicit Body(const Args& a, const double* found)
        : RuleBase<T>(a),
          grad(a.grad.get<T>()),
          norms(found),
          mu(static_cast<T>(a.p[0])),
          coeff(static_cast<T>(a.p[1])),
          decay(static_cast<T>(a.p[2])) {}
    AB_HD void operator()(int64_t i) const {
      const T local =
          rules::lars_rate(this->rate.get(), static_cast<T>(norms[0]), static_cast<T>(norms[1]), coeff, decay);
      rules::lars(this->p[i], this->state[0][i], grad[i], mu, local, decay);
    }
  };
  template <class T> static size_t room(const Args& a) { return NormSpace::end(2, a.n); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (const int failed = take_norms<T>(launch, a.n, a.param.get<T>(), a.grad.get<T>())) return failed;
    return each(launch, a.n, Body<T>(a, launch.workspace.get<double>()));
  }
};

struct Lamb {  // state: Moment1, Moment2; p: beta1, beta2, epsilon, weight_decay
  using Args = UpdateArgs;
  template <class T> struct Moments : RuleBase<T> {
    const T* grad;
    T* steps;
    T beta1, beta2, epsilon, decay;
    Moments(const Args& a, T* to)
        : RuleBase<T>(a),
          grad(a.grad.get<T>()),
          steps(to),
          beta1(static_cast<T>(a.p[0])),
          beta2(static_cast<T>(a.p[1])),
          epsilon(static_cast<T>(a.p[2])),
          decay(static_cast<T>(a.p[3])) {}
    AB_HD void operator()(int64_t i) const {
      steps[i] =
          rules::lamb_step(this->p[i], this->state[0][i], this->state[1][i], grad[i], beta1, beta2, epsilon, decay);
    }
  };
  template <class T> struct Move : RuleBase<T> {
    const T* steps;
    const double* norms;
    Move(const Args& a, const T* from, const double* found) : RuleBase<T>(a), steps(from), norms(found) {}
    AB_HD void operator()(int64_t i) const {
      const T lr = rules::lamb_rate(this->rate.get(), static_cast<T>(norms[0]), static_cast<T>(norms[1]));
      this->p[i] -= lr * steps[i];
    }
  };
  template <class T> static size_t room(const Args& a) {
    return NormSpace::end(2, a.n) + static_cast<size_t>(a.n) * sizeof(T);
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    unsigned char* space = launch.workspace.get<unsigned char>();
    T* steps = reinterpret_cast<T*>(space + NormSpace::end(2, a.n));
    if (const int failed = each(launch, a.n, Moments<T>(a, steps))) return failed;
    if (const int failed = take_norms<T>(launch, a.n, a.param.get<T>(), steps)) return failed;
    return each(launch, a.n, Move<T>(a, steps, reinterpret_cast<const double*>(space)));
  }
};

struct ClipByNorm {  // p: max_norm
  using Args = MapArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    const double* norm;
    Compute<T> bound;
    AB_HD void operator()(int64_t i) const {
      const auto length = static_cast<Compute<T>>(*norm);
      store(y + i, load(x[i]) * (length > bound ? bound / length : Compute<T>(1)));
    }
  };
  template <class T> static size_t room(const Args& a) { return NormSpace::end(1, a.n); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T* x = a.x.get<T>();
    if (const int failed = take_norms<T>(launch, a.n, x, nullptr)) return failed;
    return each(launch, a.n, Body<T>{x, a.y.get<T>(), launch.workspace.get<double>(), static_cast<Compute<T>>(a.p[0])});
  }
};

struct Average {
  using Args = AverageArgs;
  static constexpr int64_t kMaxSummands = 16384;
  struct Counts {  // values before this step
    int64_t *summands, *before, *steps;
    int64_t least, most;
    float rate;
    AB_HD bool to_second() const { return (*steps + 1) % kMaxSummands == 0; }
    AB_HD bool to_third() const {
      const int64_t now = *summands + 1;
      const float part = std::trunc(static_cast<float>(*steps + 1) * rate);
      return now >= least && (now >= most || static_cast<float>(now) >= part);
    }
  };
  template <class T> struct Body {
    Counts counts;
    const T* param;
    T *first, *second, *third;
    AB_HD void operator()(int64_t i) const {
      T one = first[i] + param[i], two = second[i];
      if (counts.to_second()) {
        two += one;
        one = 0;
      }
      if (counts.to_third()) {
        third[i] = one + two;
        one = two = 0;
      }
      first[i] = one;
      second[i] = two;
    }
  };
  struct Count {
    Counts counts;
    AB_HD void operator()(int64_t) const {
      const bool full = counts.to_third();
      if (full) *counts.before = *counts.summands + 1;
      *counts.summands = full ? 0 : *counts.summands + 1;
      ++*counts.steps;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Counts counts{
        a.counts[0].get<int64_t>(), a.counts[1].get<int64_t>(), a.counts[2].get<int64_t>(), a.least, a.most,
        static_cast<float>(a.p[0])};
    const Body<T> body{counts, a.param.get<T>(), a.sums[0].get<T>(), a.sums[1].get<T>(), a.sums[2].get<T>()};
    if (const int failed = each(launch, a.n, body)) return failed;
    return each(launch, 1, Count{counts});
  }
};

AB_KERNEL("update/lars_momentum", Lars, float, double);
AB_KERNEL("update/lamb", Lamb, float, double);
AB_KERNEL("clip_by_norm", ClipByNorm, float, double, half, bfloat16);
AB_KERNEL("average_accumulates", Average, float, double);

}  // namespace anabranch::device
