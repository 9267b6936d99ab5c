// The negative log-likelihood of tags under a linear chain: dynamic programming forward, and backward for gradients.
// Sums over paths are kept as shares of their sum, so that no sequence is too long for them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/simd.h"
#include "ops/sequence/crf.h"

namespace anabranch::sequence {
namespace {

constexpr int64_t kGrain = 16384;  // multiplications that are worth a piece of their own

// out[i] = exp(x[i] - from)
void exp_from(const float* x, float from, float* out, int64_t n) {
  simd::shift(x, from, -std::numeric_limits<float>::infinity(), out, n);
  simd::exp(out, out, n);
}
void exp_from(const double* x, double from, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - from);
}

// out = row w, w [n, n].
template <class T> void times(const T* row, const T* w, int64_t n, T* out) {
  std::fill(out, out + n, T{0});
  for (int64_t j = 0; j < n; ++j) {
    const T factor = row[j], *weights = w + j * n;
    for (int64_t i = 0; i < n; ++i) out[i] += factor * weights[i];
  }
}

template <class T> double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Makes the sum of a row 1; returns what it was.
template <class T> double normalize(T* row, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += row[i];
  AB_CHECK(sum > 0, InvalidArgument,
           "no path has a probability above 0 (the sum is {}): Transition or Emission are too small, or hold NaN", sum);
  for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] / sum);
  return sum;
}

// Kernels see rows without regard to which batch entry they belong to.
template <class T> struct Chain {
  int64_t tags;
  const T *x, *x_exps;  // [rows, tags]
  const T *w, *w_exps;  // [2 + tags, tags]: of the first tag, of the last, from one to the next
  const int64_t* labels;

  double score(int64_t begin, int64_t n) const {
    const int64_t* y = labels + begin;
    double sum = static_cast<double>(w[y[0]]) + w[tags + y[n - 1]];
    for (int64_t t = 0; t < n; ++t) sum += x[(begin + t) * tags + y[t]];
    for (int64_t t = 1; t < n; ++t) sum += w[(2 + y[t - 1]) * tags + y[t]];
    return sum;
  }

  // Shares of the sums over all paths that end at a tag, for the rows of one sequence; returns the logarithm of the
  // sum over all paths.
  double forward(int64_t begin, int64_t n, T* alpha) const {
    double log_sum = 0;
    for (int64_t t = 0; t < n; ++t) {
      const T *e = x_exps + (begin + t) * tags, *from = x + (begin + t) * tags;
      T* a = alpha + (begin + t) * tags;
      if (t == 0) {
        std::copy(w_exps, w_exps + tags, a);
      } else {
        times(a - tags, w_exps + 2 * tags, tags, a);
      }
      for (int64_t i = 0; i < tags; ++i) a[i] *= e[i];
      log_sum += std::log(normalize(a, tags)) + *std::max_element(from, from + tags);
    }
    const double ends = dot(alpha + (begin + n - 1) * tags, w_exps + tags, tags);
    AB_CHECK(ends > 0, InvalidArgument, "no path has a probability above 0: row 1 of Transition is too small");
    return log_sum + std::log(ends);
  }
};

void infer(InferContext& c) {
  check_crf(c);
  const Shape& x = c.in("Emission").shape;
  int64_t sequences = c.has_in("Length") ? x[0] : kUnknown;
  if (c.runtime() && !c.has_in("Length")) {
    // As in the original, the sequences are those of Label.
    const LoD& lod = single_level(c, "Label");
    const LoDRef& own = c.in("Emission").lod;
    AB_CHECK(!own || own->empty() || *own == lod, InvalidArgument, "Emission and Label must have the same sequences");
    sequences = count(lod.back());
  }
  const DType dtype = c.in("Emission").dtype;
  c.same_shape("Alpha", "Emission");
  c.same_shape("EmissionExps", "Emission");
  c.same_shape("TransitionExps", "Transition");
  c.set_out("LogLikelihood", Shape{sequences, 1}, dtype);
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("Emission"), w = op.in("Transition"), label = op.in("Label"), length = op.in("Length");
  const Out alpha = op.out("Alpha"), x_exps = op.out("EmissionExps"), w_exps = op.out("TransitionExps");
  const Out loss = op.out("LogLikelihood");
  return [=, ids = std::make_shared<Tensor>(), lengths = std::make_shared<Tensor>()](KernelContext& c) {
    const Spans spans = crf_spans(c, x, length, length ? nullptr : &offsets(c[label]), lengths.get());
    const int64_t tags = c[w].shape()[1], rows = c[x].numel() / tags;
    T *a = c[alpha].template mutable_data<T>(), *xe = c[x_exps].template mutable_data<T>();
    T *we = c[w_exps].template mutable_data<T>(), *out = c[loss].template mutable_data<T>();
    const Chain<T> chain{tags, c[x].data<T>(), xe, c[w].data<T>(), we, as_int64(c[label], ids.get())};
    check_tags(spans, chain.labels, tags);
    c.parallel_for(rows, kGrain / 16 / tags + 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* row = chain.x + r * tags;
        exp_from(row, *std::max_element(row, row + tags), xe + r * tags, tags);
      }
    });
    exp_from(chain.w, T{0}, we, c[w].numel());
    const int64_t work = std::max<int64_t>(1, rows * tags * tags / std::max<int64_t>(1, spans.count()));
    c.parallel_for(spans.count(), kGrain / work + 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) {
        const int64_t begin = spans.begin(s), n = spans.rows(s);
        out[s] = n == 0 ? T{0} : static_cast<T>(chain.forward(begin, n, a) - chain.score(begin, n));
      }
    });
    if (!length) return;
    for (int64_t s = 0; s < spans.count(); ++s) {
      std::fill(a + (spans.begin(s) + spans.rows(s)) * tags, a + spans.begin(s + 1) * tags, T{0});
    }
  };
}

