// Reconstructs whole sentences from the steps of a beam search, backwards from their last tokens.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::beam_search_decode_op {
namespace {

// The tokens selected in one step, with the beam that each of them continues.
struct Step {
  const int64_t* ids;
  const Tensor* scores;
  const LoD* lod;  // beams of each source, tokens of each beam

  int64_t first(size_t source) const { return (*lod)[1][static_cast<size_t>((*lod)[0][source])]; }
  int64_t end(size_t source) const { return first(source + 1); }
  // The beam of the previous step; beams without tokens have the offset of the next one.
  int64_t beam_of(int64_t row) const {
    const Offsets& o = (*lod)[1];
    return std::upper_bound(o.begin(), o.end(), row) - o.begin() - 1;
  }
};

double score(const Tensor& t, int64_t row) {
  return t.dtype() == DType::kFloat64 ? t.data<double>()[row] : static_cast<double>(t.data<float>()[row]);
}

const TensorArray& array(const KernelContext& c, In in, const char* slot) {
  const TensorArray* a = c.value(in).get<TensorArray>();
  AB_CHECK(a && !a->empty(), InvalidArgument, "{} must be an array of at least one tensor, got {}", slot,
           a ? "an empty one" : "no array");
  return *a;
}

class Steps {
 public:
  Steps(const TensorArray& ids, const TensorArray& scores, std::vector<Tensor>* scratch) {
    AB_CHECK(ids.size() == scores.size(), InvalidArgument,
             "Ids and Scores must have the same number of steps, got {} and {}", ids.size(), scores.size());
    scratch->resize(ids.size());
    for (size_t t = 0; t < ids.size(); ++t) {
      check(t, ids[t], scores[t]);
      all_.push_back({as_int64(ids[t], &(*scratch)[t]), &scores[t], &ids[t].lod()});
    }
  }
  size_t count() const { return all_.size(); }
  size_t sources() const { return (*all_[0].lod)[0].size() - 1; }
  const Step& operator[](size_t t) const { return all_[t]; }

 private:
  void check(size_t t, const Tensor& ids, const Tensor& scores) const {
    AB_CHECK(ids.initialized() && scores.initialized(), InvalidArgument, "step {} of Ids or Scores was never written",
             t);
    AB_CHECK(ids.dtype() == DType::kInt64 || ids.dtype() == DType::kInt32, InvalidArgument,
             "Ids must hold int32 or int64, got {} in step {}", dtype_name(ids.dtype()), t);
    AB_CHECK(scores.dtype() == DType::kFloat32 || scores.dtype() == DType::kFloat64, InvalidArgument,
             "Scores must hold float32 or float64, got {} in step {}", dtype_name(scores.dtype()), t);
    const LoD& lod = ids.lod();
    AB_CHECK(lod.size() == 2, InvalidArgument, "Ids must have two LoD levels, got {} in step {}", lod.size(), t);
    AB_CHECK(lod[1].back() == ids.numel() && scores.numel() == ids.numel(), ShapeMismatch,
             "the LoD of Ids and Scores must cover the {} rows of Ids, got {} and {} in step {}", ids.numel(),
             lod[1].back(), scores.numel(), t);
    if (t == 0) return;
    const LoD& before = *all_[t - 1].lod;
    AB_CHECK(lod[0].size() == before[0].size(), InvalidArgument,
             "all steps of Ids must have the {} sources of the first one, got {} in step {}", before[0].size() - 1,
             lod[0].size() - 1, t);
    AB_CHECK(count_of(lod[1]) == before[1].back(), InvalidArgument,
             "Ids must continue the {} tokens of the previous step, got {} beams in step {}", before[1].back(),
             count_of(lod[1]), t);
  }
  static int64_t count_of(const Offsets& o) { return sequence::count(o); }

