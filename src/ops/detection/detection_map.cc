// Mean average precision: compares the detections of each class, by descending score, with the true boxes.
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/average_precision.h"
#include "ops/detection/rois.h"

namespace anabranch::detection::detection_map_op {
namespace {

void infer(InferContext& c) {
  check_rank(c, "DetectRes", 2, 2);
  check_rank(c, "Label", 2, 2);
  check_shape(c, "DetectRes", {kUnknown, 6});
  const Shape& label = c.in("Label").shape;
  AB_CHECK(label[1] == kUnknown || label[1] == 5 || label[1] == 6, ShapeMismatch,
           "Label must have 5 or 6 columns, got {}", label.str());
  const int32_t classes = c.attr<int32_t>("class_num");
  AB_CHECK(classes > 0, InvalidArgument, "class_num must be above 0, got {}", classes);
  const DType dtype = c.in("DetectRes").dtype;
  if (c.runtime()) {
    check_same_dtype(c, "Label", "DetectRes");
    const Meta& m = c.in("Label");
    AB_CHECK(m.lod && !m.lod->empty(), InvalidArgument, "Label must have a sequence for each image; feed a LoDTensor");
    for (const char* slot : {"Label", "DetectRes"}) {
      check_sequence_each(c, slot, static_cast<int64_t>(m.lod->back().size()) - 1);
    }
  }
  c.set_out("AccumPosCount", {c.runtime() ? classes : kUnknown, 1}, DType::kInt32);
  for (const char* slot : {"AccumTruePos", "AccumFalsePos"}) c.set_out(slot, {c.runtime() ? 0 : kUnknown, 2}, dtype);
  c.set_out("MAP", Shape{1}, dtype);
}

// State from earlier batches.
template <class T> void add_state(const Tensor& counts, const Tensor& right, const Tensor& wrong, Counts<T>* to) {
  const auto classes = static_cast<int64_t>(to->boxes.size());
  AB_CHECK(counts.numel() == classes, ShapeMismatch, "PosCount must have one number for each of the {} classes, got {}",
           classes, counts.shape().str());
  for (const Tensor* t : {&right, &wrong}) {
    const bool fits = !t->lod().empty() && static_cast<int64_t>(t->lod().back().size()) == classes + 1 &&
                      t->lod().back() == right.lod().back() && t->lod().back().back() <= t->rows() &&
                      t->row_elems() == 2;
    AB_CHECK(fits, InvalidArgument,
             "TruePos and FalsePos must be [rows, 2] with a sequence for each of the {} classes, got {}", classes,
             t->shape().str());
  }
  for (int64_t k = 0; k < classes; ++k) {
    const auto at = static_cast<size_t>(k);
    to->boxes[at] += counts.data<int32_t>()[k];
    for (int64_t r = right.lod().back()[at]; r < right.lod().back()[at + 1]; ++r) {
      const T* row = right.data<T>() + 2 * r;
      to->found[at].push_back({row[0], row[1] > T(0.5), wrong.data<T>()[2 * r + 1] > T(0.5)});
    }
  }
}

// Rows [score, 0 or 1], by class.
template <class T> void write_judged(const Counts<T>& counts, bool right, Tensor* out) {
  std::vector<int64_t> ends(1, 0);
  for (const auto& list : counts.found) ends.push_back(ends.back() + static_cast<int64_t>(list.size()));
  out->resize({ends.back(), 2}, dtype_of<T>);
  T* to = out->mutable_data<T>();
  for (const auto& list : counts.found) {
    for (const Judged<T>& d : list) {
      *to++ = d.score;
      *to++ = (right ? d.right : d.wrong) ? T(1) : T(0);
    }
  }
  out->set_lod(std::make_shared<const LoD>(LoD{std::move(ends)}));
}

template <class T> struct Metric {
  In detections, labels, has_state, pos_count, true_pos, false_pos;
  Out accum_count, accum_true, accum_false, map;
  Judge<T> judge;
  bool eleven;
  Counts<T> counts;

  explicit Metric(const KernelArgs& op)
      : detections(op.in("DetectRes")),
        labels(op.in("Label")),
        has_state(op.in("HasState")),
        pos_count(op.in("PosCount")),
        true_pos(op.in("TruePos")),
        false_pos(op.in("FalsePos")),
        accum_count(op.out("AccumPosCount")),
        accum_true(op.out("AccumTruePos")),
        accum_false(op.out("AccumFalsePos")),
        map(op.out("MAP")),
        judge(op),
        eleven(op.attr<std::string>("ap_type") == "11point") {}

  void run(KernelContext& c) {
    judge.begin(&counts);
    if (goes_on(c)) add_state(c[pos_count], c[true_pos], c[false_pos], &counts);
    const auto &found = c[detections].lod().back(), &truths = c[labels].lod().back();
    const int64_t width = c[labels].shape()[1];
    for (size_t n = 0; n + 1 < truths.size(); ++n) {
      judge.add({c[detections].data<T>() + 6 * found[n], c[labels].data<T>() + width * truths[n],
                 found[n + 1] - found[n], truths[n + 1] - truths[n], width},
                &counts);
    }
    if (c.needs(accum_count)) {
      c[accum_count].resize({static_cast<int64_t>(counts.boxes.size()), 1}, DType::kInt32);
      std::copy(counts.boxes.begin(), counts.boxes.end(), c[accum_count].mutable_data<int32_t>());
    }
    if (c.needs(accum_true)) write_judged(counts, true, &c[accum_true]);
    if (c.needs(accum_false)) write_judged(counts, false, &c[accum_false]);
    if (c.needs(map)) *c[map].mutable_data<T>() = mean_average(counts, eleven);
  }

  // Whether the op has state and HasState enables it.
  bool goes_on(const KernelContext& c) const {
    if (!has_state) return false;
    AB_CHECK(c.value(has_state).initialized() && c[has_state].numel() > 0, InvalidArgument,
             "HasState must hold a number, got nothing");
    if (*c[has_state].data<int32_t>() == 0) return false;
    for (const auto& [slot, in] : {std::pair("PosCount", pos_count), {"TruePos", true_pos}, {"FalsePos", false_pos}}) {
      AB_CHECK(in && c.value(in).initialized(), InvalidArgument, "{} must hold state, since HasState is not 0", slot);
    }
    return true;
  }
};

AB_OP(detection_map)
    .doc(
        "MAP = the mean average precision over classes with a true box. By descending score, a detection is right if "
        "it overlaps a true box of its class by more than overlap_threshold and is the first to find the one that it "
        "overlaps most.")
    .source("Everingham et al., The Pascal visual object classes challenge, IJCV 2010, doi:10.1007/s11263-009-0275-4")
    .in("DetectRes", "[M, 6] float: class, score, box as fractions of the image, with a sequence for each image")
    .in("Label", "[N, 6] like DetectRes: class, difficult, box, or [N, 5] without `difficult`; sequences likewise")
    .in_optional("HasState", "[1] int32: not 0 to continue from the next three inputs")
    .in_optional("PosCount", "[class_num, 1] int32: AccumPosCount of earlier batches")
    .in_optional("TruePos", "[rows, 2] like DetectRes: AccumTruePos of earlier batches")
    .in_optional("FalsePos", "[rows, 2] like DetectRes: AccumFalsePos of earlier batches")
    .out("AccumPosCount", "[class_num, 1] int32: number of true boxes of each class")
    .out("AccumTruePos", "[rows, 2]: score and 1 if right, of all detections, with a sequence for each class")
    .out("AccumFalsePos", "[rows, 2]: score and 1 if wrong")
    .out("MAP", "[1]")
    .required_attr("class_num", AttrType::kInt, "number of classes, including the background")
    .attr<int32_t>("background_label", 0, "ignored: classes without a true box do not count")
    .attr<float>("overlap_threshold", 0.5f, "smallest overlap that matches")
    .attr<bool>("evaluate_difficult", true, "false: ignores difficult boxes and their detections")
    .attr<std::string>("ap_type", "integral", "integral or 11point", one_of("ap_type", {"integral", "11point"}))
    .effects(kDynamic | kMaybeUnset)
    .infer(infer)
    .no_grad("a count of detections is piecewise constant")
    .dtype_of_input("DetectRes")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [metric = std::make_shared<Metric<T>>(op)](KernelContext& c) { metric->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::detection_map_op
