// Non-maximum suppression that first merges neighbors: text boxes come from pixels row by row, and adjacent ones
// overlap.
#include "ops/declare/declare.h"
#include "ops/detection/image_detections.h"
#include "ops/detection/nms.h"

namespace anabranch::detection::locality_aware_nms_op {
namespace {

void infer(InferContext& c) {
  for (const char* slot : {"BBoxes", "Scores"}) check_rank(c, slot, 3, 3);
  check_same_dtype(c, "BBoxes", "Scores");
  const Shape &boxes = c.in("BBoxes").shape, &scores = c.in("Scores").shape;
  const int64_t size = boxes[2];
  AB_CHECK(size == kUnknown || size == 4 || (size % 8 == 0 && size > 0 && size <= 32), InvalidArgument,
           "the last axis of BBoxes must have 4, 8, 16, 24 or 32 elements, got {}", boxes.str());
  check_shape(c, "BBoxes", {scores[0], scores[2], size});
  // The number of results is known only at run time.
  c.set_out("Out", {c.runtime() ? 0 : kUnknown, size == kUnknown ? kUnknown : size + 2}, c.in("BBoxes").dtype);
  c.out("Out").lod_level = 1;
}

// The boxes of an image after merging, and those that each class keeps.
template <class T> class Merger {
 public:
  explicit Merger(const KernelArgs& op)
      : background_(op.attr<int32_t>("background_label")), most_(op.attr<int32_t>("keep_top_k")) {
    rule_.score_threshold = op.attr<float>("score_threshold");
    rule_.overlap_threshold = op.attr<float>("nms_threshold");
    rule_.eta = op.attr<float>("nms_eta");
    rule_.candidates = op.attr<int32_t>("nms_top_k");
    rule_.normalized = op.attr<bool>("normalized");
  }

  void find(const T* boxes, const T* scores, int64_t classes, int64_t count, int64_t size) {
    found.clear();
    merged.assign(boxes, boxes + count * size);
    for (int64_t k = 0; k < classes; ++k) {
      if (k == background_) continue;
      scores_.assign(scores + k * count, scores + (k + 1) * count);
      merge(count, size);
      suppress(ClassBoxes<T>{scores_.data(), merged.data(), count, 1, size, size}, rule_, &kept_);
      for (const Detection<T>& d : kept_) found.push_back({d.score, static_cast<int32_t>(k), d.box});
    }
    keep_best(&found, most_);
  }

  std::vector<ClassDetection<T>> found;
  std::vector<T> merged;

 private:
  // Merges a box that overlaps the previous one: the mean weighted by the scores, with the sum of the scores.
  void merge(int64_t count, int64_t size) {
    const T edge = edge_of<T>(rule_.normalized), least = static_cast<T>(rule_.overlap_threshold);
    const T nothing = -std::numeric_limits<T>::infinity();
    int64_t last = -1;
    for (int64_t i = 0; i < count; ++i) {
      const T* box = merged.data() + i * size;
      T* into = merged.data() + std::max<int64_t>(last, 0) * size;
      const bool joins =
          last >= 0 && (size == 4 ? box_overlap(box, into, edge) : polygon_overlap(box, into, size / 2)) > least;
      if (!joins) {
        last = i;
        continue;
      }
      T &of = scores_[static_cast<size_t>(i)], &sum = scores_[static_cast<size_t>(last)];
      for (int64_t k = 0; k < size; ++k) into[k] = (box[k] * of + into[k] * sum) / (of + sum);
      sum += of;
      of = nothing;
    }
  }

  NmsRule rule_;
  int32_t background_, most_;
  std::vector<T> scores_;
  std::vector<Detection<T>> kept_;
};

template <class T> Kernel locality_aware_nms(const KernelArgs& op) {
  return [merger = Merger<T>(op), each = std::vector<Merger<T>>(), boxes = op.in("BBoxes"), scores = op.in("Scores"),
          out = op.out("Out"), found = std::vector<std::vector<ClassDetection<T>>>()](KernelContext& c) mutable {
    const Shape s = c[scores].shape();
    const int64_t size = c[boxes].shape()[2];
    const T *box = c[boxes].data<T>(), *score = c[scores].data<T>();
    each.resize(static_cast<size_t>(s[0]), merger);
    found.resize(static_cast<size_t>(s[0]));
    c.parallel_each(s[0], 1, [&](int64_t n) {
      Merger<T>& m = each[static_cast<size_t>(n)];
      m.find(box + n * s[2] * size, score + n * s[1] * s[2], s[1], s[2], size);
      std::swap(found[static_cast<size_t>(n)], m.found);
    });
    std::vector<int64_t> ends = ends_of(found, s[0]);
    if (ends.back() == 0) return write_nothing<T>(&c[out]);
    write_detections(found, std::move(ends), size, 0, &c[out], [&](int64_t n, const auto& d) {
      return each[static_cast<size_t>(n)].merged.data() + d.box * size;
    });
  };
}

AB_OP(locality_aware_nms)
    .doc(
        "For each class: a box that overlaps the previous box by more than nms_threshold is merged into it, weighted "
        "by the scores, which are added; then non-maximum suppression as in multiclass_nms.")
    .source("Zhou et al., EAST, CVPR 2017, arXiv:1704.03155")
    .in("BBoxes", "[N, M, 4] float boxes, or polygons of 8, 16, 24 or 32 numbers")
    .in("Scores", "[N, classes, M] like BBoxes")
    .out("Out",
         "[detections, 2 + box]: class, score, box, by class, then by score, with a sequence for each image; [[-1]] if "
         "there is none")
    .attr<int32_t>("background_label", -1, "class to skip; -1: none")
    .required_attr("score_threshold", AttrType::kFloat, "considers only boxes with a higher score")
    .required_attr("nms_top_k", AttrType::kInt, "number of best boxes per class to consider; below 0: all")
    .attr<float>("nms_threshold", 0.3f, "drops boxes that overlap a better one by more")
    .attr<float>("nms_eta", 1.0f, "below 1: multiplies nms_threshold after each kept box while it is above 0.5")
    .required_attr("keep_top_k", AttrType::kInt, "maximum number of detections per image; below 0: all")
    .attr<bool>("normalized", true, "false: boxes are in whole pixels and include their right and bottom ones")
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return locality_aware_nms<T>(op); });

}  // namespace
}  // namespace anabranch::detection::locality_aware_nms_op
