// Divides a weight by its largest singular value, which power iteration estimates from two persistent vectors.
#include <cmath>
#include <vector>

#include "base/flags.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"

namespace anabranch::nn::spectral_norm_op {
namespace {

// The weight as a matrix: axis `dim` forms the rows, the others the columns.
struct Matrix {
  int64_t outer, rows, inner;
  Matrix(const Shape& s, int dim) : outer(s.numel(0, dim)), rows(s[dim]), inner(s.numel(dim + 1, s.rank())) {}
  int64_t columns() const { return outer * inner; }
  int64_t at(int64_t row, int64_t column) const { return (column / inner * rows + row) * inner + column % inner; }
};

// u, v after the iterations, and sigma = u^T W v.
template <class T> struct Estimate {
  std::vector<T> u, v;
  T sigma = 0;

  void make(const Matrix& m, const T* w, const T* u_in, const T* v_in, int iterations, T eps) {
    u.assign(u_in, u_in + m.rows);
    v.assign(v_in, v_in + m.columns());
    for (int i = 0; i < iterations; ++i) {
      for (int64_t k = 0; k < m.columns(); ++k) {
        T sum = 0;
        for (int64_t r = 0; r < m.rows; ++r) sum += w[m.at(r, k)] * u[r];
        v[k] = sum;
      }
      normalize(&v, eps);
      times_v(m, w, &u);
      normalize(&u, eps);
    }
    std::vector<T>& product = scratch;
    product.resize(static_cast<size_t>(m.rows));
    times_v(m, w, &product);
    sigma = 0;
    for (int64_t r = 0; r < m.rows; ++r) sigma += u[r] * product[r];
  }

 private:
  void times_v(const Matrix& m, const T* w, std::vector<T>* to) const {
    for (int64_t r = 0; r < m.rows; ++r) {
      T sum = 0;
      for (int64_t k = 0; k < m.columns(); ++k) sum += w[m.at(r, k)] * v[k];
      (*to)[r] = sum;
    }
  }
  static void normalize(std::vector<T>* x, T eps) {
    T squares = 0;
    for (const T value : *x) squares += value * value;
    const T divisor = std::sqrt(squares) + eps;
    for (T& value : *x) value /= divisor;
  }
  std::vector<T> scratch;
};

void check_vectors(const InferContext& c) {
  check_rank(c, "Weight", 2, 5);
  const int dim = c.attr<int32_t>("dim");
  const Shape& s = c.in("Weight").shape;
  const int64_t rows = s[dim];
  const int64_t columns = s.known() && rows > 0 ? s.numel() / rows : kUnknown;
  for (const auto& [slot, extent] : {std::pair{"U", rows}, {"V", columns}}) {
    check_same_dtype(c, slot, "Weight");
    check_shape(c, slot, Shape{extent});
  }
}

struct Attrs {
  int dim, iterations;
  float eps;
  explicit Attrs(const KernelArgs& op)
      : dim(op.attr<int32_t>("dim")), iterations(op.attr<int32_t>("power_iters")), eps(op.attr<float>("eps")) {}
};

AB_OP(spectral_norm)
    .doc(
        "With Weight as a matrix W, axis dim as rows: power_iters times V = W^T U / (|W^T U| + eps), U = W V / (|W V| "
        "+ eps), starting from the inputs, which are not changed; then Out = Weight / (U^T W V).")
    .source("Miyato et al., ICLR 2018, arXiv:1802.05957")
    .in("Weight", "[...] float, of 2 to 5 axes")
    .in("U", "[extent of axis dim] like Weight")
    .in("V", "[product of the other extents] like Weight")
    .out("Out", "like Weight")
    .attr<int32_t>("dim", 0, "axis of the rows: 0, or 1 for transposed convolutions", within("dim", 0, 1))
    .attr<int32_t>("power_iters", 1, "iterations", within("power_iters", 0, 1 << 20))
    .attr<float>("eps", 1e-12f, "keeps divisors from 0")
    .dtype_of_input("Weight")
    .infer([](InferContext& c) {
      check_vectors(c);
      c.same_as("Out", "Weight");
    })
    .grad_reads({"Weight", "U", "V"})
    .grad_to({"Weight"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [a = Attrs(op), estimate = Estimate<T>(), w = op.in("Weight"), u = op.in("U"), v = op.in("V"),
              out = op.out("Out")](KernelContext& c) mutable {
        const T* from = c[w].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t n = c[w].numel();
        if (n == 0) return;
        estimate.make(Matrix(c[w].shape(), a.dim), from, c[u].data<T>(), c[v].data<T>(), a.iterations,
                      static_cast<T>(a.eps));
        for (int64_t i = 0; i < n; ++i) to[i] = from[i] / estimate.sigma;
      };
    });

AB_GRAD(spectral_norm)
    .doc(
        "U and V after the iterations are treated as constants: Weight@GRAD = (Out@GRAD - sum(Out@GRAD Weight) / sigma "
        "U V^T) / sigma.")
    .dtype_of_input("Weight")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [a = Attrs(op), estimate = Estimate<T>(), w = op.in("Weight"), u = op.in("U"), v = op.in("V"),
              dout = op.in("Out@GRAD"), dw = op.out("Weight@GRAD")](KernelContext& c) mutable {
        if (!c.needs(dw) || c[w].numel() == 0) return;
        const Matrix m(c[w].shape(), a.dim);
        const T *from = c[w].data<T>(), *g = c[dout].data<T>();
        estimate.make(m, from, c[u].data<T>(), c[v].data<T>(), a.iterations, static_cast<T>(a.eps));
        T weighed = 0, sum = 0;
        for (int64_t i = 0; i < c[w].numel(); ++i) {
          weighed += g[i] * from[i];
          sum += from[i];
        }
        T* to = c[dw].mutable_data<T>();
        const T sigma = estimate.sigma, part = weighed / sigma;
        // Fluid 1.8.5 multiplies by each element of Out@GRAD instead of their weighted sum.
        const bool exact = Flags::exact_fluid();
        for (int64_t r = 0; r < m.rows; ++r) {
          for (int64_t k = 0; k < m.columns(); ++k) {
            const int64_t i = m.at(r, k);
            const T share = exact ? g[i] * sum / sigma : part;
            to[i] = (g[i] - share * estimate.u[r] * estimate.v[k]) / sigma;
          }
        }
      };
    });

}  // namespace
}  // namespace anabranch::nn::spectral_norm_op