// Memory of the backward kernel.
template <class T> struct Workspace {
  Tensor ids, lengths;
  Tensor turned;  // the transpose of exp(Transition)
  Tensor beta;    // [rows, tags]: shares of the sums over all paths that begin behind a tag; then the tags' probability
  Tensor next;    // [rows, tags]: g exp(x) beta / Z, where Z is the sum over all pairs of this tag and the one before
  Tensor pairs;   // [tags, tags]: the sum over all steps of alpha next
  Gemm<T> gemm;
  T* get(Tensor* t, const Shape& shape) {
    t->resize(shape, dtype_of<T>);
    return t->template mutable_data<T>();
  }
};

// beta and next of one sequence, whose gradient is g.
template <class T>
void backward(const Chain<T>& chain, const T* alpha, const T* turned, int64_t begin, int64_t n, T g, T* beta, T* next) {
  const int64_t tags = chain.tags;
  std::copy(chain.w_exps + tags, chain.w_exps + 2 * tags, beta + (begin + n - 1) * tags);
  std::fill(next + begin * tags, next + (begin + 1) * tags, T{0});
  normalize(beta + (begin + n - 1) * tags, tags);
  for (int64_t t = begin + n - 1; t > begin; --t) {
    T *b = beta + t * tags, *u = next + t * tags;
    const T* e = chain.x_exps + t * tags;
    for (int64_t i = 0; i < tags; ++i) u[i] = e[i] * b[i];
    times(u, turned, tags, b - tags);
    const double z = dot(alpha + (t - 1) * tags, b - tags, tags);
    AB_CHECK(z > 0, InvalidArgument, "the probability of the tags has vanished: Transition or Emission are too small");
    const T scale = static_cast<T>(g / z);
    for (int64_t i = 0; i < tags; ++i) u[i] *= scale;
    normalize(b - tags, tags);
  }
  for (int64_t t = begin; t < begin + n; ++t) {
    T* b = beta + t * tags;
    for (int64_t i = 0; i < tags; ++i) b[i] *= alpha[t * tags + i];
    normalize(b, tags);
  }
}

// Transition's gradient: what the model expects of first tags, last tags and pairs, less what there is.
template <class T>
void transition_gradient(const Chain<T>& chain, const Spans& spans, const T* marginal, const T* pairs, const T* g,
                         T* dw) {
  const int64_t tags = chain.tags;
  std::fill(dw, dw + 2 * tags, T{0});
  for (int64_t i = 0; i < tags * tags; ++i) dw[2 * tags + i] = pairs[i] * chain.w_exps[2 * tags + i];
  for (int64_t s = 0; s < spans.count(); ++s) {
    if (spans.rows(s) == 0) continue;
    const int64_t begin = spans.begin(s), last = begin + spans.rows(s) - 1;
    for (int64_t i = 0; i < tags; ++i) {
      dw[i] += g[s] * marginal[begin * tags + i];
      dw[tags + i] += g[s] * marginal[last * tags + i];
    }
    dw[chain.labels[begin]] -= g[s];
    dw[tags + chain.labels[last]] -= g[s];
    for (int64_t t = begin; t < last; ++t) dw[(2 + chain.labels[t]) * tags + chain.labels[t + 1]] -= g[s];
  }
}

