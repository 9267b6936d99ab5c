// The loss of YOLOv3 at one scale of its output.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection {
namespace {

using Ints = std::vector<int32_t>;

constexpr int64_t kBoxParts = 5;   // x, y, width, height, confidence; the scores of classes follow
constexpr float kNoSide = 1e-6f;  // boxes with a smaller side are padding

void check_anchors(const InferContext& c) {
  const auto &anchors = c.attr<Ints>("anchors"), &mask = c.attr<Ints>("anchor_mask");
  AB_CHECK(!anchors.empty() && anchors.size() % 2 == 0, InvalidArgument,
           "anchors must have a width and a height for each anchor, got {} numbers", anchors.size());
  for (int32_t side : anchors) AB_CHECK(side > 0, InvalidArgument, "anchors must be above 0, got {}", side);
  AB_CHECK(!mask.empty(), InvalidArgument, "anchor_mask must have an anchor, got none");
  const auto n = static_cast<int64_t>(anchors.size() / 2);
  for (int32_t k : mask) {
    AB_CHECK(k >= 0 && k < n, InvalidArgument, "anchor_mask must number the {} anchors, got {}", n, k);
  }
  const int32_t classes = c.attr<int32_t>("class_num"), ratio = c.attr<int32_t>("downsample_ratio");
  AB_CHECK(classes > 0, InvalidArgument, "class_num must be above 0, got {}", classes);
  AB_CHECK(ratio > 0, InvalidArgument, "downsample_ratio must be above 0, got {}", ratio);
}

void infer(InferContext& c) {
  check_anchors(c);
  for (const char* slot : {"X", "GTBox", "GTLabel"}) check_tensor(c, slot);
  check_rank(c, "X", 4, 4);
  check_rank(c, "GTBox", 3, 3);
  check_rank(c, "GTLabel", 2, 2);
  const Shape &x = c.in("X").shape, &box = c.in("GTBox").shape;
  const auto anchors = static_cast<int64_t>(c.attr<Ints>("anchor_mask").size());
  check_shape(c, "X", {kUnknown, anchors * (kBoxParts + c.attr<int32_t>("class_num")), kUnknown, kUnknown});
  AB_CHECK(x[2] == kUnknown || x[3] == kUnknown || x[2] == x[3], ShapeMismatch, "X must be as high as wide, got {}",
           x.str());
  check_shape(c, "GTBox", {x[0], kUnknown, 4});
  check_shape(c, "GTLabel", {box[0], box[1]});
  AB_CHECK(!c.runtime() || c.in("GTLabel").dtype == DType::kInt32, InvalidArgument, "GTLabel must hold int32, got {}",
           dtype_name(c.in("GTLabel").dtype));
  if (c.runtime()) check_same_dtype(c, "GTBox", "X");
  if (c.has_in("GTScore")) {
    check_shape(c, "GTScore", {box[0], box[1]});
    if (c.runtime()) check_same_dtype(c, "GTScore", "X");
  }
  c.set_out("Loss", Shape{x[0]}, c.in("X").dtype);
  c.set_out("ObjectnessMask", {x[0], anchors, x[2], x[3]}, c.in("X").dtype);
  c.set_out("GTMatchMask", {box[0], box[1]}, DType::kInt32);
}

template <class T> T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }
template <class T> T entropy(T x, T label) {  // of sigmoid(x)
  return std::max(x, T(0)) - x * label + std::log1p(std::exp(-std::abs(x)));
}

template <class T> struct Box {  // centre and size, in parts of the image
  T x, y, w, h;
};

template <class T> T overlap(const Box<T>& a, const Box<T>& b) {
  const T w = std::min(a.x + a.w / 2, b.x + b.w / 2) - std::max(a.x - a.w / 2, b.x - b.w / 2);
  const T h = std::min(a.y + a.h / 2, b.y + b.h / 2) - std::max(a.y - a.h / 2, b.y - b.h / 2);
  const T common = w < 0 || h < 0 ? T(0) : w * h;
  return common / (a.w * a.h + b.w * b.h - common);
}

// One image: X, the truth, and the masks, which the gradient only reads.
template <class T, class Mask = T, class Match = int32_t> struct Image {
  const T* x;
  const T* boxes;
  const int32_t* labels;
  const T* scores;  // null: 1 each
  Mask* objects;    // of each anchor and cell: the score of its truth; 0: none; -1: near enough to one
  Match* matches;
  Box<T> truth(int64_t t) const { return {boxes[4 * t], boxes[4 * t + 1], boxes[4 * t + 2], boxes[4 * t + 3]}; }
};

