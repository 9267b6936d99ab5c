// One step of a beam search: selects the best continuations of the beams of each source.
#include <algorithm>
#include <cmath>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::beam_search_op {
namespace {

// A beam and the token that continues it. Of equal scores the later beam wins.
struct Candidate {
  int64_t beam, id;
  double score;
  bool worse_than(const Candidate& other) const {
    return score < other.score || (score == other.score && beam < other.beam);
  }
};

// Keeps the best `most`, best first. As in Fluid 1.8.5, a candidate equal to the last one replaces it.
void insert(std::vector<Candidate>* kept, const Candidate& candidate, size_t most) {
  if (kept->size() == most) {
    if (candidate.worse_than(kept->back())) return;
    kept->pop_back();
  }
  const auto at =
      std::find_if(kept->begin(), kept->end(), [&](const Candidate& other) { return other.worse_than(candidate); });
  kept->insert(at, candidate);
}

// Row offsets of the sources: the offsets of the requested level, converted to rows.
Offsets rows_of_level(const LoD& lod, size_t level) {
  Offsets rows = lod[level];
  for (size_t l = level + 1; l < lod.size(); ++l) {
    for (int64_t& at : rows) at = lod[l][static_cast<size_t>(at)];
  }
  return rows;
}

void infer(InferContext& c) {
  check_ids_dtype(c, "pre_ids");
  check_same_dtype(c, "pre_scores", "scores");
  check_rank(c, "scores", 2, 2);
  const Shape& scores = c.in("scores").shape;
  for (const char* slot : {"pre_ids", "pre_scores"}) check_number_per_row(c, slot, scores[0]);
  if (c.has_in("ids")) {
    check_ids_dtype(c, "ids");
    check_same_shape(c, "ids", "scores");
    check_same_dtype(c, "ids", "pre_ids");
  }
  if (c.runtime()) {
    const LoD& lod = lod_of(c, "scores");
    const auto level = static_cast<size_t>(c.attr<int32_t>("level"));
    AB_CHECK(level < lod.size(), InvalidArgument, "level must be one of the {} LoD levels of scores, got {}",
             lod.size(), level);
  }
  const int64_t rows = c.runtime() ? 0 : kUnknown;  // the number of results is known only at run time
  c.set_out("selected_ids", Shape{rows, 1}, c.in("pre_ids").dtype);
  c.set_out("selected_scores", Shape{rows, 1}, c.in("scores").dtype);
  c.set_out("parent_idx", Shape{rows}, DType::kInt32);
}

template <class T> class Search {
 public:
  explicit Search(const KernelArgs& op)
      : pre_ids_(op.in("pre_ids")),
        pre_scores_(op.in("pre_scores")),
        ids_(op.in("ids")),
        scores_(op.in("scores")),
        most_(static_cast<size_t>(op.attr<int32_t>("beam_size"))),
        end_(op.attr<int32_t>("end_id")),
        accumulated_(op.attr<bool>("is_accumulated")) {}

  // The selected ones, in the order of their beams.
  const std::vector<Candidate>& run(const KernelContext& c, const Offsets& sources) {
    chosen_.clear();
    own_ = as_int64(c[pre_ids_], &own_scratch_);
    tokens_ = ids_ ? as_int64(c[ids_], &token_scratch_) : nullptr;
    for (size_t s = 1; s < sources.size(); ++s) {
      kept_.clear();
      for (int64_t beam = sources[s - 1]; beam < sources[s]; ++beam) continue_beam(c, beam);
      const bool all_ended = std::all_of(kept_.begin(), kept_.end(),
                                         [&](const Candidate& k) { return k.id == end_ && own_[k.beam] == end_; });
      if (all_ended) continue;  // all beams of this source have ended
      std::stable_sort(kept_.begin(), kept_.end(),
                       [](const Candidate& a, const Candidate& b) { return a.beam < b.beam; });
      chosen_.insert(chosen_.end(), kept_.begin(), kept_.end());
    }
    return chosen_;
  }

 private:
  void continue_beam(const KernelContext& c, int64_t beam) {
    const double before = c[pre_scores_].data<T>()[beam];
    if (own_[beam] == end_) return insert(&kept_, {beam, end_, before}, most_);
    const int64_t width = c[scores_].shape()[1];
    const T* row = c[scores_].data<T>() + beam * width;
    for (int64_t k = 0; k < width; ++k) {
      const double score = accumulated_ ? row[k] : static_cast<T>(before + std::log(static_cast<double>(row[k])));
      insert(&kept_, {beam, tokens_ ? tokens_[beam * width + k] : k, score}, most_);
    }
  }

  In pre_ids_, pre_scores_, ids_, scores_;
  size_t most_;
  int64_t end_;
  bool accumulated_;
  const int64_t *own_ = nullptr, *tokens_ = nullptr;
  Tensor own_scratch_, token_scratch_;
  std::vector<Candidate> kept_, chosen_;
};

void write_ids(const std::vector<Candidate>& chosen, Tensor* ids) {
  const bool wide = ids->dtype() == DType::kInt64;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (wide) {
      ids->mutable_data<int64_t>()[i] = chosen[i].id;
    } else {
      ids->mutable_data<int32_t>()[i] = static_cast<int32_t>(chosen[i].id);
    }
  }
}

