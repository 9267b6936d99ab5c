// Detections of RetinaNet: decodes the best boxes of each level and suppresses class by class.
#include <cmath>
#include <limits>

#include "ops/declare/declare.h"
#include "ops/detection/image_detections.h"
#include "ops/detection/nms.h"

namespace anabranch::detection::retinanet_detection_output_op {
namespace {

void check_level(const InferContext& c, int i) {
  const Meta &boxes = c.in("BBoxes", i), &scores = c.in("Scores", i), &anchors = c.in("Anchors", i);
  const Shape &first = c.in("Scores").shape, &info = c.in("ImInfo").shape;
  AB_CHECK(scores.shape.rank() == 3 && compatible(scores.shape, Shape{info[0], kUnknown, first[2]}), ShapeMismatch,
           "Scores must be [{}, anchors, {}] on each level, got {}", info[0], first[2], scores.shape.str());
  AB_CHECK(boxes.shape.rank() == 3 && compatible(boxes.shape, Shape{info[0], scores.shape[1], 4}), ShapeMismatch,
           "BBoxes must be [{}, {}, 4] like Scores of its level, got {}", info[0], scores.shape[1], boxes.shape.str());
  AB_CHECK(anchors.shape.rank() == 2 && compatible(anchors.shape, Shape{scores.shape[1], 4}), ShapeMismatch,
           "Anchors must be [{}, 4] like Scores of its level, got {}", scores.shape[1], anchors.shape.str());
  const DType dtype = c.in("ImInfo").dtype;
  for (const Meta* m : {&boxes, &scores, &anchors}) {
    AB_CHECK(!c.runtime() || m->dtype == dtype, InvalidArgument, "all inputs must hold one dtype, got {} and {}",
             dtype_name(dtype), dtype_name(m->dtype));
  }
}

void infer(InferContext& c) {
  const int levels = c.n_in("Scores");
  AB_CHECK(c.n_in("BBoxes") == levels && c.n_in("Anchors") == levels, InvalidArgument,
           "BBoxes, Scores and Anchors must have a variable for each level, got {}, {} and {}", c.n_in("BBoxes"),
           levels, c.n_in("Anchors"));
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", {kUnknown, 3});
  check_rank(c, "Scores", 3, 3);
  for (int i = 0; i < levels; ++i) check_level(c, i);
  // The number of results is known only at run time.
  c.set_out("Out", {c.runtime() ? 0 : kUnknown, 6}, c.in("BBoxes").dtype);
  c.out("Out").lod_level = 1;
}

// State of an image, kept from step to step.
template <class T> struct Work {
  std::vector<Detection<T>> order, kept;
  std::vector<std::vector<T>> boxes, scores;  // per class
  std::vector<ClassDetection<T>> found;
};

template <class T> class Detector {
 public:
  explicit Detector(const KernelArgs& op)
      : boxes_(op.in("BBoxes")),
        scores_(op.in("Scores")),
        anchors_(op.in("Anchors")),
        info_(op.in("ImInfo")),
        least_(static_cast<T>(op.attr<float>("score_threshold"))),
        candidates_(op.attr<int32_t>("nms_top_k")),
        most_(op.attr<int32_t>("keep_top_k")) {
    rule_.score_threshold = -std::numeric_limits<float>::infinity();
    rule_.overlap_threshold = op.attr<float>("nms_threshold");
    rule_.eta = op.attr<float>("nms_eta");
    rule_.normalized = false;
  }
  int64_t images(const KernelContext& c) const { return c[info_].rows(); }

  void find(const KernelContext& c, int64_t n, Work<T>* w) const {
    const int64_t classes = c.at(scores_, 0).shape()[2];
    w->boxes.resize(static_cast<size_t>(classes));
    w->scores.resize(static_cast<size_t>(classes));
    for (auto* lists : {&w->boxes, &w->scores}) {
      for (auto& list : *lists) list.clear();
    }
    for (int level = 0; level < scores_.count; ++level) look_at(c, n, level, w);
    w->found.clear();
    for (size_t k = 0; k < w->scores.size(); ++k) {
      const auto count = static_cast<int64_t>(w->scores[k].size());
      suppress(ClassBoxes<T>{w->scores[k].data(), w->boxes[k].data(), count, 1, 4, 4}, rule_, &w->kept);
      for (const auto& d : w->kept) w->found.push_back({d.score, static_cast<int32_t>(k), d.box});
    }
    std::sort(w->found.begin(), w->found.end());
    if (most_ >= 0 && static_cast<size_t>(most_) < w->found.size()) w->found.resize(static_cast<size_t>(most_));
  }

 private:
  // On the last level, with the largest boxes, every score above 0 counts.
  void look_at(const KernelContext& c, int64_t n, int level, Work<T>* w) const {
    const Tensor& all = c.at(scores_, level);
    const int64_t anchors = all.shape()[1], classes = all.shape()[2];
    const T* score = all.data<T>() + n * anchors * classes;
    const T least = level + 1 < scores_.count ? least_ : T(0);
    w->order.clear();
    for (int64_t k = 0; k < anchors * classes; ++k) {
      if (score[k] > least) w->order.push_back({score[k], static_cast<int32_t>(k)});
    }
    if (candidates_ >= 0 && static_cast<size_t>(candidates_) < w->order.size()) {
      std::nth_element(w->order.begin(), w->order.begin() + candidates_, w->order.end());
      w->order.resize(static_cast<size_t>(candidates_));
    }
    std::sort(w->order.begin(), w->order.end());
    const T *offsets = c.at(boxes_, level).data<T>() + n * anchors * 4, *info = c[info_].data<T>() + 3 * n;
    for (const auto& d : w->order) {
      const int64_t anchor = d.box / classes;
      const auto k = static_cast<size_t>(d.box % classes);
      T box[4];
      decode(c.at(anchors_, level).data<T>() + 4 * anchor, offsets + 4 * anchor, info, box);
      w->boxes[k].insert(w->boxes[k].end(), box, box + 4);
      w->scores[k].push_back(d.score);
    }
  }

  // In pixels of the image before scaling, clipped to it.
  static void decode(const T* anchor, const T* offsets, const T* info, T* box) {
    for (int64_t axis : {int64_t{0}, int64_t{1}}) {
      const T size = anchor[axis + 2] - anchor[axis] + 1;
      const T middle = anchor[axis] + size / 2 + offsets[axis] * size, half = std::exp(offsets[axis + 2]) * size / 2;
      const T edge = std::round(info[1 - axis] / info[2]) - 1;
      box[axis] = std::max(std::min((middle - half) / info[2], edge), T(0));
      box[axis + 2] = std::max(std::min((middle + half - 1) / info[2], edge), T(0));
    }
  }

  In boxes_, scores_, anchors_, info_;
  T least_;
  int32_t candidates_, most_;
  NmsRule rule_;
};

AB_OP(retinanet_detection_output)
    .doc(
        "Takes the nms_top_k boxes of each level with the highest scores above score_threshold (above 0 on the last "
        "level), decodes them and clips them to the image; drops boxes that overlap a better one of their class by "
        "more than nms_threshold; Out = the keep_top_k best boxes of each image.")
    .source("Lin et al., Focal loss for dense object detection, ICCV 2017, arXiv:1708.02002")
    .in_list("BBoxes", "[N, A, 4] float of each level: offsets from the anchors")
    .in_list("Scores", "[N, A, classes] of each level, from 0 to 1")
    .in_list("Anchors", "[A, 4] of each level: left, top, right, bottom, in pixels")
    .in("ImInfo", "[N, 3]: height, width and scale of the images")
    .out("Out",
         "[detections, 6]: class (from 1), score, box in pixels of the image before scaling, best first, with a "
         "sequence for each image")
    .required_attr("score_threshold", AttrType::kFloat, "considers only boxes with a higher score")
    .required_attr("nms_top_k", AttrType::kInt, "number of boxes per level to consider; below 0: all")
    .required_attr("nms_threshold", AttrType::kFloat, "drops boxes that overlap a better one by more")
    .required_attr("nms_eta", AttrType::kFloat,
                   "below 1: multiplies nms_threshold after each kept box while it is above 0.5")
    .required_attr("keep_top_k", AttrType::kInt, "maximum number of detections per image; below 0: all")
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("BBoxes")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [detector = Detector<T>(op), out = op.out("Out"), work = std::vector<Work<T>>(),
              found = std::vector<std::vector<ClassDetection<T>>>()](KernelContext& c) mutable {
        const int64_t images = detector.images(c);
        work.resize(static_cast<size_t>(images));
        found.resize(static_cast<size_t>(images));
        c.parallel_for(images, 1, [&](int64_t begin, int64_t end) {
          for (auto n = static_cast<size_t>(begin); n < static_cast<size_t>(end); ++n) {
            detector.find(c, static_cast<int64_t>(n), &work[n]);
            std::swap(found[n], work[n].found);
          }
        });
        write_detections(found, ends_of(found, images), 4, 1, &c[out], [&](int64_t n, const auto& d) {
          return work[static_cast<size_t>(n)].boxes[static_cast<size_t>(d.cls)].data() + 4 * d.box;
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::retinanet_detection_output_op