// An output, or where it is not wanted, memory in its place.
struct Kept {
  Out out;
  Tensor own;
  Kept(const KernelArgs& op, const char* slot) : out(op.out(slot)) {}
  template <class T> T* data(const KernelContext& c, const Shape& shape) {
    if (c.wants(out)) return c[out].mutable_data<T>();
    own.resize(shape, dtype_of<T>);
    return own.mutable_data<T>();
  }
};

template <class T> class Yolo {
 public:
  explicit Yolo(const KernelArgs& op)
      : anchors_(op.attr<Ints>("anchors")),
        mask_(op.attr<Ints>("anchor_mask")),
        classes_(op.attr<int32_t>("class_num")),
        ratio_(op.attr<int32_t>("downsample_ratio")),
        ignore_(static_cast<T>(op.attr<float>("ignore_thresh"))),
        scale_(static_cast<T>(op.attr<float>("scale_x_y"))) {
    const T smooth = op.attr<bool>("use_label_smooth")
                         ? std::min(T(1) / static_cast<T>(classes_), static_cast<T>(1.0 / 40))
                         : T(0);
    yes_ = 1 - smooth;
    no_ = smooth;
  }

  void set_extents(const Shape& x, int64_t truths) {
    grid_ = x[2];
    truths_ = truths;
  }

  // Fills the masks.
  void match(const Image<T>& image) const {
    for (int64_t a = 0; a < anchors(); ++a) {
      for (int64_t cell = 0; cell < plane(); ++cell) {
        image.objects[a * plane() + cell] = nearest(image, a, cell) > ignore_ ? T(-1) : T(0);
      }
    }
    for (int64_t t = 0; t < truths_; ++t) {
      image.matches[t] = -1;
      if (!valid(image.truth(t))) continue;
      image.matches[t] = anchor_of(image.truth(t));
      if (image.matches[t] < 0) continue;
      AB_CHECK(image.labels[t] >= 0 && image.labels[t] < classes_, InvalidArgument,
               "GTLabel must be from 0 to {}, got {}", classes_ - 1, image.labels[t]);
      image.objects[image.matches[t] * plane() + cell_of(image.truth(t))] = score(image, t);
    }
  }

  // By the masks. Where `dx` is given, the gradient times `factor` is added to it.
  template <class Any> T loss(const Any& image, const T* factor = nullptr, T* dx = nullptr) const {
    const Slope slope{factor, dx};
    T sum = 0;
    for (int64_t t = 0; t < truths_; ++t) {
      if (image.matches[t] < 0) continue;
      AB_CHECK(image.matches[t] < anchors(), InvalidArgument, "GTMatchMask must be below {}, got {}", anchors(),
               image.matches[t]);
      sum += of_truth(image, t, slope);
    }
    for (int64_t k = 0; k < anchors() * plane(); ++k) {
      const T object = image.objects[k];
      if (!(object > T(-0.5))) continue;
      const bool there = object > static_cast<T>(1e-5);
      const T weight = there ? object : T(1);
      sum += coded(image, at(k / plane(), 4, k % plane()), there ? T(1) : T(0), weight, slope);
    }
    return sum;
  }

  int64_t anchors() const { return static_cast<int64_t>(mask_.size()); }

 private:
  struct Slope {  // where the gradient goes, if anywhere
    const T* factor;
    T* dx;
    void add(int64_t k, T by) const {
      if (dx) dx[k] += by * *factor;
    }
  };
  int64_t plane() const { return grid_ * grid_; }
  int64_t at(int64_t anchor, int64_t part, int64_t cell) const {
    return (anchor * (kBoxParts + classes_) + part) * plane() + cell;
  }
  T width(int64_t anchor) const { return static_cast<T>(anchors_[static_cast<size_t>(2 * anchor)]); }
  T height(int64_t anchor) const { return static_cast<T>(anchors_[static_cast<size_t>(2 * anchor + 1)]); }
  T input() const { return static_cast<T>(ratio_ * grid_); }
  template <class Any> T score(const Any& image, int64_t t) const { return image.scores ? image.scores[t] : T(1); }
  static bool valid(const Box<T>& b) { return !(b.w < static_cast<T>(kNoSide) || b.h < static_cast<T>(kNoSide)); }

  int64_t cell_of(const Box<T>& b) const {
    AB_CHECK(b.x >= 0 && b.x < 1 && b.y >= 0 && b.y < 1, InvalidArgument,
             "the centres of GTBox must be from 0 to below 1, got ({}, {})", b.x, b.y);
    const T grid = static_cast<T>(grid_);
    const int64_t row = std::min(static_cast<int64_t>(b.y * grid), grid_ - 1);
    return row * grid_ + std::min(static_cast<int64_t>(b.x * grid), grid_ - 1);
  }

  // The largest overlap of a predicted box with a true one.
  T nearest(const Image<T>& image, int64_t a, int64_t cell) const {
    const T grid = static_cast<T>(grid_), bias = (1 - scale_) / 2;
    const int64_t anchor = mask_[static_cast<size_t>(a)];
    const Box<T> box{(static_cast<T>(cell % grid_) + sigmoid(image.x[at(a, 0, cell)]) * scale_ + bias) / grid,
                     (static_cast<T>(cell / grid_) + sigmoid(image.x[at(a, 1, cell)]) * scale_ + bias) / grid,
                     std::exp(image.x[at(a, 2, cell)]) * width(anchor) / input(),
                     std::exp(image.x[at(a, 3, cell)]) * height(anchor) / input()};
    T most = 0;
    for (int64_t t = 0; t < truths_; ++t) {
      if (valid(image.truth(t))) most = std::max(most, overlap(box, image.truth(t)));
    }
    return most;
  }

  // Where in anchor_mask the anchor is that has the shape of the box, -1 where it is not there.
  int32_t anchor_of(const Box<T>& truth) const {
    T most = 0;
    int32_t best = 0;
    for (size_t k = 0; k < anchors_.size() / 2; ++k) {
      const auto n = static_cast<int64_t>(k);
      const T near = overlap(Box<T>{0, 0, width(n) / input(), height(n) / input()}, Box<T>{0, 0, truth.w, truth.h});
      if (near > most) {
        most = near;
        best = static_cast<int32_t>(k);
      }
    }
    const auto found = std::find(mask_.begin(), mask_.end(), best);
    return found == mask_.end() ? -1 : static_cast<int32_t>(found - mask_.begin());
  }

  template <class Any> T coded(const Any& image, int64_t k, T label, T weight, const Slope& slope) const {
    slope.add(k, (sigmoid(image.x[k]) - label) * weight);
    return entropy(image.x[k], label) * weight;
  }
  template <class Any> T absolute(const Any& image, int64_t k, T wanted, T weight, const Slope& slope) const {
    slope.add(k, image.x[k] > wanted ? weight : -weight);
    return std::abs(image.x[k] - wanted) * weight;
  }

  // Place, size and class of the box that has to be predicted.
  template <class Any> T of_truth(const Any& image, int64_t t, const Slope& slope) const {
    const Box<T> box = image.truth(t);
    const int64_t a = image.matches[t], anchor = mask_[static_cast<size_t>(a)], cell = cell_of(box);
    const T grid = static_cast<T>(grid_), given = score(image, t), weight = (2 - box.w * box.h) * given;
    T sum = coded(image, at(a, 0, cell), box.x * grid - static_cast<T>(cell % grid_), weight, slope);
    sum += coded(image, at(a, 1, cell), box.y * grid - static_cast<T>(cell / grid_), weight, slope);
    sum += absolute(image, at(a, 2, cell), std::log(box.w * input() / width(anchor)), weight, slope);
    sum += absolute(image, at(a, 3, cell), std::log(box.h * input() / height(anchor)), weight, slope);
    for (int64_t k = 0; k < classes_; ++k) {
      sum += coded(image, at(a, kBoxParts + k, cell), k == image.labels[t] ? yes_ : no_, given, slope);
    }
    return sum;
  }

  Ints anchors_, mask_;
  int64_t classes_, ratio_, grid_ = 0, truths_ = 0;
  T ignore_, scale_, yes_ = 1, no_ = 0;
};

