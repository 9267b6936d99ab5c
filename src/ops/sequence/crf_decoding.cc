// Viterbi decoding: the most probable tags under a linear chain.
#include <algorithm>

#include "ops/sequence/crf.h"

namespace anabranch::sequence::crf_decoding_op {
namespace {

constexpr int64_t kGrain = 16384;

// For each tag the best score of a path that ends there, [2, tags] alternating, and the previous tag, [rows, tags].
template <class T> struct Viterbi {
  int64_t tags;
  const T *x, *w;
  T* score;
  int64_t* back;

  void step(int64_t row, const T* from, T* to) const {
    int64_t* where = back + row * tags;
    std::fill(where, where + tags, int64_t{0});
    for (int64_t i = 0; i < tags; ++i) to[i] = from[0] + w[2 * tags + i];
    for (int64_t j = 1; j < tags; ++j) {
      const T* weights = w + (2 + j) * tags;
      for (int64_t i = 0; i < tags; ++i) {
        const T value = from[j] + weights[i];
        const bool better = value > to[i];
        to[i] = better ? value : to[i];
        where[i] = better ? j : where[i];
      }
    }
    for (int64_t i = 0; i < tags; ++i) to[i] += x[row * tags + i];
  }

  void run(int64_t begin, int64_t n, int64_t* path) const {
    T *now = score, *other = score + tags;
    for (int64_t i = 0; i < tags; ++i) now[i] = w[i] + x[begin * tags + i];
    for (int64_t t = begin + 1; t < begin + n; ++t) {
      step(t, now, other);
      std::swap(now, other);
    }
    for (int64_t i = 0; i < tags; ++i) now[i] += w[tags + i];
    int64_t best = std::max_element(now, now + tags) - now;
    for (int64_t t = begin + n - 1; t >= begin; --t) {
      path[t] = best;
      best = t > begin ? back[t * tags + best] : 0;
    }
  }
};

template <class T> struct Scratch { Tensor ids, lengths, scores, back; };

constexpr auto kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("Emission"), w = op.in("Transition"), label = op.in("Label"), length = op.in("Length");
  return [=, out = op.out("ViterbiPath"), scratch = std::make_shared<Scratch<T>>()](KernelContext& c) {
    const Spans spans = crf_spans(c, x, length, length ? nullptr : &offsets(c[x]), &scratch->lengths);
    const int64_t tags = c[w].shape()[1], rows = c[x].numel() / tags;
    scratch->scores.resize(Shape{spans.count(), 2 * tags}, dtype_of<T>);
    scratch->back.resize(Shape{rows, tags}, DType::kInt64);
    T* scores = scratch->scores.template mutable_data<T>();
    auto* back = scratch->back.template mutable_data<int64_t>();
    auto* path = c[out].mutable_data<int64_t>();
    if (length) std::fill(path, path + rows, int64_t{0});
    const int64_t work = std::max<int64_t>(1, rows * tags * tags / std::max<int64_t>(1, spans.count()));
    c.parallel_each(spans.count(), kGrain / work + 1, [&](int64_t s) {
      const Viterbi<T> viterbi{tags, c[x].data<T>(), c[w].data<T>(), scores + s * 2 * tags, back};
      if (spans.rows(s) > 0) viterbi.run(spans.begin(s), spans.rows(s), path);
    });
    if (!label) return;
    const int64_t* labels = as_int64(c[label], &scratch->ids);
    for (int64_t s = 0; s < spans.count(); ++s) {
      for (int64_t t = spans.begin(s); t < spans.begin(s) + spans.rows(s); ++t) path[t] = path[t] == labels[t];
    }
  };
};

AB_OP(crf_decoding)
    .doc(
        "ViterbiPath = the tags with the largest score of linear_chain_crf; with Label: 1 where a tag equals that of "
        "Label, else 0.")
    .source("Lafferty, McCallum and Pereira, Conditional random fields, ICML 2001")
    .in("Emission", "[rows, tags] float with LoD, or [batch, rows, tags] with Length")
    .in("Transition", "[tags + 2, tags]: weights of the first tag, of the last, from each to each")
    .in_optional("Label", "[rows, 1] int32 or int64, or [batch, rows] or [batch, rows, 1]")
    .in_optional("Length", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out("ViterbiPath", "[rows, 1] int64 with the LoD of Emission, or [batch, rows] with 0 after a sequence")
    .dtype_of_input("Emission")
    .infer([](InferContext& c) {
      check_crf(c);
      const Shape& x = c.in("Emission").shape;
      const bool dense = c.has_in("Length");
      if (c.runtime() && !dense) single_level(c, "Emission");
      c.set_out("ViterbiPath", Shape{x[0], dense ? x[1] : 1}, DType::kInt64);
      share_fitting_lod(c, "ViterbiPath", "Emission");
    })
    .no_grad("tags have no gradient")
    .cpu<float, double>(kernel);

}  // namespace
}  // namespace anabranch::sequence::crf_decoding_op
