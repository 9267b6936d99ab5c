// Non-maximum suppression without a sequential loop: the score of a box decays by its overlap with every better one.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/image_detections.h"
#include "ops/detection/nms.h"

namespace anabranch::detection::matrix_nms_op {
namespace {

void infer(InferContext& c) {
  for (const char* slot : {"BBoxes", "Scores"}) check_rank(c, slot, 3, 3);
  check_same_dtype(c, "BBoxes", "Scores");
  const Shape& scores = c.in("Scores").shape;
  check_shape(c, "BBoxes", {scores[0], scores[2], 4});
  const int64_t rows = c.runtime() ? 0 : kUnknown;  // the number of results is known only at run time
  c.set_out("Out", {rows, 6}, c.in("BBoxes").dtype);
  c.set_out("Index", {rows, 1}, DType::kInt32);
  c.out("Out").lod_level = c.out("Index").lod_level = 1;
}

template <class T> class Decay {
 public:
  explicit Decay(const KernelArgs& op)
      : background_(op.attr<int32_t>("background_label")),
        candidates_(op.attr<int32_t>("nms_top_k")),
        most_(op.attr<int32_t>("keep_top_k")),
        before_(static_cast<T>(op.attr<float>("score_threshold"))),
        after_(static_cast<T>(op.attr<float>("post_threshold"))),
        sigma_(static_cast<T>(op.attr<float>("gaussian_sigma"))),
        edge_(edge_of<T>(op.attr<bool>("normalized"))),
        gaussian_(op.attr<bool>("use_gaussian")) {}

  void find(const T* boxes, const T* scores, int64_t classes, int64_t count, std::vector<ClassDetection<T>>* found) {
    found->clear();
    for (int64_t k = 0; k < classes; ++k) {
      if (k == background_) continue;
      choose(scores + k * count, count);
      decay(boxes, static_cast<int32_t>(k), found);
    }
    std::sort(found->begin(), found->end());
    if (most_ >= 0 && static_cast<size_t>(most_) < found->size()) found->resize(static_cast<size_t>(most_));
  }

 private:
  void choose(const T* scores, int64_t count) {
    order_.clear();
    for (int64_t i = 0; i < count; ++i) {
      if (scores[i] > before_) order_.push_back({scores[i], static_cast<int32_t>(i)});
    }
    if (candidates_ >= 0 && static_cast<size_t>(candidates_) < order_.size()) {
      std::nth_element(order_.begin(), order_.begin() + candidates_, order_.end());
      order_.resize(static_cast<size_t>(candidates_));
    }
    std::sort(order_.begin(), order_.end());
  }

  // Each better box counts by how little it overlaps the boxes better than itself.
  void decay(const T* boxes, int32_t cls, std::vector<ClassDetection<T>>* found) {
    const size_t n = order_.size();
    largest_.assign(n, T(0));
    overlaps_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const T* box = boxes + 4 * order_[i].box;
      T least = 1;
      for (size_t j = 0; j < i; ++j) {
        overlaps_[j] = box_overlap(box, boxes + 4 * order_[j].box, edge_);
        largest_[i] = std::max(largest_[i], overlaps_[j]);
        const T o = overlaps_[j], most = largest_[j];
        least = std::min(least, gaussian_ ? std::exp((most * most - o * o) * sigma_) : (1 - o) / (1 - most));
      }
      const T score = order_[i].score * least;
      if (score > after_) found->push_back({score, cls, order_[i].box});
    }
  }

  int32_t background_, candidates_, most_;
  T before_, after_, sigma_, edge_;
  bool gaussian_;
  std::vector<Detection<T>> order_;
  std::vector<T> largest_, overlaps_;
};

template <class T> Kernel matrix_nms(const KernelArgs& op) {
  return [decay = Decay<T>(op), boxes = op.in("BBoxes"), scores = op.in("Scores"), out = op.out("Out"),
          index = op.out("Index"), found = std::vector<std::vector<ClassDetection<T>>>()](KernelContext& c) mutable {
    const Shape s = c[scores].shape();
    const T *box = c[boxes].data<T>(), *score = c[scores].data<T>();
    if (static_cast<int64_t>(found.size()) < s[0]) found.resize(static_cast<size_t>(s[0]));
    for (int64_t n = 0; n < s[0]; ++n) {
      decay.find(box + n * s[2] * 4, score + n * s[1] * s[2], s[1], s[2], &found[static_cast<size_t>(n)]);
    }
    write_detections(found, ends_of(found, s[0]), 4, 0, &c[out],
                     [=](int64_t n, const auto& d) { return box + (n * s[2] + d.box) * 4; });
    if (!c.needs(index)) return;
    c[index].resize({c[out].rows(), 1}, DType::kInt32);
    c[index].set_lod(c[out].lod_ref());
    int32_t* to = c[index].mutable_data<int32_t>();
    for (int64_t n = 0; n < s[0]; ++n) {
      for (const auto& d : found[static_cast<size_t>(n)]) *to++ = static_cast<int32_t>(n * s[2]) + d.box;
    }
  };
}

AB_OP(matrix_nms)
    .doc(
        "Multiplies the score of a box by the least, over better boxes of its class, of (1 - o) / (1 - m), or of "
        "exp((m^2 - o^2) gaussian_sigma): o is their overlap, m the largest overlap of the better box with a still "
        "better one. Out = the keep_top_k best boxes of each image with a score above post_threshold.")
    .source("Wang et al., SOLOv2, NeurIPS 2020, arXiv:2003.10152")
    .in("BBoxes", "[N, M, 4] float: left, top, right, bottom")
    .in("Scores", "[N, classes, M] like BBoxes")
    .out("Out", "[detections, 6]: class, score, box, best first, with a sequence for each image")
    .out("Index", "[detections, 1] int32: the box's row in BBoxes [N * M, 4]")
    .attr<int32_t>("background_label", 0, "class to skip; -1: none")
    .required_attr("score_threshold", AttrType::kFloat, "considers only boxes with a higher score")
    .attr<float>("post_threshold", 0.0f, "keeps only boxes with a higher score after the decay")
    .required_attr("nms_top_k", AttrType::kInt, "number of best boxes per class to consider; below 0: all")
    .required_attr("keep_top_k", AttrType::kInt, "maximum number of detections per image; below 0: all")
    .attr<bool>("normalized", true, "false: boxes are in whole pixels and include their right and bottom ones")
    .attr<bool>("use_gaussian", false, "uses the exponential factor")
    .attr<float>("gaussian_sigma", 2.0f, "how fast scores decay")
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return matrix_nms<T>(op); });

}  // namespace
}  // namespace anabranch::detection::matrix_nms_op
