// The detections of an image: per-class non-maximum suppression, then the best of all classes.
#include <memory>

#include "ops/declare/declare.h"
#include "ops/detection/nms.h"

namespace anabranch::detection::multiclass_nms_op {
namespace {

bool is_box_size(int64_t n) { return n == 4 || n == 8 || n == 16 || n == 24 || n == 32; }

void check_inputs(const InferContext& c) {
  const Shape &boxes = c.in("BBoxes").shape, &scores = c.in("Scores").shape;
  check_rank(c, "BBoxes", 3, 3);
  check_rank(c, "Scores", 2, 3);
  check_same_dtype(c, "BBoxes", "Scores");
  if (scores.rank() == 3) {
    AB_CHECK(boxes[2] == kUnknown || is_box_size(boxes[2]), InvalidArgument,
             "the last axis of BBoxes must have 4, 8, 16, 24 or 32 elements, got {}", boxes.str());
    AB_CHECK(boxes[1] == kUnknown || scores[2] == kUnknown || boxes[1] == scores[2], ShapeMismatch,
             "BBoxes must have a box for each of the {} scores of a class, got {}", scores[2], boxes.str());
    AB_CHECK(!c.runtime() || boxes[0] >= scores[0], ShapeMismatch, "BBoxes must have the {} images of Scores, got {}",
             scores[0], boxes.str());
    return;
  }
  check_shape(c, "BBoxes", Shape{kUnknown, scores[1], 4});
  if (!c.runtime()) return;
  one_level_of(c, "BBoxes", true);
  AB_CHECK(scores[0] >= boxes[0], ShapeMismatch, "Scores must have a row for each of the {} rows of BBoxes, got {}",
           boxes[0], scores.str());
}

void infer(InferContext& c) {
  check_inputs(c);
  const Shape& boxes = c.in("BBoxes").shape;
  // The number of results is known only at run time.
  const int64_t width = boxes[2] == kUnknown ? kUnknown : boxes[2] + 2, rows = c.runtime() ? 0 : kUnknown;
  c.set_out("Out", Shape{rows, width}, c.in("BBoxes").dtype);
  c.out("Out").lod_level = 1;
  if (c.op().type == "multiclass_nms") return;
  c.set_out("Index", Shape{rows, 1}, DType::kInt32);
  c.out("Index").lod_level = 1;
}

// Layout of the boxes and scores of images.
template <class T> struct Images {
  const T *boxes, *scores;
  int64_t count, classes, box_size;
  int64_t priors;  // per image; 0 if the LoD gives their number
  const std::vector<int64_t>* sequences;

  Images(const Tensor& b, const Tensor& s)
      : boxes(b.data<T>()),
        scores(s.data<T>()),
        count(0),
        classes(s.shape()[1]),
        box_size(b.shape()[2]),
        priors(0),
        sequences(nullptr) {
    if (s.shape().rank() == 3) {
      count = s.shape()[0];
      priors = s.shape()[2];
    } else {
      sequences = &b.lod().back();
      count = static_cast<int64_t>(sequences->size()) - 1;
    }
  }
  // Index of the image's first prior.
  int64_t first(int64_t image) const { return sequences ? (*sequences)[static_cast<size_t>(image)] : image * priors; }
  ClassBoxes<T> of(int64_t image, int64_t cls) const {
    if (!sequences) {
      return {
          scores + (image * classes + cls) * priors, boxes + image * priors * box_size, priors, 1, box_size, box_size};
    }
    const int64_t row = first(image);
    return {scores + row * classes + cls, boxes + (row * classes + cls) * box_size,
            first(image + 1) - row,       classes,
            classes * box_size,           box_size};
  }
  // The value in Index for a box: its row in BBoxes without the last axis.
  int64_t number(int64_t image, int64_t cls, int64_t box) const {
    return sequences ? (first(image) + box) * classes + cls : first(image) + box;
  }
};

// Lists kept from step to step: the kept boxes of each class of each image.
template <class T> class Finder {
 public:
  explicit Finder(const KernelArgs& op)
      : background_(op.attr<int32_t>("background_label")), most_(op.attr<int32_t>("keep_top_k")) {
    rule_.score_threshold = op.attr<float>("score_threshold");
    rule_.overlap_threshold = op.attr<float>("nms_threshold");
    rule_.eta = op.attr<float>("nms_eta");
    rule_.candidates = op.attr<int32_t>("nms_top_k");
    rule_.normalized = op.attr<bool>("normalized");
  }

  void find(const KernelContext& c, const Images<T>& images) {
    const int64_t n = images.count * images.classes;
    if (static_cast<int64_t>(found.size()) < n) found.resize(static_cast<size_t>(n));
    c.parallel_each(n, 1, [&](int64_t k) {
      auto& list = found[static_cast<size_t>(k)];
      list.clear();
      if (k % images.classes != background_) suppress(images.of(k / images.classes, k % images.classes), rule_, &list);
    });
    offsets.assign(1, 0);
    for (int64_t i = 0; i < images.count; ++i) offsets.push_back(offsets.back() + keep_best(i, images.classes));
    arrange(images);
  }

  std::vector<std::vector<Detection<T>>> found;  // class k of image i is at i * classes + k
  std::vector<int64_t> offsets;                  // of each image's detections

 private:
  struct Ranked {
    T score;
    int64_t cls, place;
    bool operator<(const Ranked& o) const {
      return score != o.score ? score > o.score : cls != o.cls ? cls < o.cls : place < o.place;
    }
  };

  // As in Fluid 1.8.5, boxes shared by all classes are listed by score, boxes of single classes by index.
  void arrange(const Images<T>& images) {
    if (!images.sequences) return;
    for (int64_t k = 0; k < images.count * images.classes; ++k) {
      auto& list = found[static_cast<size_t>(k)];
      std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.box < b.box; });
    }
  }