template <class T>
void emission_gradient(const Chain<T>& chain, const Spans& spans, const T* marginal, const T* g, T* dx) {
  const int64_t tags = chain.tags;
  for (int64_t s = 0; s < spans.count(); ++s) {
    for (int64_t t = spans.begin(s); t < spans.begin(s) + spans.rows(s); ++t) {
      for (int64_t i = 0; i < tags; ++i) dx[t * tags + i] = g[s] * marginal[t * tags + i];
      dx[t * tags + chain.labels[t]] -= g[s];
    }
  }
}

template <class T> void turn(const T* w, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) out[j * n + i] = w[i * n + j];
  }
}

template <class T> Kernel gradient(const KernelArgs& op) {
  const In x = op.in("Emission"), w = op.in("Transition"), label = op.in("Label"), length = op.in("Length");
  const In alpha = op.in("Alpha"), x_exps = op.in("EmissionExps"), w_exps = op.in("TransitionExps");
  const In dloss = op.in("LogLikelihood@GRAD");
  const Out dx = op.out("Emission@GRAD"), dw = op.out("Transition@GRAD");
  return [=, work = std::make_shared<Workspace<T>>()](KernelContext& c) {
    const Spans spans = crf_spans(c, x, length, length ? nullptr : &offsets(c[label]), &work->lengths);
    const int64_t tags = c[w].shape()[1], rows = c[x].numel() / tags;
    const Chain<T> chain{tags,           c[x].data<T>(),      c[x_exps].data<T>(),
                         c[w].data<T>(), c[w_exps].data<T>(), as_int64(c[label], &work->ids)};
    check_tags(spans, chain.labels, tags);
    const T *a = c[alpha].data<T>(), *g = c[dloss].data<T>();
    T* turned = work->get(&work->turned, Shape{tags, tags});
    T *beta = work->get(&work->beta, Shape{rows, tags}), *next = work->get(&work->next, Shape{rows, tags});
    turn(chain.w_exps + 2 * tags, tags, turned);
    if (length) std::fill(next, next + rows * tags, T{0});
    const int64_t cost = std::max<int64_t>(1, rows * tags * tags / std::max<int64_t>(1, spans.count()));
    c.parallel_for(spans.count(), kGrain / cost + 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) {
        if (spans.rows(s) > 0) backward(chain, a, turned, spans.begin(s), spans.rows(s), g[s], beta, next);
      }
    });
    if (T* to = zeroed<T>(c, dx)) emission_gradient(chain, spans, beta, g, to);
    if (!c.wants(dw)) return;
    T* pairs = work->get(&work->pairs, Shape{tags, tags});
    const int64_t steps = std::max<int64_t>(0, rows - 1);
    work->gemm.run(c, {.m = tags, .n = tags, .k = steps, .trans_a = true}, a, next + (steps > 0 ? tags : 0), pairs);
    transition_gradient(chain, spans, beta, pairs, g, c[dw].template mutable_data<T>());
  };
}

AB_OP(linear_chain_crf)
    .doc(
        "LogLikelihood = -log P(Label | Emission): P is exp(score) over its sum over all taggings, score = "
        "Transition[0, "
        "first tag] + Transition[1, last tag] + sum of Emission[t, tag t] + sum of Transition[2 + tag t, tag t + 1].")
    .source("Lafferty, McCallum and Pereira, Conditional random fields, ICML 2001")
    .in("Emission", "[rows, tags] float, or [batch, rows, tags] with Length")
    .in("Transition", "[tags + 2, tags]: of the first tag, of the last, from each to each")
    .in("Label", "[rows, 1] int32 or int64 in [0, tags) with sequences, or [batch, rows] or [batch, rows, 1]")
    .in_optional("Length", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out_intermediate("Alpha", "as Emission, shares of paths that end at a tag")
    .out_intermediate("EmissionExps", "exp(Emission - its largest tag)")
    .out_intermediate("TransitionExps", "exp(Transition)")
    .out("LogLikelihood", "[sequences, 1], negative; 0 of an empty sequence")
    .dtype_of_input("Emission")
    .infer(infer)
    .grad_reads({"Emission", "Transition", "Label", "Length"}, {"Alpha", "EmissionExps", "TransitionExps"})
    .grad_from({"LogLikelihood"})
    .grad_to({"Emission", "Transition"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

AB_GRAD(linear_chain_crf)
    .doc("Probability of each tag, of the first, of the last and of each pair, less those of Label.")
    .dtype_of_input("Emission")
    .grad_lod("Emission@GRAD", "Label")
    .grad_lod("Transition@GRAD", "Transition")
    .infer([](InferContext& c) {
      infer_gradient(c);
      if (!c.has_in("Length") || !c.has_out("Emission@GRAD")) return;
      c.out("Emission@GRAD").lod = nullptr;
      c.out("Emission@GRAD").lod_level = 0;
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return gradient<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch::sequence
