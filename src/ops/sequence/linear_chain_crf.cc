// The negative log-likelihood of tags under a linear chain, by dynamic programming from the first row to the last.
#include <algorithm>
#include <type_traits>

#include "ops/kernels/simd.h"
#include "ops/sequence/crf_chain.h"

namespace anabranch::sequence::linear_chain_crf_op {
namespace {

void exps(const float* x, float* out, int64_t n) { simd::exp(x, out, n); }
void exps(const double* x, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i]);
}

// out = exp(x - the maximum of its row), and the maximum.
template <class T> void row_exps(const T* x, int64_t rows, int64_t tags, T* largest, T* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * tags;
    const T most = largest[r] = *std::max_element(row, row + tags);
    for (int64_t i = 0; i < tags; ++i) out[r * tags + i] = row[i] - most;
  }
  exps(out, out, rows * tags);
}

// Memory of the kernel.
struct Workspace {
  Tensor ids, lengths, largest, weights, scratch, sums;
  template <class T> T* rows(Tensor* t, int64_t n) {
    t->resize(Shape{n}, dtype_of<T>);
    return t->mutable_data<T>();
  }
};

// fn(sequence): the logarithm of the sum over its paths.
template <class T, class Fn>
void each_sequence(KernelContext& c, const Chain<T>& chain, const Spans& spans, int64_t rows, T* out, Fn&& fn) {
  const int64_t work = std::max<int64_t>(1, rows * chain.tags * chain.tags / std::max<int64_t>(1, spans.count()));
  c.parallel_each(spans.count(), kChainGrain / work + 1, [&](int64_t s) {
    const int64_t begin = spans.begin(s), n = spans.rows(s);
    out[s] = n == 0 ? T{0} : static_cast<T>(fn(s) - chain.score(begin, n));
  });
}

void infer(InferContext& c) {
  check_crf(c);
  const Shape& x = c.in("Emission").shape;
  int64_t sequences = c.has_in("Length") ? x[0] : kUnknown;
  if (c.runtime() && !c.has_in("Length")) {
    // As in Fluid 1.8.5, the outermost level of Label determines the sequences.
    const LoD& lod = lod_of(c, "Label");
    const LoDRef& own = c.in("Emission").lod;
    AB_CHECK(!own || own->empty() || *own == lod, InvalidArgument, "Emission and Label must have the same sequences");
    sequences = count(outer_level(c, "Label"));
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
  return [=, work = std::make_shared<Workspace>()](KernelContext& c) {
    const Spans spans = crf_spans(c, x, length, length ? nullptr : &c[label].lod().front(), &work->lengths);
    const int64_t tags = c[w].shape()[1], rows = c[x].numel() / tags;
    T *a = c[alpha].mutable_data<T>(), *xe = c[x_exps].mutable_data<T>();
    T *we = c[w_exps].mutable_data<T>(), *out = c[loss].mutable_data<T>();
    const Chain<T> chain{tags, c[x].data<T>(), xe, c[w].data<T>(), we, as_int64(c[label], &work->ids)};
    check_tags(spans, chain.labels, tags);
    T* largest = work->rows<T>(&work->largest, rows);
    c.parallel_for(rows, kChainGrain / 16 / tags + 1, [&](int64_t first, int64_t last) {
      row_exps(chain.x + first * tags, last - first, tags, largest + first, xe + first * tags);
    });
    exps(chain.w, we, c[w].numel());
    if constexpr (std::is_same_v<T, float>) {
      const float* weights = vector_weights(we + 2 * tags, tags, false, &work->weights);
      const int64_t width = 2 * loops::crf_width(tags);
      float *scratch = crf_memory(&work->scratch, spans.count(), width), *sums = work->rows<T>(&work->sums, rows);
      each_sequence(c, chain, spans, rows, out, [&](int64_t s) {
        return chain.vector_forward(spans.begin(s), spans.rows(s), largest, weights, scratch + s * width, sums, a);
      });
    } else {
      each_sequence(c, chain, spans, rows, out,
                    [&](int64_t s) { return chain.forward(spans.begin(s), spans.rows(s), largest, a); });
    }
    std::fill(a + spans.begin(spans.count()) * tags, a + rows * tags, T{0});
    if (!length) return;
    for (int64_t s = 0; s < spans.count(); ++s) {
      std::fill(a + (spans.begin(s) + spans.rows(s)) * tags, a + spans.begin(s + 1) * tags, T{0});
    }
  };
}

AB_OP(linear_chain_crf)
    .doc(
        "LogLikelihood = -log P(Label | Emission): P is exp(score) divided by its sum over all taggings, score = "
        "Transition[0, first tag] + Transition[1, last tag] + sum of Emission[t, tag t] + sum of Transition[2 + tag t, "
        "tag t + 1].")
    .source("Lafferty, McCallum and Pereira, Conditional random fields, ICML 2001")
    .in("Emission", "[rows, tags] float, or [batch, rows, tags] with Length")
    .in("Transition", "[tags + 2, tags]: weights of the first tag, of the last, from each to each")
    .in("Label", "[rows, 1] int32 or int64 in [0, tags) with LoD, or [batch, rows] or [batch, rows, 1]")
    .in_optional("Length", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out_intermediate("Alpha", "like Emission: normalized sums over paths that end at a tag")
    .out_intermediate("EmissionExps", "exp(Emission - the maximum of its row)")
    .out_intermediate("TransitionExps", "exp(Transition)")
    .out("LogLikelihood", "[sequences, 1], negative; 0 for an empty sequence")
    .dtype_of_input("Emission")
    .infer(infer)
    .grad_reads({"Emission", "Transition", "Label", "Length"}, {"Alpha", "EmissionExps", "TransitionExps"})
    .grad_from({"LogLikelihood"})
    .grad_to({"Emission", "Transition"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); });

}  // namespace
}  // namespace anabranch::sequence::linear_chain_crf_op
