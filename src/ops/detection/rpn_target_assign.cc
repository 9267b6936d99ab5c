// Selects anchors to train on: those that overlap a true box enough, and background.
#include <memory>
#include <numeric>

#include "ops/detection/anchor_targets.h"
#include "ops/detection/chosen_anchors.h"

namespace anabranch::detection::rpn_target_assign_op {
namespace {

void check_truth(const InferContext& c, bool labeled) {
  check_boxes(c, "Anchor");
  check_boxes(c, "GtBoxes");
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", {kUnknown, 3});
  if (!c.runtime()) return;
  const int64_t images = c.in("ImInfo").shape[0];
  AB_CHECK(images == 0 || c.in("Anchor").shape[0] > 0, ShapeMismatch, "Anchor must have at least one row, got {}",
           c.in("Anchor").shape.str());
  check_sequence_each(c, "GtBoxes", images);
  for (const char* slot : {"GtBoxes", "ImInfo"}) check_same_dtype(c, slot, "Anchor");
  for (const char* slot : {"IsCrowd", "GtLabels"}) {
    if (!labeled && std::string_view(slot) == "GtLabels") continue;
    check_number_per_row(c, slot, c.in("GtBoxes").shape[0]);
    check_same_sequences(c, slot, "GtBoxes");
    check_dtype(c, slot, DType::kInt32);
  }
}

void infer(InferContext& c) {
  const bool labeled = c.op().type == "retinanet_target_assign";
  check_truth(c, labeled);
  // The number of results is known only at run time.
  const int64_t rows = c.runtime() ? 0 : kUnknown;
  c.set_out("LocationIndex", Shape{rows}, DType::kInt32);
  c.set_out("ScoreIndex", Shape{rows}, DType::kInt32);
  c.set_out("TargetBBox", {rows, 4}, c.in("Anchor").dtype);
  c.set_out("TargetLabel", {rows, 1}, DType::kInt32);
  c.set_out("BBoxInsideWeight", {rows, 4}, c.in("Anchor").dtype);
  if (labeled) c.set_out("ForegroundNumber", {c.runtime() ? c.in("ImInfo").shape[0] : kUnknown, 1}, DType::kInt32);
}

// The rows of all images, in output order.
template <class T> struct Rows {
  std::vector<int32_t> locations, scores, labels, counts;
  std::vector<T> targets, weights;
  std::vector<int64_t> location_ends, score_ends;
  void clear() {
    for (auto* list : {&locations, &scores, &labels, &counts}) list->clear();
    targets.clear();
    weights.clear();
    location_ends.assign(1, 0);
    score_ends.assign(1, 0);
  }
};

template <class T> class Assigner {
 public:
  Assigner(const KernelArgs& op, const AnchorRule& rule, float straddle, bool random)
      : rule_(rule),
        straddle_(straddle),
        random_(random),
        key_(op.random()),
        anchor_(op.in("Anchor")),
        truth_(op.in("GtBoxes")),
        crowd_(op.in("IsCrowd")),
        info_(op.in("ImInfo")) {
    for (const char* slot : {"LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight"}) {
      outs_.push_back(op.out(slot));
    }
    if (op.op().type != "retinanet_target_assign") return;
    labels_ = op.in("GtLabels");
    counts_ = op.out("ForegroundNumber");
  }

  void run(KernelContext& c) {
    Draw draw(with_step(key_, c), random_);
    rows_.clear();
    for (int64_t n = 0; n < c[info_].rows(); ++n) {
      draw.start(n);
      gather(c, n);
      chosen_.measure();
      chosen_.choose(rule_, &draw);
      append(c, n * c[anchor_].rows());
    }
    write(c);
  }

 private:
  void gather(const KernelContext& c, int64_t n) {
    const T *info = c[info_].data<T>() + 3 * n, *anchors = c[anchor_].data<T>();
    const T t = static_cast<T>(straddle_);
    chosen_.inside.clear();
    chosen_.anchors.clear();
    for (int64_t k = 0; k < c[anchor_].rows(); ++k) {
      const T* a = anchors + 4 * k;
      if (straddle_ >= 0 && !(a[0] >= -t && a[1] >= -t && a[2] < info[1] + t && a[3] < info[0] + t)) continue;
      chosen_.inside.push_back(k);
      chosen_.anchors.insert(chosen_.anchors.end(), a, a + 4);
    }
    const auto& ends = c[truth_].lod().back();
    const int32_t* crowd = c[crowd_].data<int32_t>();
    chosen_.truth.clear();
    chosen_.truth_rows.clear();
    for (int64_t r = ends[static_cast<size_t>(n)]; r < ends[static_cast<size_t>(n) + 1]; ++r) {
      if (crowd[r] != 0) continue;
      chosen_.truth_rows.push_back(r);
      const T* box = c[truth_].data<T>() + 4 * r;
      for (int64_t k = 0; k < 4; ++k) chosen_.truth.push_back(box[k] * info[2]);
    }
  }

  void append(const KernelContext& c, int64_t first) {
    const auto number = [&](int64_t k) { return static_cast<int32_t>(first + chosen_.inside[static_cast<size_t>(k)]); };
    int64_t at = 0;
    for (int64_t k : chosen_.located) {
      rows_.locations.push_back(number(k));
      T offsets[4] = {0, 0, 0, 0};
      const int64_t best = chosen_.best[static_cast<size_t>(k)];
      if (best >= 0) to_offsets(chosen_.anchors.data() + 4 * k, chosen_.truth.data() + 4 * best, nullptr, offsets);
      rows_.targets.insert(rows_.targets.end(), offsets, offsets + 4);
      rows_.weights.insert(rows_.weights.end(), 4, at++ < chosen_.idle ? T(0) : T(1));
    }
    for (int64_t k : chosen_.foreground) {
      rows_.scores.push_back(number(k));
      rows_.labels.push_back(label_of(c, k));
    }
    for (int64_t k : chosen_.background) {
      rows_.scores.push_back(number(k));
      rows_.labels.push_back(0);
    }
    rows_.counts.push_back(static_cast<int32_t>(chosen_.located.size()) + 1);
    rows_.location_ends.push_back(static_cast<int64_t>(rows_.locations.size()));
    rows_.score_ends.push_back(static_cast<int64_t>(rows_.scores.size()));
  }

  int32_t label_of(const KernelContext& c, int64_t k) const {
    const int64_t best = chosen_.best[static_cast<size_t>(k)];
    if (!labels_ || best < 0) return 1;
    return c[labels_].data<int32_t>()[chosen_.truth_rows[static_cast<size_t>(best)]];
  }

  void write(KernelContext& c) {
    const auto lod = [&](const std::vector<int64_t>& ends) {
      return ends.size() > 1 ? std::make_shared<const LoD>(LoD{ends}) : nullptr;
    };
    const LoDRef located = lod(rows_.location_ends), scored = lod(rows_.score_ends);
    write_list(c, outs_[0], rows_.locations, located);
    write_list(c, outs_[1], rows_.scores, scored);
    if (c.needs(outs_[2])) write_rows(&c[outs_[2]], rows_.targets, 4, located);
    if (c.needs(outs_[3])) write_rows(&c[outs_[3]], rows_.labels, 1, scored);
    if (c.needs(outs_[4])) write_rows(&c[outs_[4]], rows_.weights, 4, located);
    if (!counts_ || !c.needs(counts_)) return;
    std::vector<int64_t> each(rows_.score_ends.size());
    std::iota(each.begin(), each.end(), int64_t{0});
    write_rows(&c[counts_], rows_.counts, 1, lod(each));
  }
  void write_list(KernelContext& c, Out out, const std::vector<int32_t>& list, const LoDRef& lod) {
    if (!c.needs(out)) return;
    c[out].resize(Shape{static_cast<int64_t>(list.size())}, DType::kInt32);
    std::copy(list.begin(), list.end(), c[out].mutable_data<int32_t>());
    c[out].set_lod(lod);
  }

  AnchorRule rule_;
  float straddle_;
  bool random_;
  RandomKey key_;
  In anchor_, truth_, labels_, crowd_, info_;
  std::vector<Out> outs_;
  Out counts_;
  ChosenAnchors<T> chosen_;
  Rows<T> rows_;
};

void slots(OpDef& def) {
  def.in("IsCrowd", "[truths, 1] int32: drops crowds (not 0)")
      .in("ImInfo", "[N, 3] like Anchor: height, width and scale of the images")
      .out("LocationIndex",
           "[located] int32: anchors whose offsets are trained, + image * A, with a sequence for each image")
      .out("ScoreIndex", "[scored] int32: anchors whose score is trained, + image * A: foreground, then background")
      .out("TargetBBox", "[located, 4]: offsets of the nearest true boxes")
      .out("TargetLabel", "[scored, 1] int32: 0 for the background")
      .out("BBoxInsideWeight", "[located, 4]: 1; 0 for rows that replace background anchors")
      .infer(infer)
      .dtype_of_input("Anchor")
      .no_grad(kBoxesAreFixed);
}

AB_OP(rpn_target_assign)
    .doc(
        "Foreground: anchors that overlap a true box by at least rpn_positive_overlap, and the nearest anchor of each "
        "true box; background: anchors that overlap every true box by less than rpn_negative_overlap; together "
        "rpn_batch_size_per_im per image, with at most rpn_fg_fraction of foreground.")
    .source("Ren et al., Faster R-CNN, NIPS 2015, arXiv:1506.01497")
    .in("Anchor", "[A, 4] float: left, top, right, bottom, in pixels")
    .in("GtBoxes", "[truths, 4] like Anchor, in pixels of the image before scaling, with a sequence for each image")
    .with(slots)
    .attr<int32_t>("rpn_batch_size_per_im", 256, "number of anchors per image")
    .required_attr("rpn_straddle_thresh", AttrType::kFloat, "drops anchors that reach further outside; below 0: none")
    .attr<float>("rpn_positive_overlap", 0.7f, "smallest overlap of foreground")
    .attr<float>("rpn_negative_overlap", 0.3f, "upper bound (exclusive) of the overlap of background")
    .attr<float>("rpn_fg_fraction", 0.25f, "largest fraction of foreground; 0 and below: no limit",
                 [](const float& share) {
                   AB_CHECK(!(share > 1), InvalidArgument, "rpn_fg_fraction must be at most 1, got {}", share);
                 })
    .attr<bool>("use_random", true, "selects candidates at random; false: the first ones")
    .effects(kDynamic | kRandom)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int32_t all = op.attr<int32_t>("rpn_batch_size_per_im");
      const float share = op.attr<float>("rpn_fg_fraction");
      AnchorRule rule{op.attr<float>("rpn_positive_overlap"), op.attr<float>("rpn_negative_overlap")};
      if (all > 0 && share > 0) {
        rule.all = all;
        rule.foreground = clamped(share * static_cast<float>(all), 0, all);
      }
      auto assigner =
          std::make_shared<Assigner<T>>(op, rule, op.attr<float>("rpn_straddle_thresh"), op.attr<bool>("use_random"));
      return [assigner](KernelContext& c) { assigner->run(c); };
    });

AB_OP(retinanet_target_assign)
    .doc(
        "Foreground: anchors that overlap a true box by at least positive_overlap, and the nearest anchor of each true "
        "box, with the label of the nearest box; background: anchors that overlap every true box by less than "
        "negative_overlap.")
    .source("Lin et al., Focal loss for dense object detection, ICCV 2017, arXiv:1708.02002")
    .in("Anchor", "[A, 4] float: left, top, right, bottom, in pixels")
    .in("GtBoxes", "[truths, 4] like Anchor, in pixels of the image before scaling, with a sequence for each image")
    .in("GtLabels", "[truths, 1] int32: classes, starting at 1")
    .with(slots)
    .out("ForegroundNumber", "[N, 1] int32: number of rows of an image in LocationIndex, + 1")
    .attr<float>("positive_overlap", 0.5f, "smallest overlap of foreground")
    .attr<float>("negative_overlap", 0.4f, "upper bound (exclusive) of the overlap of background")
    .effects(kDynamic)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const AnchorRule rule{op.attr<float>("positive_overlap"), op.attr<float>("negative_overlap")};
      auto assigner = std::make_shared<Assigner<T>>(op, rule, -1.0f, false);
      return [assigner](KernelContext& c) { assigner->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::rpn_target_assign_op
