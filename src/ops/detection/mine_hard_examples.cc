// Selects the priors with the largest losses for training.
#include <cmath>
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::mine_hard_examples_op {
namespace {

void check_max_negative(const InferContext& c) {
  const float ratio = c.attr<float>("neg_pos_ratio"), threshold = c.attr<float>("neg_dist_threshold");
  AB_CHECK(ratio > 0, InvalidArgument, "neg_pos_ratio must be above 0, got {}", ratio);
  AB_CHECK(threshold > 0 && threshold < 1, InvalidArgument, "neg_dist_threshold must be between 0 and 1, got {}",
           threshold);
}

void infer(InferContext& c) {
  check_rank(c, "ClsLoss", 2, 2);
  for (const char* slot : {"LocLoss", "MatchDist", "MatchIndices"}) {
    if (!c.has_in(slot)) continue;
    check_rank(c, slot, 2, 2);
    // Before the program runs, ssd_loss knows ClsLoss only by the shape of a tensor that replaces it later.
    if (c.runtime()) check_same_shape(c, slot, "ClsLoss");
  }
  if (c.has_in("LocLoss")) check_same_dtype(c, "LocLoss", "ClsLoss");
  check_same_dtype(c, "MatchDist", "ClsLoss");
  check_dtype(c, "MatchIndices", DType::kInt32);
  if (c.attr<std::string>("mining_type") == "max_negative") {
    check_max_negative(c);
  } else {
    const int32_t size = c.attr<int32_t>("sample_size");
    AB_CHECK(size > 0, InvalidArgument, "sample_size must be above 0, got {}", size);
  }
  // The number of results is known only at run time.
  c.set_out("NegIndices", c.runtime() ? Shape{0, 1} : Shape{kUnknown, 1}, DType::kInt32);
  if (!c.runtime()) c.out("NegIndices").lod_level = 1;
  c.set_out("UpdatedMatchIndices", c.in("MatchIndices").shape, DType::kInt32);
}

// Selects among the priors of a sample; its lists are kept from step to step.
template <class T> class Miner {
 public:
  explicit Miner(const KernelArgs& op)
      : all_(op.attr<std::string>("mining_type") == "hard_example"),
        sample_size_(op.attr<int32_t>("sample_size")),
        ratio_(op.attr<float>("neg_pos_ratio")),
        threshold_(static_cast<T>(op.attr<float>("neg_dist_threshold"))) {}

  void begin(int64_t priors) {
    negatives.clear();
    offsets.assign(1, 0);
    chosen_.resize(static_cast<size_t>(priors));
  }

  // `updated` holds the matches; priors that are not selected lose theirs.
  void mine(const T* cls, const T* loc, const T* dist, int32_t* updated) {
    const auto n = static_cast<int64_t>(chosen_.size());
    choose(cls, loc, dist, updated, n);
    for (int64_t j = 0; j < n; ++j) {
      const bool chosen = chosen_[static_cast<size_t>(j)];
      if (chosen && updated[j] < 0) negatives.push_back(static_cast<int32_t>(j));
      if (all_ && !chosen) updated[j] = std::min(updated[j], -1);
    }
    offsets.push_back(static_cast<int64_t>(negatives.size()));
  }

  std::vector<int32_t> negatives;
  std::vector<int64_t> offsets;

 private:
  struct Loss {
    T loss;
    int64_t prior;
    bool operator<(const Loss& o) const {  // larger losses first, then smaller indices; NaN last
      const bool here = std::isnan(loss), there = std::isnan(o.loss);
      if (here || there) return here == there ? prior < o.prior : there;
      return loss != o.loss ? loss > o.loss : prior < o.prior;
    }
  };

  void choose(const T* cls, const T* loc, const T* dist, const int32_t* match, int64_t n) {
    losses_.clear();
    int64_t positives = 0;
    for (int64_t j = 0; j < n; ++j) {
      positives += match[j] != -1;
      if (all_) losses_.push_back({loc ? cls[j] + loc[j] : cls[j], j});
      if (!all_ && match[j] == -1 && dist[j] < threshold_) losses_.push_back({cls[j], j});
    }
    const auto candidates = static_cast<int64_t>(losses_.size());
    const int64_t needed = all_ ? sample_size_ : share(positives, candidates);
    const auto middle = losses_.begin() + static_cast<std::ptrdiff_t>(std::min(needed, candidates));
    std::nth_element(losses_.begin(), middle, losses_.end());
    std::fill(chosen_.begin(), chosen_.end(), false);
    for (auto at = losses_.begin(); at != middle; ++at) chosen_[static_cast<size_t>(at->prior)] = true;
  }

  int64_t share(int64_t positives, int64_t most) const {
    const float needed = static_cast<float>(positives) * ratio_;
    return needed < static_cast<float>(most) ? static_cast<int64_t>(needed) : most;
  }

  bool all_;
  int64_t sample_size_;
  float ratio_;
  T threshold_;
  std::vector<Loss> losses_;
  std::vector<bool> chosen_;
};

template <class T> Kernel miner(const KernelArgs& op) {
  return [miner = Miner<T>(op), cls = op.in("ClsLoss"), loc = op.in("LocLoss"), match = op.in("MatchIndices"),
          dist = op.in("MatchDist"), neg = op.out("NegIndices"),
          updated = op.out("UpdatedMatchIndices")](KernelContext& c) mutable {
    const Shape s = c[cls].shape();
    const T *class_loss = c[cls].data<T>(), *near = c[dist].data<T>();
    const T* place_loss = loc ? c[loc].data<T>() : nullptr;
    int32_t* matches = c[updated].mutable_data<int32_t>();
    std::copy_n(c[match].data<int32_t>(), s.numel(), matches);
    miner.begin(s[1]);
    for (int64_t n = 0; n < s[0]; ++n) {
      const int64_t at = n * s[1];
      miner.mine(class_loss + at, place_loss ? place_loss + at : nullptr, near + at, matches + at);
    }
    Tensor& out = c[neg];
    out.resize(Shape{static_cast<int64_t>(miner.negatives.size()), 1}, DType::kInt32);
    std::copy(miner.negatives.begin(), miner.negatives.end(), out.mutable_data<int32_t>());
    out.set_lod(s[0] == 0 ? nullptr : std::make_shared<const LoD>(LoD{miner.offsets}));
  };
}

AB_OP(mine_hard_examples)
    .doc(
        "max_negative selects, of the unmatched priors of a sample with MatchDist below neg_dist_threshold, those with "
        "the largest ClsLoss, neg_pos_ratio for each matched prior. hard_example selects the sample_size priors with "
        "the largest ClsLoss + LocLoss; all others lose their match.")
    .source("Liu et al., SSD: single shot multibox detector, ECCV 2016, arXiv:1512.02325")
    .in("ClsLoss", "[samples, priors] float")
    .in_optional("LocLoss", "like ClsLoss")
    .in("MatchIndices", "[samples, priors] int32: matched rows, -1 for none")
    .in("MatchDist", "like ClsLoss: similarity of the matches")
    .out("NegIndices", "[number, 1] int32 with a sequence for each sample: selected unmatched priors, ascending")
    .out("UpdatedMatchIndices", "like MatchIndices; hard_example: -1 for priors that are not selected")
    .attr<float>("neg_pos_ratio", 1.0f, "max_negative: priors selected for each matched one, above 0")
    .attr<float>("neg_dist_threshold", 0.5f, "max_negative: upper bound of MatchDist, between 0 and 1")
    .attr<int32_t>("sample_size", 0, "hard_example: number of priors per sample, above 0")
    .attr<std::string>("mining_type", "max_negative", "max_negative or hard_example",
                       one_of("mining_type", {"max_negative", "hard_example"}))
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("ClsLoss")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return miner<T>(op); });

}  // namespace
}  // namespace anabranch::detection::mine_hard_examples_op
