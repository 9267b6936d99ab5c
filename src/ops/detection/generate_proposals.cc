// Region proposals: anchors moved by the network's offsets, then non-maximum suppression.
#include <cmath>
#include <limits>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/detection/nms.h"

namespace anabranch::detection::generate_proposals_op {
namespace {

const double kMostGrowth = std::log(1000.0 / 16.0);  // upper bound of the logarithm of a scale factor

void infer(InferContext& c) {
  for (const char* slot : {"Scores", "BboxDeltas", "Anchors", "Variances"}) {
    check_rank(c, slot, 4, 4);
    check_same_dtype(c, slot, "Scores");
  }
  const Shape& s = c.in("Scores").shape;
  check_shape(c, "BboxDeltas", {s[0], s[1] == kUnknown ? kUnknown : 4 * s[1], s[2], s[3]});
  for (const char* slot : {"Anchors", "Variances"}) {
    check_shape(c, slot, {kUnknown, kUnknown, kUnknown, 4});
    if (c.runtime()) check_shape(c, slot, {s[2], s[3], s[1], 4});
  }
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", {s[0], 3});
  check_same_dtype(c, "ImInfo", "Scores");
  AB_CHECK(!c.runtime() || s.numel() > 0 || s[0] == 0, ShapeMismatch, "Scores must have at least one anchor, got {}",
           s.str());
  // The number of results is known only at run time.
  const int64_t rows = c.runtime() ? 0 : kUnknown;
  c.set_out("RpnRois", {rows, 4}, c.in("Scores").dtype);
  c.set_out("RpnRoiProbs", {rows, 1}, c.in("Scores").dtype);
  c.out("RpnRois").lod_level = c.out("RpnRoiProbs").lod_level = 1;
  if (c.has_out("RpnRoisLod")) c.set_out("RpnRoisLod", Shape{s[0]}, DType::kInt64);
}

template <class T> struct Found {
  std::vector<Detection<T>> order;  // anchors, best first
  std::vector<T> boxes, scores;     // of the boxes that are large enough
  std::vector<Detection<T>> kept;
};

// The maps of one image.
template <class T> struct Maps {
  const T *scores, *deltas, *anchors, *variances, *info;
  int64_t count, plane;  // anchors of a cell, cells
  int64_t total() const { return count * plane; }
  // Anchors are numbered cell by cell; the maps are stored anchor by anchor.
  T score(int64_t k) const { return scores[k % count * plane + k / count]; }
  T delta(int64_t k, int64_t part) const { return deltas[(k % count * 4 + part) * plane + k / count]; }
};

template <class T> class Proposer {
 public:
  explicit Proposer(const KernelArgs& op)
      : before_(op.attr<int32_t>("pre_nms_topN")),
        after_(op.attr<int32_t>("post_nms_topN")),
        least_(std::max(static_cast<T>(op.attr<float>("min_size")), T(1))) {
    rule_.overlap_threshold = op.attr<float>("nms_thresh");
    rule_.eta = op.attr<float>("eta");
    rule_.score_threshold = -std::numeric_limits<float>::infinity();
    rule_.normalized = false;
  }

  void propose(const Maps<T>& maps, Found<T>* found) const {
    choose(maps, &found->order);
    found->boxes.clear();
    found->scores.clear();
    for (const Detection<T>& d : found->order) {
      T box[4];
      move(maps, d.box, box);
      if (!large(box, maps.info)) continue;
      found->boxes.insert(found->boxes.end(), box, box + 4);
      found->scores.push_back(d.score);
    }
    keep(found);
  }

 private:
  // The best anchors; NaN sorts last.
  void choose(const Maps<T>& maps, std::vector<Detection<T>>* order) const {
    order->clear();
    for (int64_t k = 0; k < maps.total(); ++k) {
      const T score = maps.score(k);
      order->push_back({std::isnan(score) ? -std::numeric_limits<T>::infinity() : score, static_cast<int32_t>(k)});
    }
    if (before_ > 0 && before_ < maps.total()) {
      std::nth_element(order->begin(), order->begin() + before_, order->end());
      order->resize(static_cast<size_t>(before_));
    }
    std::sort(order->begin(), order->end());
  }

  void move(const Maps<T>& maps, int64_t k, T* box) const {
    const T *anchor = maps.anchors + 4 * k, *variance = maps.variances + 4 * k;
    for (int64_t axis : {int64_t{0}, int64_t{1}}) {
      const T size = anchor[axis + 2] - anchor[axis] + 1, middle = anchor[axis] + size / 2;
      const T at = variance[axis] * maps.delta(k, axis) * size + middle;
      const T growth = std::min(variance[axis + 2] * maps.delta(k, axis + 2), static_cast<T>(kMostGrowth));
      const T half = std::exp(growth) * size / 2;
      const T edge = maps.info[1 - axis] - 1;  // info: height, width, scale
      box[axis] = std::max(std::min(at - half, edge), T(0));
      box[axis + 2] = std::max(std::min(at + half - 1, edge), T(0));
    }
  }

  // Keeps boxes that are large enough in pixels of the image before scaling and have their centre in the image.
  bool large(const T* box, const T* info) const {
    for (int64_t axis : {int64_t{0}, int64_t{1}}) {
      const T size = box[axis + 2] - box[axis];
      if (!(size / info[2] + 1 >= least_ && box[axis] + (size + 1) / 2 <= info[1 - axis])) return false;
    }
    return true;
  }

  void keep(Found<T>* found) const {
    const auto n = static_cast<int64_t>(found->scores.size());
    if (rule_.overlap_threshold <= 0) {
      found->kept.clear();
      for (int64_t k = 0; k < n; ++k)
        found->kept.push_back({found->scores[static_cast<size_t>(k)], static_cast<int32_t>(k)});
      return;
    }
    suppress(ClassBoxes<T>{found->scores.data(), found->boxes.data(), n, 1, 4, 4}, rule_, &found->kept);
    if (after_ > 0 && static_cast<size_t>(after_) < found->kept.size()) {
      found->kept.resize(static_cast<size_t>(after_));
    }
  }

  NmsRule rule_;
  int32_t before_, after_;
  T least_;
};

// Handles and lists, kept from step to step.
template <class T> struct Proposals {
  In scores, deltas, info, anchors, variances;
  Out rois, probs, counts;
  Proposer<T> proposer;
  std::vector<Found<T>> found;

  explicit Proposals(const KernelArgs& op)
      : scores(op.in("Scores")),
        deltas(op.in("BboxDeltas")),
        info(op.in("ImInfo")),
        anchors(op.in("Anchors")),
        variances(op.in("Variances")),
        rois(op.out("RpnRois")),
        probs(op.out("RpnRoiProbs")),
        counts(op.out("RpnRoisLod")),
        proposer(op) {}

  void run(KernelContext& c) {
    const Shape s = c[scores].shape();
    if (static_cast<int64_t>(found.size()) < s[0]) found.resize(static_cast<size_t>(s[0]));
    const int64_t each = s.numel(1, 4);
    c.parallel_each(s[0], 1, [&](int64_t n) {
      proposer.propose({c[scores].data<T>() + n * each, c[deltas].data<T>() + 4 * n * each, c[anchors].data<T>(),
                        c[variances].data<T>(), c[info].data<T>() + 3 * n, s[1], s[2] * s[3]},
                       &found[static_cast<size_t>(n)]);
    });
    write(c, s[0]);
  }

  void write(KernelContext& c, int64_t images) {
    std::vector<int64_t> offsets(1, 0);
    for (int64_t n = 0; n < images; ++n) {
      offsets.push_back(offsets.back() + static_cast<int64_t>(found[static_cast<size_t>(n)].kept.size()));
    }
    Tensor &boxes = c[rois], &scored = c[probs];
    boxes.resize({offsets.back(), 4}, dtype_of<T>);
    scored.resize({offsets.back(), 1}, dtype_of<T>);
    T *box = boxes.mutable_data<T>(), *score = scored.mutable_data<T>();
    for (int64_t n = 0; n < images; ++n) {
      const Found<T>& f = found[static_cast<size_t>(n)];
      for (const Detection<T>& d : f.kept) {
        box = std::copy_n(f.boxes.data() + 4 * d.box, 4, box);
        *score++ = d.score;
      }
    }
    if (c.needs(counts)) {
      int64_t* to = c[counts].mutable_data<int64_t>();
      std::copy(offsets.begin() + 1, offsets.end(), to);
    }
    const LoDRef lod = images > 0 ? std::make_shared<const LoD>(LoD{std::move(offsets)}) : nullptr;
    boxes.set_lod(lod);
    scored.set_lod(lod);
  }
};

AB_OP(generate_proposals)
    .doc(
        "Takes the pre_nms_topN anchors of each image with the highest scores, moves them by BboxDeltas, clips them to "
        "the image and drops those smaller than min_size; the first post_nms_topN, by descending score, that do not "
        "overlap a better one by more than nms_thresh are the proposals.")
    .source("Ren et al., Faster R-CNN, NIPS 2015, arXiv:1506.01497")
    .in("Scores", "[N, A, H, W] float: scores of the A anchors of each cell")
    .in("BboxDeltas",
        "[N, 4 A, H, W]: offsets of the centre as fractions of the size, and logarithms of the size ratios")
    .in("ImInfo", "[N, 3]: height, width and scale of the images")
    .in("Anchors", "[H, W, A, 4]: left, top, right, bottom, in pixels")
    .in("Variances", "[H, W, A, 4]: factors for BboxDeltas")
    .out("RpnRois", "[proposals, 4] with a sequence for each image")
    .out("RpnRoiProbs", "[proposals, 1]: their scores")
    .out_optional("RpnRoisLod", "[N] int64: the row after the last proposal of each image")
    .required_attr("pre_nms_topN", AttrType::kInt, "number of anchors to consider; 0 or below: all")
    .required_attr("post_nms_topN", AttrType::kInt, "maximum number of proposals per image; 0 or below: all")
    .required_attr("nms_thresh", AttrType::kFloat, "largest overlap to keep; 0 or below: keeps all")
    .required_attr("min_size", AttrType::kFloat, "smallest side in pixels of the image before scaling; at least 1")
    .required_attr("eta", AttrType::kFloat, "below 1: multiplies nms_thresh after each kept box while it is above 0.5")
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("Scores")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [proposals = std::make_shared<Proposals<T>>(op)](KernelContext& c) { proposals->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::generate_proposals_op
