// word2vec's skip-gram with negative sampling, one window at a time: rows are read once and stay in the cache for all
// products of the window.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/selected_rows.h"
#include "opdef/op_def.h"
#include "ops/kernels/ids.h"
#include "ops/kernels/simd.h"
#include "ops/loss/class_rows.h"
#include "ops/loss/word_loops.h"
#include "ops/loss/word_windows.h"

namespace anabranch::loss::skip_gram_op {
namespace {

void exp(const float* x, float* y, int64_t n) { simd::exp(x, y, n); }
void exp(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}
void log(const float* x, float* y, int64_t n) { simd::log(x, y, n); }
void log(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::log(x[i]);
}

// Number of negatives per word.
int64_t drawn(const InferContext& c) {
  const int64_t width = c.in("Context").shape[1], given = c.in("Negatives").shape[1];
  if (c.attr<bool>("shared")) return given;
  if (width == kUnknown || given == kUnknown) return kUnknown;
  AB_CHECK(given % width == 0, ShapeMismatch,
           "Negatives must have the same number for each of the {} words of Context, got {}", width,
           c.in("Negatives").shape.str());
  return given / width;
}

void check_inputs(const InferContext& c) {
  check_class_table(c, "Words", "Contexts");
  for (const char* slot : {"Context", "Centre", "Negatives"}) {
    check_ids_dtype(c, slot);
    check_rank(c, slot, 2, 2);
  }
  const Shape &context = c.in("Context").shape, &others = c.in("Negatives").shape;
  check_shape(c, "Centre", Shape{context[0], 1});
  check_equal_rows(c, "Negatives", "Context");
  AB_CHECK(context[1] != 0 && others[1] != 0, ShapeMismatch, "a window must have words and negatives, got {} and {}",
           context[1], others[1]);
  if (!c.has_in("Present")) return;
  check_numel(c, "Present", context.numel());
  check_same_dtype(c, "Present", "Words");
}

// Computes losses and slopes of all pairs at once from scores; the first of each n pairs is the true one.
template <class T> void softplus(T* x, T* scratch, int64_t count, int64_t n) {
  T* const logs = scratch + count;
  for (int64_t k = 0; k < count; ++k) scratch[k] = -std::abs(x[k]);
  exp(scratch, scratch, count);
  for (int64_t k = 0; k < count; ++k) logs[k] = 1 + scratch[k];
  log(logs, logs, count);
  for (int64_t p = 0; p < count; p += n) {
    for (int64_t k = p; k < p + n; ++k) {
      const T e = scratch[k], loss = logs[k] + std::max(k == p ? -x[k] : x[k], T{0});
      x[k] = (x[k] < 0 ? e : T{1}) / (1 + e) - (k == p ? T{1} : T{0});
      logs[k] = loss;
    }
  }
}

// The loss of window i; its slopes [W, 1 + K].
template <class T> T window_loss(const WordWindows<T>& all, int64_t i, T* slopes) {
  WordWindow<T>& window = WordWindow<T>::mine();
  window.fetch(all, i);
  all.prefetch(i + 1);
  const int64_t n = 1 + all.drawn, words = static_cast<int64_t>(window.words.size());
  std::fill(slopes, slopes + all.width * n, T{0});
  if (words == 0) return 0;
  for (int64_t p = 0; p < words; ++p) {
    const T* word = window.words[static_cast<size_t>(p)];
    T* x = window.x.data() + p * n;
    scores(word, window.targets.data(), 1, all.dim, x);
    scores(word, window.targets.data() + window.first(all, p), all.drawn, all.dim, x + 1);
  }
  softplus(window.x.data(), window.scratch.data(), words * n, n);
  T loss = 0;
  for (int64_t p = 0; p < words; ++p) {
    const int64_t w = window.places[static_cast<size_t>(p)];
    const T weight = all.weight(i, w);
    for (int64_t t = 0; t < n; ++t) {
      slopes[w * n + t] = weight * window.x[static_cast<size_t>(p * n + t)];
      loss += weight * window.scratch[static_cast<size_t>((words + p) * n + t)];
    }
  }
  return loss;
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [h = Handles(op), loss = op.out("Loss"), slopes = op.out("Slopes"),
          converted = std::make_shared<Converted>()](KernelContext& c) {
    const WordWindows<T> all(c, h, converted.get());
    T *to = c[loss].mutable_data<T>(), *slope = c[slopes].mutable_data<T>();
    c.parallel_each(all.count, all.grain(), [&all, to, slope](int64_t i) {
      to[i] = window_loss(all, i, slope + i * all.width * (1 + all.drawn));
    });
  };
};

// The gradients of both tables as rows; of a window only the words that are present.
template <class T> struct RowGradients {
  SelectedRows words, contexts;
  std::vector<int64_t> first;  // per window: number of words in earlier windows

  void count(const WordWindows<T>& all, SelectedRows* to_words, SelectedRows* to_contexts, const Tensor& word_table,
             const Tensor& context_table) {
    first.resize(static_cast<size_t>(all.count) + 1);
    for (int64_t i = 0, sum = 0; i <= all.count; ++i) {
      first[static_cast<size_t>(i)] = sum;
      for (int64_t w = 0; i < all.count && w < all.width; ++w) sum += all.has(i, w);
    }
    resize(to_words, first.back(), word_table);
    resize(to_contexts, target_rows(all, all.count), context_table);
  }
  // Number of rows for the targets of windows before i.
  int64_t target_rows(const WordWindows<T>& all, int64_t i) const {
    return i + all.drawn * (all.shared ? i : first[static_cast<size_t>(i)]);
  }
  static void resize(SelectedRows* to, int64_t rows, const Tensor& table) {
    to->height = table.shape()[0];
    to->rows.resize(static_cast<size_t>(rows));
    to->value.resize(Shape{rows, table.shape()[1]}, dtype_of<T>);
    to->value.mutable_data<T>();
  }
};

// The gradients of window i.
template <class T>
void window_grad(const WordWindows<T>& all, int64_t i, const T* slopes, T g, const RowGradients<T>& places,
                 SelectedRows* words, SelectedRows* contexts) {
  WordWindow<T>& window = WordWindow<T>::mine();
  window.fetch(all, i);
  all.prefetch(i + 1);
  const int64_t dim = all.dim, n = 1 + all.drawn, count = static_cast<int64_t>(window.words.size());
  const int64_t first = places.first[static_cast<size_t>(i)], from = places.target_rows(all, i);
  T* const dwords = words->value.mutable_data<T>() + first * dim;
  T* const dtargets = contexts->value.mutable_data<T>() + from * dim;
  const T* const* const targets = window.targets.data();
  T* const factors = window.x.data();
  std::copy(window.ids.begin(), window.ids.end(), contexts->rows.begin() + from);
  for (int64_t p = 0; p < count; ++p) {
    const int64_t w = window.places[static_cast<size_t>(p)];
    words->rows[static_cast<size_t>(first + p)] = all.context[i * all.width + w];
    for (int64_t t = 0; t < n; ++t) factors[p * n + t] = g * slopes[w * n + t];
    if (all.shared) {
      combine(targets, factors + p * n, 1, n, dim, dwords + p * dim);
      continue;
    }
    const T* const* own = targets + window.first(all, p);
    combine(own, factors + p * n + 1, 1, all.drawn, dim, dwords + p * dim);
    for (int64_t k = 0; k < dim; ++k) dwords[p * dim + k] += factors[p * n] * targets[0][k];
    for (int64_t t = 1; t < n; ++t) {
      combine(&window.words[static_cast<size_t>(p)], factors + p * n + t, 1, 1, dim,
              dtargets + (window.first(all, p) + t - 1) * dim);
    }
  }
  for (int64_t t = 0; t < (all.shared ? n : 1); ++t) {
    combine(window.words.data(), factors + t, n, count, dim, dtargets + t * dim);
  }
}

template <class T> void add_up(const SelectedRows& rows, Tensor* to) {
  T* sum = to->mutable_data<T>();
  std::fill(sum, sum + to->numel(), T{0});
  const int64_t dim = to->shape()[1];
  for (size_t r = 0; r < rows.rows.size(); ++r) {
    const T* from = rows.value.data<T>() + static_cast<int64_t>(r) * dim;
    for (int64_t k = 0; k < dim; ++k) sum[rows.rows[r] * dim + k] += from[k];
  }
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [h = Handles(op), sparse = op.attr<bool>("is_sparse"), slopes = op.in("Slopes"), dloss = op.in("Loss@GRAD"),
          dwords = op.out("Words@GRAD"), dcontexts = op.out("Contexts@GRAD"), converted = std::make_shared<Converted>(),
          own = std::make_shared<RowGradients<T>>()](KernelContext& c) {
    const WordWindows<T> all(c, h, converted.get());
    const auto place = [&](Out out, SelectedRows* spare) {
      return sparse && c.needs(out) ? &c.value(out).template as<SelectedRows>() : spare;
    };
    SelectedRows *words = place(dwords, &own->words), *contexts = place(dcontexts, &own->contexts);
    own->count(all, words, contexts, c[h.words], c[h.contexts]);
    const T *slope = c[slopes].data<T>(), *g = c[dloss].data<T>();
    c.parallel_each(all.count, all.grain(), [&, words, contexts](int64_t i) {
      window_grad(all, i, slope + i * all.width * (1 + all.drawn), g[i], *own, words, contexts);
    });
    if (sparse) return;
    if (c.needs(dwords)) add_up<T>(*words, &c[dwords]);
    if (c.needs(dcontexts)) add_up<T>(*contexts, &c[dcontexts]);
  };
};

AB_OP(skip_gram)
    .doc(
        "Loss[i] = sum over the words w of window i of -ln sigmoid(Words[w] . Contexts[centre]) - sum over its "
        "negatives k of ln sigmoid(-Words[w] . Contexts[k]), times Present.")
    .source("Mikolov et al., NeurIPS 2013; shared negatives: Ji et al., IEEE TPDS 2019")
    .in("Words", "[V, D] float: vectors of context words")
    .in("Contexts", "[C, D] float: vectors of centres and negatives")
    .in("Context", "[N, W] int64: rows of Words")
    .in("Centre", "[N, 1] int64: rows of Contexts")
    .in("Negatives", "[N, K] int64 if shared, else [N, W K]: rows of Contexts")
    .in_optional("Present", "[N, W] float: 1 for a word, 0 for padding")
    .out("Loss", "[N, 1]")
    .out_intermediate("Slopes", "[N, W, 1 + K]: derivatives of the loss with respect to the scores")
    .attr<bool>("shared", false, "all words of a window share their negatives")
    .attr<bool>("is_sparse", false, "the gradients of the tables hold only the touched rows")
    .dtype_of_input("Words")
    .infer([](InferContext& c) {
      check_inputs(c);
      const Shape& context = c.in("Context").shape;
      const int64_t k = drawn(c);
      c.set_out("Loss", Shape{context[0], 1}, c.in("Words").dtype);
      c.set_out("Slopes", Shape{context[0], context[1], k == kUnknown ? k : 1 + k}, c.in("Words").dtype);
    })
    .grad_reads({"Words", "Contexts", "Context", "Centre", "Negatives", "Present"}, {"Slopes"})
    .grad_to({"Words", "Contexts"})
    .cpu<float, double>(forward);

AB_GRAD(skip_gram)
    .doc("Gradients of both tables: one row per present word, per centre and per negative.")
    .dtype_of_input("Words")
    .infer([](InferContext& c) {
      infer_table_gradients(c, {"Words@GRAD", "Contexts@GRAD"});
    })
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::loss::skip_gram_op