  std::vector<Step> all_;
};

struct Sentence {
  std::vector<int64_t> ids;  // in reverse order
  std::vector<double> scores;
  int64_t beam;
};

void append(const Step& step, int64_t row, int64_t end_id, Sentence* sentence) {
  const int64_t id = step.ids[row];
  if (id != end_id || sentence->ids.empty()) {  // a beam that has ended repeats its end token
    sentence->ids.push_back(id);
    sentence->scores.push_back(score(*step.scores, row));
  }
  sentence->beam = step.beam_of(row);
}

// The sentences of a source, best first.
std::vector<Sentence> sentences_of(const Steps& steps, size_t source, int64_t most, int64_t end_id) {
  std::vector<Sentence> found;
  for (size_t t = steps.count(); t-- > 0;) {
    const Step& step = steps[t];
    if (found.empty()) {  // sources are dropped when their beams have ended
      const int64_t rows = step.end(source) - step.first(source);
      AB_CHECK(rows <= most, InvalidArgument, "source {} must have at most beam_size ({}) beams, got {} in step {}",
               source, most, rows, t);
      found.resize(static_cast<size_t>(rows));
      for (int64_t k = 0; k < rows; ++k) append(step, step.first(source) + k, end_id, &found[static_cast<size_t>(k)]);
    } else {
      for (Sentence& sentence : found) append(step, sentence.beam, end_id, &sentence);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Sentence& a, const Sentence& b) { return a.scores.front() > b.scores.front(); });
  return found;
}

struct Result {
  Offsets sentences{0}, words{0};
  std::vector<int64_t> ids;
  std::vector<double> scores;
  void add(const std::vector<Sentence>& found) {
    sentences.push_back(sentences.back() + static_cast<int64_t>(found.size()));
    for (const Sentence& s : found) {
      words.push_back(words.back() + static_cast<int64_t>(s.ids.size()));
      ids.insert(ids.end(), s.ids.rbegin(), s.ids.rend());
      scores.insert(scores.end(), s.scores.rbegin(), s.scores.rend());
    }
  }
};

template <class To, class From> void copy_to(const std::vector<From>& from, const Shape& shape, Tensor* to) {
  to->resize(shape, dtype_of<To>);
  std::transform(from.begin(), from.end(), to->mutable_data<To>(), [](From v) { return static_cast<To>(v); });
}

Kernel kernel(const KernelArgs& op) {
  const int64_t most = op.attr<int32_t>("beam_size"), end_id = op.attr<int32_t>("end_id");
  return [=, ids = op.in("Ids"), scores = op.in("Scores"), out_ids = op.out("SentenceIds"),
          out_scores = op.out("SentenceScores"), scratch = std::make_shared<std::vector<Tensor>>()](KernelContext& c) {
    const TensorArray& all_scores = array(c, scores, "Scores");
    const Steps steps(array(c, ids, "Ids"), all_scores, scratch.get());
    Result result;
    for (size_t s = 0; s < steps.sources(); ++s) result.add(sentences_of(steps, s, most, end_id));
    const Shape shape{static_cast<int64_t>(result.ids.size())};
    const auto lod = std::make_shared<const LoD>(LoD{std::move(result.sentences), std::move(result.words)});
    copy_to<int64_t>(result.ids, shape, &c[out_ids]);
    if (all_scores[0].dtype() == DType::kFloat64) {
      copy_to<double>(result.scores, shape, &c[out_scores]);
    } else {
      copy_to<float>(result.scores, shape, &c[out_scores]);
    }
    c[out_ids].set_lod(lod);
    c[out_scores].set_lod(lod);
  };
}

AB_OP(beam_search_decode)
    .doc("SentenceIds = the sentences built by the steps of a beam search, best first for each source.")
    .in("Ids", "LOD_TENSOR_ARRAY: selected_ids of each step")
    .in("Scores", "LOD_TENSOR_ARRAY: selected_scores of each step")
    .out("SentenceIds", "[words] int64; LoD: sentences of each source, words of each sentence")
    .out("SentenceScores", "[words], score of the beam at each word, dtype of Scores")
    .takes("Ids", Holds::kAnything)
    .takes("Scores", Holds::kAnything)
    .attr<int32_t>("beam_size", 1, "number of beams per source, at least 1", at_least("beam_size", 1))
    .attr<int32_t>("end_id", 0, "token that ends a sentence")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      for (const char* slot : {"Ids", "Scores"}) {
        AB_CHECK(c.in(slot).kind == VarKind::kLoDTensorArray, InvalidArgument,
                 "{} must be a LOD_TENSOR_ARRAY, got a {}", slot, var_kind_name(c.in(slot).kind));
      }
      const int64_t rows = c.runtime() ? 0 : kUnknown;
      c.set_out("SentenceIds", Shape{rows}, DType::kInt64);
      c.set_out("SentenceScores", Shape{rows}, c.runtime() ? DType::kFloat32 : c.in("Scores").dtype);
      for (const char* slot : {"SentenceIds", "SentenceScores"}) c.out(slot).lod_level = 2;
    })
    .no_grad("selections have no gradient")
    .cpu_any(kernel);

}  // namespace
}  // namespace anabranch::sequence::beam_search_decode_op