constexpr auto kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const auto level = static_cast<size_t>(op.attr<int32_t>("level"));
  return [=, search = std::make_shared<Search<T>>(op), pre_ids = op.in("pre_ids"), scores = op.in("scores"),
          ids = op.out("selected_ids"), best = op.out("selected_scores"),
          parents = op.out("parent_idx")](KernelContext& c) {
    Offsets sources = rows_of_level(c[scores].lod(), level);
    const std::vector<Candidate>& chosen = search->run(c, sources);
    const auto n = static_cast<int64_t>(chosen.size());
    Offsets ends(static_cast<size_t>(c[scores].shape()[0]) + 1, 0);  // of the continuations of each beam
    for (const Candidate& k : chosen) ++ends[static_cast<size_t>(k.beam) + 1];
    for (size_t b = 1; b < ends.size(); ++b) ends[b] += ends[b - 1];
    const auto lod = std::make_shared<const LoD>(LoD{std::move(sources), std::move(ends)});
    c[ids].resize(Shape{n, 1}, c[pre_ids].dtype());
    c[best].resize(Shape{n, 1}, dtype_of<T>);
    c[ids].set_lod(lod);
    c[best].set_lod(lod);
    write_ids(chosen, &c[ids]);
    T* to = c[best].mutable_data<T>();
    for (const Candidate& k : chosen) *to++ = static_cast<T>(k.score);
    if (!c.needs(parents)) return;
    c[parents].resize(Shape{n}, DType::kInt32);
    auto* parent = c[parents].mutable_data<int32_t>();
    for (const Candidate& k : chosen) *parent++ = static_cast<int32_t>(k.beam);
  };
};

AB_OP(beam_search)
    .doc(
        "Selects the beam_size continuations with the highest scores among all beams of a source and all of their "
        "tokens. A beam that ends with end_id is kept unchanged; a source whose selected beams have all ended is "
        "dropped.")
    .source("Sutskever, Vinyals and Le, Sequence to sequence learning with neural networks, NIPS 2014")
    .in("pre_ids", "[beams, 1] int32 or int64, the last token of each beam")
    .in("pre_scores", "[beams, 1] float, the score of each beam")
    .in_optional("ids", "[beams, K] tokens that may continue a beam; if not given, the columns of scores")
    .in("scores", "[beams, K] scores of beams and token, or probabilities of the tokens; LoD: beams of each source")
    .out("selected_ids", "[chosen, 1]; LoD: beams of each source, continuations of each beam")
    .out("selected_scores", "[chosen, 1] with the LoD of selected_ids")
    .out_optional("parent_idx", "[chosen] int32, index of the beam that is continued")
    .attr<int32_t>("level", 0, "LoD level of scores that holds the sources", at_least("level", 0))
    .attr<int32_t>("beam_size", 1, "number of beams per source, at least 1", at_least("beam_size", 1))
    .attr<int32_t>("end_id", 0, "token that ends a beam")
    .attr<bool>("is_accumulated", true,
                "scores are those of whole beams; false: probabilities of tokens, whose logarithms are added")
    .dtype_of_input("scores")
    .effects(kDynamic)
    .infer(infer)
    .no_grad("selections have no gradient")
    .cpu<float, double>(kernel);

}  // namespace
}  // namespace anabranch::sequence::beam_search_op
