// Selects proposals for training the second stage: those that cover a true box, and background.
#include <fmt/ranges.h>

#include <memory>

#include "ops/detection/anchor_targets.h"

namespace anabranch::detection::generate_proposal_labels_op {
namespace {

constexpr const char* kOuts[] = {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"};

void check_attrs(const InferContext& c) {
  const auto& weights = c.attr<std::vector<float>>("bbox_reg_weights");
  AB_CHECK(weights.size() == 4, InvalidArgument, "bbox_reg_weights must be 4 numbers, got [{}]",
           fmt::join(weights, ", "));
  const int32_t classes = c.attr<int32_t>("class_nums"), all = c.attr<int32_t>("batch_size_per_im");
  AB_CHECK(classes > 0, InvalidArgument, "class_nums must be above 0, got {}", classes);
  AB_CHECK(!c.attr<bool>("is_cls_agnostic") || classes > 1, InvalidArgument,
           "class_nums must be above 1 if is_cls_agnostic is true, got {}", classes);
  AB_CHECK(all >= 0, InvalidArgument, "batch_size_per_im must be at least 0, got {}", all);
}

void infer(InferContext& c) {
  check_attrs(c);
  for (const char* slot : {"RpnRois", "GtBoxes"}) check_boxes(c, slot);
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", {kUnknown, 3});
  if (c.runtime()) {
    const int64_t images = c.in("ImInfo").shape[0];
    for (const char* slot : {"RpnRois", "GtBoxes"}) check_sequence_each(c, slot, images);
    for (const char* slot : {"GtBoxes", "ImInfo"}) check_same_dtype(c, slot, "RpnRois");
    for (const char* slot : {"GtClasses", "IsCrowd"}) {
      check_number_per_row(c, slot, c.in("GtBoxes").shape[0]);
      check_same_sequences(c, slot, "GtBoxes");
      check_dtype(c, slot, DType::kInt32);
    }
  }
  // The number of results is known only at run time.
  const int64_t rows = c.runtime() ? 0 : kUnknown, width = 4 * int64_t{c.attr<int32_t>("class_nums")};
  const DType dtype = c.in("RpnRois").dtype;
  c.set_out("Rois", {rows, 4}, dtype);
  c.set_out("LabelsInt32", {rows, 1}, DType::kInt32);
  for (const char* slot : {"BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"}) {
    c.set_out(slot, {rows, width}, dtype);
  }
}

// Overlap thresholds of foreground and background proposals.
struct Thresholds {
  float foreground, high, low;
  bool cascade;
};

// The proposals of an image and the selection among them.
template <class T> struct Candidates {
  std::vector<T> boxes, truth, overlaps;
  std::vector<int32_t> classes;
  std::vector<bool> crowd;
  std::vector<int64_t> foreground, background, matched;  // matched: the true box of each foreground proposal

  void choose(const Thresholds& t) {
    overlap_all(boxes, truth, &overlaps);
    for (auto* list : {&foreground, &background, &matched}) list->clear();
    const size_t truths = truth.size() / 4;
    for (size_t i = 0; i < boxes.size() / 4; ++i) {
      const T* near = overlaps.data() + i * truths;
      T most = truths == 0 ? T(0) : *std::max_element(near, near + truths);
      if (!t.cascade && i < truths && crowd[i]) most = T(-1);
      const T needed = static_cast<T>(t.foreground);
      if (t.cascade ? most > needed : most >= needed) {
        for (size_t j = 0; j < truths; ++j) {
          if (!(std::abs(most - near[j]) < static_cast<T>(kSameOverlap))) continue;
          foreground.push_back(static_cast<int64_t>(i));
          matched.push_back(static_cast<int64_t>(j));
          break;
        }
      } else if (most >= static_cast<T>(t.low) && most < static_cast<T>(t.high)) {
        background.push_back(static_cast<int64_t>(i));
      }
    }
  }

  void shorten(int64_t most_foreground, int64_t all, Draw* draw) {
    draw->shorten(&foreground, most_foreground, [&](int64_t i, int64_t k) {
      std::swap(matched[static_cast<size_t>(i)], matched[static_cast<size_t>(k)]);
    });
    matched.resize(foreground.size());
    draw->shorten(&background, std::max<int64_t>(0, all - static_cast<int64_t>(foreground.size())));
  }
};

template <class T> class Labels {
 public:
  explicit Labels(const KernelArgs& op)
      : thresholds_{op.attr<float>("fg_thresh"), op.attr<float>("bg_thresh_hi"), op.attr<float>("bg_thresh_lo"),
                    op.attr<bool>("is_cascade_rcnn")},
        all_(op.attr<int32_t>("batch_size_per_im")),
        share_(op.attr<float>("fg_fraction")),
        classes_(op.attr<int32_t>("class_nums")),
        random_(op.attr<bool>("use_random")),
        agnostic_(op.attr<bool>("is_cls_agnostic")),
        weights_(op.attr<std::vector<float>>("bbox_reg_weights")),
        key_(op.random()),
        rois_(op.in("RpnRois")),
        truth_(op.in("GtBoxes")),
        class_(op.in("GtClasses")),
        crowd_(op.in("IsCrowd")),
        info_(op.in("ImInfo")) {
    for (const char* slot : kOuts) outs_.push_back(op.out(slot));
  }

  void run(KernelContext& c) {
    Draw draw(with_step(key_, c), random_);
    made_.clear();
    labels_.clear();
    offsets_.clear();
    ends_.assign(1, 0);
    for (int64_t n = 0; n < c[info_].rows(); ++n) {
      const T scale = c[info_].data<T>()[3 * n + 2];
      draw.start(n);
      gather(c, n, scale);
      candidates_.choose(thresholds_);
      if (!thresholds_.cascade) {
        const float most = std::floor(static_cast<float>(all_) * share_);
        candidates_.shorten(clamped(most, 0, all_), all_, &draw);
      }
      append(scale);
      ends_.push_back(static_cast<int64_t>(labels_.size()));
    }
    write(c);
  }

 private:
  // True boxes are proposals, too, except in a cascade, which drops proposals without an area, and in images without
  // proposals, which get no rois. Proposals are in pixels of the scaled image, true boxes are not.
  void gather(const KernelContext& c, int64_t n, T scale) {
    Candidates<T>& all = candidates_;
    const auto& truths = c[truth_].lod().back();
    const auto& rois = c[rois_].lod().back();
    const auto k = static_cast<size_t>(n);
    const T *truth = c[truth_].data<T>(), *roi = c[rois_].data<T>();
    all.truth.assign(truth + 4 * truths[k], truth + 4 * truths[k + 1]);
    all.classes.clear();
    all.crowd.clear();
    for (int64_t r = truths[k]; r < truths[k + 1]; ++r) {
      all.classes.push_back(c[class_].data<int32_t>()[r]);
      all.crowd.push_back(c[crowd_].data<int32_t>()[r] != 0);
      AB_CHECK(all.classes.back() >= 0, InvalidArgument, "GtClasses must be at least 0, got {}", all.classes.back());
      // With is_cls_agnostic, class_nums counts columns of offsets, not the classes of the labels.
      AB_CHECK(agnostic_ || all.classes.back() < classes_, InvalidArgument, "GtClasses must be from 0 to {}, got {}",
               classes_ - 1, all.classes.back());
    }
    all.boxes.clear();
    if (!thresholds_.cascade && rois[k] < rois[k + 1]) all.boxes = all.truth;
    for (int64_t r = rois[k]; r < rois[k + 1]; ++r) {
      const T* box = roi + 4 * r;
      if (thresholds_.cascade && !(box[2] - box[0] > -scale && box[3] - box[1] > -scale)) continue;
      for (int64_t i = 0; i < 4; ++i) all.boxes.push_back(box[i] / scale);
    }
  }

  void append(T scale) {
    for (size_t i = 0; i < candidates_.foreground.size(); ++i) {
      const int64_t truth = candidates_.matched[i];
      const T* box = candidates_.boxes.data() + 4 * candidates_.foreground[i];
      T to[4];
      to_offsets(box, candidates_.truth.data() + 4 * truth, &weights_, to);
      append(box, scale, candidates_.classes[static_cast<size_t>(truth)], to);
    }
    const T nothing[4] = {0, 0, 0, 0};
    for (int64_t k : candidates_.background) append(candidates_.boxes.data() + 4 * k, scale, 0, nothing);
  }
  void append(const T* box, T scale, int32_t label, const T* offsets) {
    for (int64_t k = 0; k < 4; ++k) made_.push_back(box[k] * scale);
    labels_.push_back(label);
    offsets_.insert(offsets_.end(), offsets, offsets + 4);
  }

  // A row stores its offsets in the columns of its class; the weights are 1 there.
  void write(KernelContext& c) {
    const LoDRef lod = ends_.size() > 1 ? std::make_shared<const LoD>(LoD{ends_}) : nullptr;
    if (c.needs(outs_[0])) write_rows(&c[outs_[0]], made_, 4, lod);
    if (c.needs(outs_[1])) write_rows(&c[outs_[1]], labels_, 1, lod);
    const auto rows = static_cast<int64_t>(labels_.size());
    for (size_t k = 2; k < outs_.size(); ++k) {
      if (!c.needs(outs_[k])) continue;
      Tensor& out = c[outs_[k]];
      out.resize({rows, 4 * classes_}, dtype_of<T>);
      out.set_lod(lod);
      T* to = out.mutable_data<T>();
      std::fill(to, to + out.numel(), T(0));
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t label = labels_[static_cast<size_t>(r)];
        if (label <= 0) continue;
        T* at = to + 4 * (r * classes_ + (agnostic_ ? 1 : label));
        if (k == 2) {
          std::copy_n(offsets_.data() + 4 * r, 4, at);
        } else {
          std::fill(at, at + 4, T(1));
        }
      }
    }
  }

  Thresholds thresholds_;
  int64_t all_;
  float share_;
  int64_t classes_;
  bool random_, agnostic_;
  std::vector<float> weights_;
  RandomKey key_;
  In rois_, truth_, class_, crowd_, info_;
  std::vector<Out> outs_;
  Candidates<T> candidates_;
  std::vector<T> made_, offsets_;
  std::vector<int32_t> labels_;
  std::vector<int64_t> ends_;
};

AB_OP(generate_proposal_labels)
    .doc(
        "Foreground: proposals and true boxes that overlap a true box by at least fg_thresh, at most fg_fraction of "
        "batch_size_per_im; background: those with an overlap in [bg_thresh_lo, bg_thresh_hi), to fill each image up "
        "to batch_size_per_im. BboxTargets stores the offsets of the true boxes in the columns of their class.")
    .source("Girshick, Fast R-CNN, ICCV 2015, arXiv:1504.08083")
    .in("RpnRois", "[proposals, 4] float: left, top, right, bottom in pixels, with a sequence for each image")
    .in("GtClasses", "[truths, 1] int32 in [0, class_nums), or any from 0 if is_cls_agnostic is true")
    .in("IsCrowd", "[truths, 1] int32: not 0 for crowds")
    .in("GtBoxes", "[truths, 4] like RpnRois, in pixels of the image before scaling, with a sequence for each image")
    .in("ImInfo", "[N, 3] like RpnRois: height, width and scale of the images")
    .out("Rois", "[rois, 4] with a sequence for each image: foreground, then background")
    .out("LabelsInt32", "[rois, 1] int32: classes, 0 for the background")
    .out("BboxTargets", "[rois, 4 class_nums]")
    .out("BboxInsideWeights", "like BboxTargets: 1 in the columns of a foreground row's class, else 0")
    .out("BboxOutsideWeights", "like BboxInsideWeights")
    .required_attr("batch_size_per_im", AttrType::kInt, "number of rois per image")
    .required_attr("fg_fraction", AttrType::kFloat, "largest fraction of foreground")
    .required_attr("fg_thresh", AttrType::kFloat, "smallest overlap of foreground; in a cascade, exclusive")
    .required_attr("bg_thresh_hi", AttrType::kFloat, "upper bound (exclusive) of the overlap of background")
    .required_attr("bg_thresh_lo", AttrType::kFloat, "lower bound of the overlap of background")
    .required_attr("bbox_reg_weights", AttrType::kFloats, "4 divisors of the offsets")
    .required_attr("class_nums", AttrType::kInt, "number of classes, including the background")
    .attr<bool>("use_random", true, "selects candidates at random; false: the first ones")
    .attr<bool>("is_cascade_rcnn", false,
                "proposals come from an earlier stage: keeps all candidates and adds no true boxes")
    .attr<bool>("is_cls_agnostic", false, "stores offsets at class 1 for all classes")
    .effects(kDynamic | kRandom)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("RpnRois")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [labels = std::make_shared<Labels<T>>(op)](KernelContext& c) { labels->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::generate_proposal_labels_op
