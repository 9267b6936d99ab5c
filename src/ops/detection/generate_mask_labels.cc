// Mask targets for the third stage of a detector.
#include <limits>
#include <memory>

#include "ops/detection/anchor_targets.h"
#include "ops/detection/polygon_mask.h"

namespace anabranch::detection::generate_mask_labels_op {
namespace {

int64_t positive(const InferContext& c, const char* name) {
  const int64_t n = c.attr<int32_t>(name);
  AB_CHECK(n > 0, InvalidArgument, "{} must be above 0, got {}", name, n);
  return n;
}

void check_runtime(const InferContext& c) {
  const int64_t images = c.in("ImInfo").shape[0];
  for (const char* slot : {"GtClasses", "IsCrowd", "LabelsInt32"}) {
    check_dtype(c, slot, DType::kInt32);
  }
  for (const char* slot : {"ImInfo", "GtSegms"}) check_same_dtype(c, slot, "Rois");
  check_sequence_each(c, "Rois", images);
  check_number_per_row(c, "LabelsInt32", c.in("Rois").shape[0]);
  check_same_sequences(c, "LabelsInt32", "Rois");
  check_sequence_each(c, "GtClasses", images);
  check_number_per_row(c, "IsCrowd", c.in("GtClasses").shape[0]);
  check_same_sequences(c, "IsCrowd", "GtClasses");
  const Meta& m = c.in("GtSegms");
  AB_CHECK(m.lod && m.lod->size() == 3 && m.lod->back().back() == m.shape[0], InvalidArgument,
           "GtSegms must have three levels of sequences (true boxes of an image, polygons of a box, points), got {}",
           m.lod ? m.lod->size() : 0);
  AB_CHECK(m.lod->front() == c.in("GtClasses").lod->back(), ShapeMismatch,
           "GtSegms must have polygons for each of the {} rows of GtClasses, image by image",
           c.in("GtClasses").shape[0]);
}

void infer(InferContext& c) {
  for (const char* slot : {"GtSegms", "Rois"}) check_rank(c, slot, 2, 2);
  check_shape(c, "GtSegms", {kUnknown, 2});
  check_shape(c, "Rois", {kUnknown, 4});
  check_rank(c, "ImInfo", 2, 2);
  check_shape(c, "ImInfo", {kUnknown, 3});
  const int64_t side = positive(c, "resolution"), classes = positive(c, "num_classes");
  int64_t width = 0;
  AB_CHECK(!__builtin_mul_overflow(side * side, classes, &width), ResourceExhausted,
           "num_classes * resolution * resolution must fit into 64 bits, got {} and {}", classes, side);
  if (c.runtime()) check_runtime(c);
  // The number of results is known only at run time.
  const int64_t rows = c.runtime() ? 0 : kUnknown;
  c.set_out("MaskRois", {rows, 4}, c.in("Rois").dtype);
  c.set_out("RoiHasMaskInt32", {rows, 1}, DType::kInt32);
  c.set_out("MaskInt32", {rows, width}, DType::kInt32);
  for (const char* slot : {"MaskRois", "RoiHasMaskInt32", "MaskInt32"}) c.out(slot).lod_level = 1;
}

template <class T> class Masks {
 public:
  explicit Masks(const KernelArgs& op)
      : side_(op.attr<int32_t>("resolution")),
        classes_(op.attr<int32_t>("num_classes")),
        info_(op.in("ImInfo")),
        kinds_(op.in("GtClasses")),
        crowd_(op.in("IsCrowd")),
        points_(op.in("GtSegms")),
        rois_(op.in("Rois")),
        labels_(op.in("LabelsInt32")),
        outs_{op.out("MaskRois"), op.out("RoiHasMaskInt32"), op.out("MaskInt32")},
        drawer_(side_) {}

  void run(KernelContext& c) {
    chosen_.clear();
    ends_.assign(1, 0);
    for (int64_t n = 0; n < c[info_].rows(); ++n) {
      find_truth(c, n);
      choose(c, n);
      ends_.push_back(static_cast<int64_t>(chosen_.size()));
    }
    write_chosen(c);
    if (c.needs(outs_[2])) write_masks(c, &c[outs_[2]]);
  }

 private:
  struct Chosen {
    int64_t roi, number, truth;  // number: index within its image; truth: -1 for the background
    T scale;
  };

  // The polygons' bounding boxes of an image's true boxes that have a class and are not crowds.
  void find_truth(const KernelContext& c, int64_t n) {
    truth_.clear();
    boxes_.clear();
    const LoD& lod = c[points_].lod();
    const T* points = c[points_].data<T>();
    for (int64_t g = lod[0][static_cast<size_t>(n)]; g < lod[0][static_cast<size_t>(n) + 1]; ++g) {
      if (c[kinds_].data<int32_t>()[g] <= 0 || c[crowd_].data<int32_t>()[g] != 0) continue;
      truth_.push_back(g);
      const T far = std::numeric_limits<T>::max();
      T box[4] = {far, far, T(0), T(0)};
      const auto first = static_cast<size_t>(lod[1][static_cast<size_t>(g)]);
      const auto last = static_cast<size_t>(lod[1][static_cast<size_t>(g) + 1]);
      for (int64_t k = lod[2][first]; k < lod[2][last]; ++k) {
        for (int64_t axis : {int64_t{0}, int64_t{1}}) {
          box[axis] = std::min(box[axis], points[2 * k + axis]);
          box[axis + 2] = std::max(box[axis + 2], points[2 * k + axis]);
        }
      }
      boxes_.insert(boxes_.end(), box, box + 4);
    }
  }

  // Each roi with a class gets the mask of the true box that it overlaps most. Without one, the first background roi is
  // used, with a mask that trains nothing.
  void choose(const KernelContext& c, int64_t n) {
    const auto& ends = c[rois_].lod().back();
    const int64_t first = ends[static_cast<size_t>(n)], last = ends[static_cast<size_t>(n) + 1];
    const int32_t* labels = c[labels_].data<int32_t>();
    const T scale = c[info_].data<T>()[3 * n + 2];
    bool any = false;
    for (int64_t r = first; r < last; ++r) {
      if (labels[r] <= 0 || truth_.empty()) continue;
      AB_CHECK(labels[r] < classes_, InvalidArgument, "LabelsInt32 must be below {}, got {}", classes_, labels[r]);
      any = true;
      find_roi(c, r, scale);
      overlap_all(roi_, boxes_, &near_);
      const auto best = std::max_element(near_.begin(), near_.end()) - near_.begin();
      chosen_.push_back({r, r - first, truth_[static_cast<size_t>(best)], scale});
    }
    for (int64_t r = first; r < last && !any; ++r) {
      if (labels[r] != 0) continue;
      chosen_.push_back({r, r - first, -1, scale});
      break;
    }
  }

  // In pixels of the image before scaling, like the polygons.
  void find_roi(const KernelContext& c, int64_t r, T scale) {
    const T* rois = c[rois_].data<T>();
    roi_.assign(rois + 4 * r, rois + 4 * r + 4);
    for (T& v : roi_) v /= scale;
  }

  LoDRef sequences() const { return ends_.size() > 1 ? std::make_shared<const LoD>(LoD{ends_}) : nullptr; }

  void write_chosen(KernelContext& c) {
    made_.clear();
    numbers_.clear();
    const T* rois = c[rois_].data<T>();
    for (const Chosen& chosen : chosen_) {
      made_.insert(made_.end(), rois + 4 * chosen.roi, rois + 4 * chosen.roi + 4);
      numbers_.push_back(static_cast<int32_t>(chosen.number));
    }
    if (c.needs(outs_[0])) write_rows(&c[outs_[0]], made_, 4, sequences());
    if (c.needs(outs_[1])) write_rows(&c[outs_[1]], numbers_, 1, sequences());
  }

  // Draws into the output itself: the attributes give the width of a row.
  void write_masks(const KernelContext& c, Tensor* masks) {
    const int64_t size = side_ * side_;
    masks->resize({static_cast<int64_t>(chosen_.size()), classes_ * size}, DType::kInt32);
    masks->set_lod(sequences());
    int32_t* row = masks->template mutable_data<int32_t>();
    std::fill_n(row, masks->numel(), -1);
    const int32_t* labels = c[labels_].data<int32_t>();
    for (const Chosen& chosen : chosen_) {
      if (chosen.truth >= 0) {
        find_roi(c, chosen.roi, chosen.scale);
        draw(c, chosen.truth, row + labels[chosen.roi] * size);
      }
      row += classes_ * size;
    }
  }

  // The polygons of a true box on the grid of roi_.
  void draw(const KernelContext& c, int64_t truth, int32_t* to) {
    const LoD& lod = c[points_].lod();
    const T* points = c[points_].data<T>();
    const double side = static_cast<double>(side_);
    const double size[2] = {std::max(static_cast<double>(roi_[2] - roi_[0]), 1.0),
                            std::max(static_cast<double>(roi_[3] - roi_[1]), 1.0)};
    mask_.assign(static_cast<size_t>(side_ * side_), 0);
    for (int64_t p = lod[1][static_cast<size_t>(truth)]; p < lod[1][static_cast<size_t>(truth) + 1]; ++p) {
      corners_.clear();
      for (int64_t k = 2 * lod[2][static_cast<size_t>(p)]; k < 2 * lod[2][static_cast<size_t>(p) + 1]; ++k) {
        const auto axis = static_cast<size_t>(k % 2);
        corners_.push_back(static_cast<double>(points[k] - roi_[axis]) * side / size[axis]);
      }
      drawer_.add(corners_, &mask_);
    }
    std::copy(mask_.begin(), mask_.end(), to);
  }

  int64_t side_, classes_;
  In info_, kinds_, crowd_, points_, rois_, labels_;
  Out outs_[3];
  PolygonMask drawer_;
  std::vector<int64_t> truth_, ends_;
  std::vector<T> boxes_, roi_, near_, made_;
  std::vector<Chosen> chosen_;
  std::vector<double> corners_;
  std::vector<int32_t> numbers_, mask_;
};

AB_OP(generate_mask_labels)
    .doc(
        "For each roi with a class, the mask of the true box that it overlaps most, drawn on a grid of resolution x "
        "resolution over the roi, in the columns of its class in MaskInt32; -1 elsewhere.")
    .source("He et al., Mask R-CNN, ICCV 2017, arXiv:1703.06870")
    .in("ImInfo", "[N, 3] float: height, width and scale of the images")
    .in("GtClasses", "[truths, 1] int32, with a sequence for each image: 0 for boxes without a mask")
    .in("IsCrowd", "[truths, 1] int32: not 0 for crowds, which have no mask")
    .in("GtSegms", "[points, 2] like ImInfo: x, y of polygons; sequences of truths, of polygons, of points")
    .in("Rois", "[rois, 4] like ImInfo: left, top, right, bottom in pixels, with a sequence for each image")
    .in("LabelsInt32", "[rois, 1] int32: classes, 0 for the background")
    .out("MaskRois", "[masks, 4] with a sequence for each image: rois with a mask")
    .out("RoiHasMaskInt32", "[masks, 1] int32: their indices among the rois of the image")
    .out("MaskInt32", "[masks, num_classes * resolution * resolution] int32: 1 inside, 0 outside, -1 in other classes")
    .required_attr("num_classes", AttrType::kInt, "number of classes, including the background")
    .required_attr("resolution", AttrType::kInt, "rows and columns of a mask")
    .effects(kDynamic)
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .dtype_of_input("ImInfo")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [masks = std::make_shared<Masks<T>>(op)](KernelContext& c) { masks->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::generate_mask_labels_op
