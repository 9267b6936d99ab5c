// Gradients of linear_chain_crf: dynamic programming in reverse from the last row.
#include <algorithm>
#include <type_traits>

#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/crf_chain.h"

namespace anabranch::sequence::linear_chain_crf_grad_op {
namespace {

// Memory of the backward kernel.
template <class T> struct Workspace {
  Tensor ids, lengths;
  Tensor turned;  // the transpose of exp(Transition)
  Tensor beta;    // [rows, tags]: normalized sums over all paths that start after a tag; then the probabilities of tags
  Tensor next;    // [rows, tags]: g exp(x) beta / Z, where Z is the sum over all pairs of this tag and the previous one
  Tensor pairs;   // [tags, tags]: the sum over all steps of alpha next
  Tensor scratch, sums;  // of the vector loops
  Gemm<T> gemm;
  T* get(Tensor* t, const Shape& shape) {
    t->resize(shape, dtype_of<T>);
    return t->template mutable_data<T>();
  }
};

void check_probability(double z) {
  AB_CHECK(z > 0, InvalidArgument, "the probability of the tags must be above 0: Transition or Emission are too small");
}

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
    check_probability(z);
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

// The same for float32, vectorized; beta: the probabilities of tags directly.
void vector_backward(const Chain<float>& chain, const float* alpha, const float* weights, int64_t begin, int64_t n,
                     float g, float* scratch, float* z, float* beta, float* next) {
  const int64_t at = begin * chain.tags;
  loops::crf_backward({chain.tags, n, chain.x_exps + at, weights, scratch}, chain.w_exps + chain.tags, alpha + at, g,
                      beta + at, next + at, z + begin);
  for (int64_t t = begin; t < begin + n; ++t) check_probability(z[t]);
}

// The gradient of Transition: the expected first tags, last tags and pairs minus the actual ones.
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

template <class T> void transpose(const T* w, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) out[j * n + i] = w[i * n + j];
  }
}

// For all sequences, each of them a task.
template <class T>
void way_back(KernelContext& c, const Chain<T>& chain, const Spans& spans, int64_t rows, const T* alpha, const T* g,
              Workspace<T>* work, T* beta, T* next) {
  const int64_t tags = chain.tags;
  const int64_t cost = std::max<int64_t>(1, rows * tags * tags / std::max<int64_t>(1, spans.count()));
  const auto each = [&](auto&& fn) {
    c.parallel_each(spans.count(), kChainGrain / cost + 1, [&](int64_t s) {
      if (spans.rows(s) > 0) fn(s);
    });
  };
  if constexpr (std::is_same_v<T, float>) {
    const int64_t width = 2 * loops::crf_width(tags);
    const float* weights = vector_weights(chain.w_exps + 2 * tags, tags, true, &work->turned);
    float *scratch = crf_memory(&work->scratch, spans.count(), width), *z = crf_memory(&work->sums, rows, 1);
    each([&](int64_t s) {
      vector_backward(chain, alpha, weights, spans.begin(s), spans.rows(s), g[s], scratch + s * width, z, beta, next);
    });
  } else {
    T* turned = work->get(&work->turned, Shape{tags, tags});
    transpose(chain.w_exps + 2 * tags, tags, turned);
    each([&](int64_t s) { backward(chain, alpha, turned, spans.begin(s), spans.rows(s), g[s], beta, next); });
  }
}

constexpr auto gradient = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("Emission"), w = op.in("Transition"), label = op.in("Label"), length = op.in("Length");
  const In alpha = op.in("Alpha"), x_exps = op.in("EmissionExps"), w_exps = op.in("TransitionExps");
  const In dloss = op.in("LogLikelihood@GRAD");
  const Out dx = op.out("Emission@GRAD"), dw = op.out("Transition@GRAD");
  return [=, work = std::make_shared<Workspace<T>>()](KernelContext& c) {
    const Spans spans = crf_spans(c, x, length, length ? nullptr : &c[label].lod().front(), &work->lengths);
    const int64_t tags = c[w].shape()[1], rows = c[x].numel() / tags;
    const Chain<T> chain{tags,           c[x].data<T>(),      c[x_exps].data<T>(),
                         c[w].data<T>(), c[w_exps].data<T>(), as_int64(c[label], &work->ids)};
    check_tags(spans, chain.labels, tags);
    const T *a = c[alpha].data<T>(), *g = c[dloss].data<T>();
    T *beta = work->get(&work->beta, Shape{rows, tags}), *next = work->get(&work->next, Shape{rows, tags});
    const bool some_outside = length || spans.begin(spans.count()) < rows;
    if (some_outside) std::fill(next, next + rows * tags, T{0});
    way_back(c, chain, spans, rows, a, g, work.get(), beta, next);
    if (T* to = zeroed<T>(c, dx)) emission_gradient(chain, spans, beta, g, to);
    if (!c.needs(dw)) return;
    T* pairs = work->get(&work->pairs, Shape{tags, tags});
    const int64_t steps = std::max<int64_t>(0, rows - 1);
    work->gemm.run(c, {.m = tags, .n = tags, .k = steps, .trans_a = true}, a, next + (steps > 0 ? tags : 0), pairs);
    transition_gradient(chain, spans, beta, pairs, g, c[dw].mutable_data<T>());
  };
};

AB_GRAD(linear_chain_crf)
    .doc("Gradients: the probabilities of each tag, of the first, of the last and of each pair, minus those of Label.")
    .dtype_of_input("Emission")
    .grad_lod("Emission@GRAD", "Label")
    .grad_lod("Transition@GRAD", "Transition")
    .infer([](InferContext& c) {
      infer_gradient(c);
      if (!c.has_in("Length") || !c.has_out("Emission@GRAD")) return;
      c.out("Emission@GRAD").lod = nullptr;
      c.out("Emission@GRAD").lod_level = 0;
    })
    .cpu<float, double>(gradient);

}  // namespace
}  // namespace anabranch::sequence::linear_chain_crf_grad_op