// Tensors of the op and what lies in them for image n.
template <class T> struct Truth {
  In x, box, label, score;
  explicit Truth(const KernelArgs& op)
      : x(op.in("X")), box(op.in("GTBox")), label(op.in("GTLabel")), score(op.in("GTScore")) {}
  template <class Mask, class Match>
  Image<T, Mask, Match> of(const KernelContext& c, int64_t n, Mask* objects, Match* matches) const {
    const int64_t first = n * c[label].shape()[1];
    return {c[x].data<T>() + n * c[x].row_elems(),
            c[box].data<T>() + 4 * first,
            c[label].data<int32_t>() + first,
            score ? c[score].data<T>() + first : nullptr,
            objects,
            matches};
  }
};

AB_OP(yolov3_loss)
    .doc(
        "Loss[n] = for each true box whose shape is most like one of the anchors of this scale: (2 - w h) score times "
        "the cross entropy of its place in its cell and the distance of ln(size / anchor), plus score times the cross "
        "entropy of its classes; plus the cross entropy of the confidence of all boxes, but for boxes without a truth "
        "that overlap one by more than ignore_thresh.")
    .source("Redmon & Farhadi, YOLOv3, arXiv:1804.02767")
    .in("X", "[N, anchors (5 + class_num), H, H] float: tx, ty, tw, th, confidence, classes of each anchor")
    .in("GTBox", "[N, B, 4] as X: x, y of the centre, width, height, in parts of the image; sizes of 0: padding")
    .in("GTLabel", "[N, B] int32 in [0, class_num)")
    .in_optional("GTScore", "[N, B] as X: how much a box counts; 1 where it is not given")
    .out("Loss", "[N]")
    .out_intermediate("ObjectnessMask", "[N, anchors, H, H]: score of the truth of a box, 0: none, -1: near one")
    .out_intermediate("GTMatchMask", "[N, B] int32: place in anchor_mask, -1: another scale's box or padding")
    .required_attr("class_num", AttrType::kInt, "classes, at least 1")
    .attr<Ints>("anchors", {}, "width and height of the anchors of all scales, in pixels of the network's input")
    .attr<Ints>("anchor_mask", {}, "numbers of the anchors of this scale")
    .attr<int32_t>("downsample_ratio", 32, "pixels of the network's input for a cell of X")
    .attr<float>("ignore_thresh", 0.7f, "boxes with a larger overlap need not be sure that there is nothing")
    .attr<bool>("use_label_smooth", true, "labels 1 - s and s, s = min(1 / class_num, 1 / 40)")
    .attr<float>("scale_x_y", 1.0f, "how far from the middle of a cell a centre may be")
    .infer(infer)
    .grad_reads({"X", "GTBox", "GTLabel", "GTScore"}, {"ObjectnessMask", "GTMatchMask"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [yolo = Yolo<T>(op), truth = Truth<T>(op), loss = op.out("Loss"), objects = Kept(op, "ObjectnessMask"),
              matches = Kept(op, "GTMatchMask")](KernelContext& c) mutable {
        const Shape x = c[truth.x].shape(), labels = c[truth.label].shape();
        yolo.set_extents(x, labels[1]);
        const int64_t cells = yolo.anchors() * x[2] * x[3];
        T* object = objects.template data<T>(c, Shape{x[0], cells});
        int32_t* match = matches.template data<int32_t>(c, labels);
        T* to = c[loss].template mutable_data<T>();
        c.parallel_for(x[0], 1, [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            const Image<T> image = truth.of(c, n, object + n * cells, match + n * labels[1]);
            yolo.match(image);
            to[n] = yolo.loss(image);
          }
        });
      };
    });

AB_GRAD(yolov3_loss)
    .doc("X@GRAD = Loss@GRAD times the slopes of the terms of the loss.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [yolo = Yolo<T>(op), truth = Truth<T>(op), objects = op.in("ObjectnessMask"),
              matches = op.in("GTMatchMask"), dloss = op.in("Loss@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const Shape x = c[truth.x].shape(), labels = c[truth.label].shape();
        yolo.set_extents(x, labels[1]);
        const int64_t cells = yolo.anchors() * x[2] * x[3];
        const T *object = c[objects].template data<T>(), *factor = c[dloss].template data<T>();
        const int32_t* match = c[matches].template data<int32_t>();
        T* to = zeroed<T>(c, dx);
        c.parallel_for(x[0], 1, [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            const auto image = truth.of(c, n, object + n * cells, match + n * labels[1]);
            yolo.loss(image, factor + n, to + n * x.numel(1, 4));
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection
