// word2vec's skip-gram with negative sampling, a window at a time: rows are fetched once, and what a window needs of
// them stays in the cache between its products.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/row_locks.h"
#include "core/selected_rows.h"
#include "opdef/op_def.h"
#include "ops/kernels/ids.h"
#include "ops/kernels/simd.h"
#include "ops/loss/class_rows.h"

namespace anabranch::loss {
namespace {

float dot(const float* a, const float* b, int64_t n) { return simd::dot(a, b, n); }
double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void axpy(float s, const float* x, float* y, int64_t n) { simd::axpy(s, x, y, n); }
void axpy(double s, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += s * x[i];
}
void exp(const float* x, float* y, int64_t n) { simd::exp(x, y, n); }
void exp(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}
void log(const float* x, float* y, int64_t n) { simd::log(x, y, n); }
void log(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::log(x[i]);
}

OpDef& inputs(OpDef& def) {
  return def.attr<bool>("shared", false, "all words of a window have the same negatives")
      .attr<bool>("is_sparse", false, "the gradients of the tables hold the touched rows only")
      .in("Words", "[V, D] float: vectors of the words of the context")
      .in("Contexts", "[C, D] float: vectors of centres and negatives")
      .in("Context", "[N, W] int64: rows of Words")
      .in("Centre", "[N, 1] int64: rows of Contexts")
      .in("Negatives", "[N, K] int64 if shared, else [N, W K]: rows of Contexts")
      .in_optional("Present", "[N, W] float: 1 for a word, 0 for filling");
}

// How many negatives each word has.
int64_t drawn(const InferContext& c) {
  const int64_t width = c.in("Context").shape[1], given = c.in("Negatives").shape[1];
  if (c.attr<bool>("shared")) return given;
  if (width == kUnknown || given == kUnknown) return kUnknown;
  AB_CHECK(given % width == 0, ShapeMismatch,
           "{}: Negatives is {}, expected as many for each of the {} words of Context", op_name(c),
           c.in("Negatives").shape.str(), width);
  return given / width;
}

void check_inputs(const InferContext& c) {
  check_class_table(c, "Words", "Contexts");
  for (const char* slot : {"Context", "Centre", "Negatives"}) {
    check_integers(c, slot);
    check_rank(c, slot, 2, 2);
  }
  const Shape &context = c.in("Context").shape, &centre = c.in("Centre").shape, &others = c.in("Negatives").shape;
  AB_CHECK(centre[1] == 1 || centre[1] == kUnknown, ShapeMismatch, "{}: Centre is {}, expected [N, 1]", op_name(c),
           centre.str());
  for (const Shape* shape : {&centre, &others}) {
    AB_CHECK((*shape)[0] == context[0] || (*shape)[0] == kUnknown || context[0] == kUnknown, ShapeMismatch,
             "{}: Context is {}, Centre {}, Negatives {}; they must have as many rows", op_name(c), context.str(),
             centre.str(), others.str());
  }
  AB_CHECK(context[1] != 0 && others[1] != 0, ShapeMismatch, "{}: a window without words or without negatives",
           op_name(c));
  if (!c.has_in("Present")) return;
  check_numel(c, "Present", context.numel());
  check_same_dtype(c, "Present", "Words");
}

// What both kernels read.
struct Handles {
  bool shared;
  In words, contexts, context, centre, negatives, present;
  explicit Handles(const KernelArgs& op)
      : shared(op.attr<bool>("shared")),
        words(op.in("Words")),
        contexts(op.in("Contexts")),
        context(op.in("Context")),
        centre(op.in("Centre")),
        negatives(op.in("Negatives")),
        present(op.in("Present")) {}
};

struct Converted {  // ids of 32 bits as 64
  Tensor context, centre, negatives;
};

template <class T> struct Windows {
  const T *words, *contexts, *present;
  const int64_t *context, *centre, *negatives;
  int64_t count, width, drawn, dim;
  bool shared, held;  // negatives; rows are held while they are copied

  Windows(KernelContext& c, const Handles& h, Converted* converted)
      : words(c[h.words].data<T>()),
        contexts(c[h.contexts].data<T>()),
        present(h.present ? c[h.present].data<T>() : nullptr),
        context(as_int64(c[h.context], &converted->context)),
        centre(as_int64(c[h.centre], &converted->centre)),
        negatives(as_int64(c[h.negatives], &converted->negatives)),
        count(c[h.context].shape()[0]),
        width(c[h.context].shape()[1]),
        drawn(c[h.negatives].shape()[1] / (h.shared ? 1 : width)),
        dim(c[h.words].shape()[1]),
        shared(h.shared),
        held(RowLocks::shared()) {
    check_ids("skip_gram: Context", context, count * width, c[h.words].shape()[0]);
    check_ids("skip_gram: Centre", centre, count, c[h.contexts].shape()[0]);
    check_ids("skip_gram: Negatives", negatives, c[h.negatives].numel(), c[h.contexts].shape()[0]);
  }

  bool has(int64_t i, int64_t w) const { return !present || present[i * width + w] != 0; }
  T weight(int64_t i, int64_t w) const { return present ? present[i * width + w] : T{1}; }
  int64_t sets() const { return shared ? 1 : width; }  // of negatives in a window
  int64_t targets() const { return 1 + drawn * sets(); }
  // Where the row of target t of word w stands among the targets of a window; target 0 is the centre.
  int64_t target(int64_t w, int64_t t) const { return t == 0 || shared ? t : w * drawn + t; }
  int64_t target_id(int64_t i, int64_t at) const {
    return at == 0 ? centre[i] : negatives[i * drawn * sets() + at - 1];
  }
  int64_t grain() const { return 8192 / (width * (1 + drawn) * std::max<int64_t>(1, dim)) + 1; }

  // The rows of a window side by side: first those of the words, then those of the targets.
  const T* fetch(int64_t i) const {
    thread_local std::vector<T> rows;
    const auto need = static_cast<size_t>((width + targets()) * dim);
    if (rows.size() < need) rows.resize(need);
    for (int64_t w = 0; w < width; ++w) copy(words, context[i * width + w], rows.data() + w * dim);
    for (int64_t t = 0; t < targets(); ++t) copy(contexts, target_id(i, t), rows.data() + (width + t) * dim);
    return rows.data();
  }
  void copy(const T* table, int64_t row, T* to) const {
    const RowLocks::Hold hold(table, row, held);
    std::copy(table + row * dim, table + (row + 1) * dim, to);
  }
};

// The loss of one word, -ln sigmoid(x_0) - sum_k ln sigmoid(-x_k); x becomes its slopes.
template <class T> T word_loss(T* x, T* scratch, int64_t n, T weight) {
  T* const logs = scratch + n;
  T loss = std::max(-x[0], T{0});
  for (int64_t k = 1; k < n; ++k) loss += std::max(x[k], T{0});
  for (int64_t k = 0; k < n; ++k) scratch[k] = -std::abs(x[k]);
  exp(scratch, scratch, n);
  for (int64_t k = 0; k < n; ++k) {
    logs[k] = 1 + scratch[k];
    x[k] = weight * ((x[k] < 0 ? scratch[k] : T{1}) / logs[k] - (k == 0 ? T{1} : T{0}));
  }
  log(logs, logs, n);
  for (int64_t k = 0; k < n; ++k) loss += logs[k];
  return weight * loss;
}

template <class T> Kernel forward(const KernelArgs& op) {
  return [h = Handles(op), loss = op.out("Loss"), slopes = op.out("Slopes"),
          converted = std::make_shared<Converted>()](KernelContext& c) {
    const Windows<T> all(c, h, converted.get());
    T *to = c[loss].template mutable_data<T>(), *slope = c[slopes].template mutable_data<T>();
    c.parallel_for(all.count, all.grain(), [&all, to, slope](int64_t begin, int64_t end) {
      const int64_t n = 1 + all.drawn;
      thread_local std::vector<T> scratch;
      if (scratch.size() < static_cast<size_t>(2 * n)) scratch.resize(static_cast<size_t>(2 * n));
      for (int64_t i = begin; i < end; ++i) {
        const T *rows = all.fetch(i), *targets = rows + all.width * all.dim;
        to[i] = 0;
        for (int64_t w = 0; w < all.width; ++w) {
          T* x = slope + (i * all.width + w) * n;
          if (!all.has(i, w)) {
            std::fill(x, x + n, T{0});
            continue;
          }
          for (int64_t t = 0; t < n; ++t) {
            x[t] = dot(rows + w * all.dim, targets + all.target(w, t) * all.dim, all.dim);
          }
          to[i] += word_loss(x, scratch.data(), n, all.weight(i, w));
        }
      }
    });
  };
}

// The gradients of both tables as rows; of a window only the words that are there.
template <class T> struct RowGradients {
  SelectedRows words, contexts;
  std::vector<int64_t> first;  // of each window: words of the windows before it

  void count(const Windows<T>& all, SelectedRows* to_words, SelectedRows* to_contexts, const Tensor& word_table,
             const Tensor& context_table) {
    first.resize(static_cast<size_t>(all.count) + 1);
    for (int64_t i = 0, sum = 0; i <= all.count; ++i) {
      first[static_cast<size_t>(i)] = sum;
      for (int64_t w = 0; i < all.count && w < all.width; ++w) sum += all.has(i, w);
    }
    resize(to_words, first.back(), word_table);
    resize(to_contexts, target_rows(all, all.count), context_table);
  }
  // Rows that targets of the windows before i have.
  int64_t target_rows(const Windows<T>& all, int64_t i) const {
    return i + all.drawn * (all.shared ? i : first[static_cast<size_t>(i)]);
  }
  static void resize(SelectedRows* to, int64_t rows, const Tensor& table) {
    to->height = table.shape()[0];
    to->rows.resize(static_cast<size_t>(rows));
    to->value.resize(Shape{rows, table.shape()[1]}, dtype_of<T>);
    to->value.template mutable_data<T>();
  }
};

// The gradients of window i.
template <class T>
void window_grad(const Windows<T>& all, int64_t i, const T* slopes, T g, const RowGradients<T>& places,
                 SelectedRows* words, SelectedRows* contexts) {
  const int64_t dim = all.dim, n = 1 + all.drawn, from = places.target_rows(all, i);
  const T *rows = all.fetch(i), *targets = rows + all.width * dim;
  int64_t word = places.first[static_cast<size_t>(i)], others = 1;
  T* const dwords = words->value.template mutable_data<T>();
  T* const dtargets = contexts->value.template mutable_data<T>() + from * dim;
  const int64_t mine = places.target_rows(all, i + 1) - from;
  std::fill(dtargets, dtargets + mine * dim, T{0});
  int64_t* const ids = contexts->rows.data() + from;
  ids[0] = all.centre[i];
  for (int64_t t = 1; all.shared && t < n; ++t) ids[t] = all.target_id(i, t);
  for (int64_t w = 0; w < all.width; ++w) {
    if (!all.has(i, w)) continue;
    T* dword = dwords + word * dim;
    std::fill(dword, dword + dim, T{0});
    words->rows[static_cast<size_t>(word++)] = all.context[i * all.width + w];
    for (int64_t t = 0; t < n; ++t) {
      const int64_t at = all.target(w, t), place = t == 0 || all.shared ? t : others++;
      const T s = g * slopes[(i * all.width + w) * n + t];
      ids[place] = all.target_id(i, at);
      axpy(s, targets + at * dim, dword, dim);
      axpy(s, rows + w * dim, dtargets + place * dim, dim);
    }
  }
}

template <class T> void add_up(const SelectedRows& rows, Tensor* to) {
  T* sum = to->mutable_data<T>();
  std::fill(sum, sum + to->numel(), T{0});
  const int64_t dim = to->shape()[1];
  for (size_t r = 0; r < rows.rows.size(); ++r) {
    axpy(T{1}, rows.value.template data<T>() + static_cast<int64_t>(r) * dim, sum + rows.rows[r] * dim, dim);
  }
}

template <class T> Kernel backward(const KernelArgs& op) {
  return [h = Handles(op), sparse = op.attr<bool>("is_sparse"), slopes = op.in("Slopes"), dloss = op.in("Loss@GRAD"),
          dwords = op.out("Words@GRAD"), dcontexts = op.out("Contexts@GRAD"), converted = std::make_shared<Converted>(),
          own = std::make_shared<RowGradients<T>>()](KernelContext& c) {
    const Windows<T> all(c, h, converted.get());
    const auto place = [&](Out out, SelectedRows* spare) {
      return sparse && c.wants(out) ? &c.value(out).template as<SelectedRows>() : spare;
    };
    SelectedRows *words = place(dwords, &own->words), *contexts = place(dcontexts, &own->contexts);
    own->count(all, words, contexts, c[h.words], c[h.contexts]);
    const T *slope = c[slopes].template data<T>(), *g = c[dloss].template data<T>();
    c.parallel_for(all.count, all.grain(), [&, words, contexts](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) window_grad(all, i, slope, g[i], *own, words, contexts);
    });
    if (sparse) return;
    if (c.wants(dwords)) add_up<T>(*words, &c[dwords]);
    if (c.wants(dcontexts)) add_up<T>(*contexts, &c[dcontexts]);
  };
}

[[maybe_unused]] OpDef& skip_gram =
    inputs(declare_op("skip_gram", __FILE__))
        .doc(
            "Loss[i] = sum over the words w of window i of -ln sigmoid(Words[w] . Contexts[centre]) - sum over its "
            "negatives k of ln sigmoid(-Words[w] . Contexts[k]), times Present.")
        .source("Mikolov et al., NeurIPS 2013; shared negatives: Ji et al., IEEE TPDS 2019")
        .out("Loss", "[N, 1]")
        .out_intermediate("Slopes", "[N, W, 1 + K]: derivatives of the loss by the scores")
        .dtype_of_input("Words")
        .infer([](InferContext& c) {
          check_inputs(c);
          const Shape& context = c.in("Context").shape;
          const int64_t k = drawn(c);
          c.set_out("Loss", Shape{context[0], 1}, c.in("Words").dtype);
          c.set_out("Slopes", Shape{context[0], context[1], k == kUnknown ? k : 1 + k}, c.in("Words").dtype);
        })
        .grad([](GradContext& g) {
          GradOp op = g.op("skip_gram_grad");
          for (const char* slot : {"Words", "Contexts", "Context", "Centre", "Negatives", "Present"}) {
            op.in(slot, g.in(slot));
          }
          op.in("Slopes", g.out("Slopes")).in("Loss@GRAD", g.dout("Loss"));
          op.out("Words@GRAD", g.din("Words")).out("Contexts@GRAD", g.din("Contexts"));
        })
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& skip_gram_grad =
    inputs(declare_op("skip_gram_grad", __FILE__))
        .doc("Gradients of both tables: a row for each word that is there, each centre and each of its negatives.")
        .in("Slopes", "from skip_gram")
        .in("Loss@GRAD", "as Loss")
        .out_optional("Words@GRAD", "as Words, dense or sparse")
        .out_optional("Contexts@GRAD", "as Contexts, dense or sparse")
        .dtype_of_input("Words")
        .infer([](InferContext& c) {
          check_inputs(c);
          check_same_dtype(c, "Slopes", "Words");
          check_same_dtype(c, "Loss@GRAD", "Words");
          check_numel(c, "Loss@GRAD", c.in("Context").shape[0]);
          const int64_t k = drawn(c), pairs = c.in("Context").shape.numel();
          check_numel(c, "Slopes", k < 0 || pairs < 0 ? kUnknown : pairs * (1 + k));
          for (const char* slot : {"Words", "Contexts"}) {
            const std::string grad = std::string(slot) + "@GRAD";
            grad_as(c, grad, slot);
            if (c.has_out(grad) && c.attr<bool>("is_sparse")) c.out(grad).kind = VarKind::kSelectedRows;
          }
        })
        .no_grad("second derivatives of a table are not offered")
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch::loss