  // Shortens the lists of an image to the keep_top_k best of all classes. Each list is sorted best first, so a prefix
  // of it remains.
  int64_t keep_best(int64_t image, int64_t classes) {
    auto* lists = found.data() + image * classes;
    ranked_.clear();
    for (int64_t k = 0; k < classes; ++k) {
      for (size_t i = 0; i < lists[k].size(); ++i) ranked_.push_back({lists[k][i].score, k, static_cast<int64_t>(i)});
    }
    const auto total = static_cast<int64_t>(ranked_.size());
    if (most_ < 0 || total <= most_) return total;
    std::nth_element(ranked_.begin(), ranked_.begin() + most_, ranked_.end());
    counts_.assign(static_cast<size_t>(classes), 0);
    for (int32_t i = 0; i < most_; ++i) ++counts_[static_cast<size_t>(ranked_[static_cast<size_t>(i)].cls)];
    for (int64_t k = 0; k < classes; ++k) {
      lists[k].erase(lists[k].begin() + counts_[static_cast<size_t>(k)], lists[k].end());
    }
    return most_;
  }

  NmsRule rule_;
  int32_t background_, most_;
  std::vector<Ranked> ranked_;
  std::vector<int64_t> counts_;
};

// Rows [class, score, box...] of Out, and Index if it is requested.
template <class T>
void write(const Images<T>& images, const std::vector<std::vector<Detection<T>>>& found, T* to, int32_t* index) {
  for (int64_t k = 0; k < images.count * images.classes; ++k) {
    const int64_t image = k / images.classes, cls = k % images.classes;
    const ClassBoxes<T> in = images.of(image, cls);
    for (const Detection<T>& d : found[static_cast<size_t>(k)]) {
      *to++ = static_cast<T>(cls);
      *to++ = d.score;
      to = std::copy_n(in.boxes + d.box * in.box_step, in.box_size, to);
      if (index) *index++ = static_cast<int32_t>(images.number(image, cls, d.box));
    }
  }
}

template <class T> Kernel nms(const KernelArgs& op, bool has_index) {
  return [finder = Finder<T>(op), has_index, boxes = op.in("BBoxes"), scores = op.in("Scores"), out = op.out("Out"),
          index = has_index ? op.out("Index") : Out()](KernelContext& c) mutable {
    const Images<T> images(c[boxes], c[scores]);
    finder.find(c, images);
    const int64_t total = finder.offsets.back();
    Tensor& made = c[out];
    if (total == 0 && !has_index) {  // as in Fluid 1.8.5, a single -1 means that nothing was found
      made.resize(Shape{1, 1}, dtype_of<T>);
      *made.mutable_data<T>() = T(-1);
      made.set_lod(std::make_shared<const LoD>(LoD{{0, 1}}));
      return;
    }
    const bool numbers = has_index && c.needs(index);
    const LoDRef lod = images.count > 0 ? std::make_shared<const LoD>(LoD{finder.offsets}) : nullptr;
    made.resize(Shape{total, images.box_size + 2}, dtype_of<T>);
    made.set_lod(lod);
    if (numbers) {
      c[index].resize(Shape{total, 1}, DType::kInt32);
      c[index].set_lod(lod);
    }
    write(images, finder.found, made.mutable_data<T>(), numbers ? c[index].mutable_data<int32_t>() : nullptr);
  };
}

void nms_attrs(OpDef& def) {
  def.attr<int32_t>("background_label", 0, "class to skip; -1: none")
      .required_attr("score_threshold", AttrType::kFloat, "considers only boxes with a higher score")
      .required_attr("nms_top_k", AttrType::kInt, "number of best boxes per class to consider; below 0: all")
      .attr<float>("nms_threshold", 0.3f, "drops boxes that overlap a better one by more")
      .attr<float>("nms_eta", 1.0f, "below 1: multiplies nms_threshold after each kept box while it is above 0.5")
      .required_attr("keep_top_k", AttrType::kInt, "maximum number of detections per image; below 0: all")
      .attr<bool>("normalized", true, "false: boxes are in whole pixels and include their right and bottom ones");
}

void nms_op(const char* type, bool has_index) {
  OpDef& def = declare_op(type, __FILE__);
  def.doc(
         "For each class: boxes by descending score, without those that overlap a better one by more than "
         "nms_threshold; then the keep_top_k best boxes of each image, ordered by class, then by score (by row if "
         "Scores has two axes); of equal scores the first box wins.")
      .in("BBoxes",
          "[N, M, 4] float boxes of images, or polygons of 8, 16, 24 or 32 numbers; [rows, classes, 4] with a sequence "
          "for each image if Scores has two axes")
      .in("Scores", "[N, classes, M], or [rows, classes]")
      .out("Out",
           has_index
               ? "[detections, 2 + box]: class, score, box, with a sequence for each image"
               : "[detections, 2 + box]: class, score, box, with a sequence for each image; [[-1]] if there is none")
      .with(nms_attrs)
      .effects(kDynamic)
      .infer(infer)
      .no_grad(kBoxesAreFixed);
  if (has_index) def.out_intermediate("Index", "[detections, 1] int32: the box's row in BBoxes");
  def.cpu<float, double>([has_index]<class T>(TypeTag<T>, const KernelArgs& op) { return nms<T>(op, has_index); });
}

void declare() {
  nms_op("multiclass_nms", false);
  nms_op("multiclass_nms2", true);
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::detection::multiclass_nms_op
