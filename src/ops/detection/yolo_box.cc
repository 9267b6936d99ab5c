// Decodes boxes and scores from the output of YOLOv3.
#include <cmath>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::yolo_box_op {
namespace {

constexpr int kBoxParts = 5;  // x, y, width, height, confidence; the scores of classes follow

void infer(InferContext& c) {
  check_rank(c, "X", 4, 4);
  check_rank(c, "ImgSize", 2, 2);
  const Shape& x = c.in("X").shape;
  const int32_t classes = c.attr<int32_t>("class_num");
  AB_CHECK(classes > 0, InvalidArgument, "class_num must be above 0, got {}", classes);
  const auto& anchors = c.attr<std::vector<int32_t>>("anchors");
  AB_CHECK(!anchors.empty() && anchors.size() % 2 == 0, InvalidArgument,
           "anchors must have a width and a height for each anchor, got {} numbers", anchors.size());
  const auto n = static_cast<int64_t>(anchors.size() / 2);
  check_shape(c, "X", Shape{kUnknown, n * (kBoxParts + int64_t{classes}), kUnknown, kUnknown});
  check_shape(c, "ImgSize", Shape{x[0], 2});
  check_dtype(c, "ImgSize", DType::kInt32);
  const int64_t boxes = x[2] == kUnknown || x[3] == kUnknown ? kUnknown : n * x[2] * x[3];
  c.set_out("Boxes", Shape{x[0], boxes, 4}, c.in("X").dtype);
  c.set_out("Scores", Shape{x[0], boxes, classes}, c.in("X").dtype);
}

template <class T> T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }

template <class T> struct Yolo {
  int64_t classes, ratio;
  T threshold, scale, bias;
  bool clip;
  std::vector<int32_t> anchors;

  explicit Yolo(const KernelArgs& op)
      : classes(op.attr<int32_t>("class_num")),
        ratio(op.attr<int32_t>("downsample_ratio")),
        threshold(static_cast<T>(op.attr<float>("conf_thresh"))),
        scale(static_cast<T>(op.attr<float>("scale_x_y"))),
        bias((1 - scale) / 2),
        clip(op.attr<bool>("clip_bbox")),
        anchors(op.attr<std::vector<int32_t>>("anchors")) {}

  // The box of a cell. The number of rows of the grid is used for columns, too, as in Fluid 1.8.5.
  void box(const T* x, int64_t plane, const int32_t* anchor, int64_t row, int64_t column, int64_t rows,
           const int32_t* image, T* to) const {
    const T height = static_cast<T>(image[0]), width = static_cast<T>(image[1]), grid = static_cast<T>(rows);
    const T input = static_cast<T>(ratio * rows);
    const T x_mid = (static_cast<T>(column) + sigmoid(x[0]) * scale + bias) * width / grid;
    const T y_mid = (static_cast<T>(row) + sigmoid(x[plane]) * scale + bias) * height / grid;
    const T w = std::exp(x[2 * plane]) * static_cast<T>(anchor[0]) * width / input;
    const T h = std::exp(x[3 * plane]) * static_cast<T>(anchor[1]) * height / input;
    to[0] = x_mid - w / 2;
    to[1] = y_mid - h / 2;
    to[2] = x_mid + w / 2;
    to[3] = y_mid + h / 2;
    if (!clip) return;
    for (int k : {0, 1}) to[k] = to[k] > 0 ? to[k] : T(0);
    to[2] = to[2] < width - 1 ? to[2] : width - 1;
    to[3] = to[3] < height - 1 ? to[3] : height - 1;
  }

  // Box b of an image, numbered by anchor, row and column.
  void fill(const T* image_x, const Shape& s, int64_t b, const int32_t* size, T* box_to, T* scores) const {
    const int64_t plane = s[2] * s[3], anchor = b / plane, cell = b % plane;
    const T* x = image_x + anchor * (kBoxParts + classes) * plane + cell;
    const T confidence = sigmoid(x[4 * plane]);
    if (confidence < threshold) {
      std::fill(box_to, box_to + 4, T(0));
      std::fill(scores, scores + classes, T(0));
      return;
    }
    box(x, plane, anchors.data() + 2 * anchor, cell / s[3], cell % s[3], s[2], size, box_to);
    for (int64_t k = 0; k < classes; ++k) scores[k] = confidence * sigmoid(x[(kBoxParts + k) * plane]);
  }
};

AB_OP(yolo_box)
    .doc(
        "Boxes: for anchor (pw, ph) and cell (i, j) the box with centre ((i + a s(tx) - (a - 1) / 2) / H, (j + a s(ty) "
        "- (a - 1) / 2) / H) and size (pw e^tw, ph e^th) / (downsample_ratio H), in pixels of the image, where s is "
        "the sigmoid and a = scale_x_y; Scores: s(confidence) s(class). Zeros if s(confidence) < conf_thresh.")
    .source("Redmon & Farhadi, YOLOv3, arXiv:1804.02767")
    .in("X", "[N, anchors (5 + class_num), H, W] float: tx, ty, tw, th, confidence, classes of each anchor")
    .in("ImgSize", "[N, 2] int32: height and width of each image")
    .out("Boxes", "[N, anchors H W, 4]: left, top, right, bottom")
    .out("Scores", "[N, anchors H W, class_num]")
    .required_attr("class_num", AttrType::kInt, "number of classes, at least 1")
    .attr<std::vector<int32_t>>("anchors", {}, "width and height of each anchor")
    .attr<int32_t>("downsample_ratio", 32, "pixels of the network's input per cell of X")
    .attr<float>("conf_thresh", 0.01f, "zeroes boxes of lower confidence")
    .attr<bool>("clip_bbox", true, "clips boxes to the image")
    .attr<float>("scale_x_y", 1.0f, "scale of a centre's offset from the middle of its cell")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [yolo = Yolo<T>(op), x = op.in("X"), size = op.in("ImgSize"), boxes = op.out("Boxes"),
              scores = op.out("Scores")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const T* from = c[x].data<T>();
        const int32_t* sizes = c[size].data<int32_t>();
        T *box_to = c[boxes].mutable_data<T>(), *score_to = c[scores].mutable_data<T>();
        const int64_t each = c[boxes].shape()[1], sample = s.numel(1, 4);
        c.parallel_each(s[0] * each, kBoxGrain / 4, [&, from, sizes, box_to, score_to, each](int64_t b) {
          const int64_t n = b / each;
          yolo.fill(from + n * sample, s, b % each, sizes + 2 * n, box_to + 4 * b, score_to + yolo.classes * b);
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::yolo_box_op
