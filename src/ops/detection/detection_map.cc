// Mean average precision: detections of each class, by falling score, against the true boxes.
#include <cmath>
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/nms.h"
#include "ops/detection/rois.h"

namespace anabranch::detection {
namespace {

void infer(InferContext& c) {
  check_tensor(c, "DetectRes");
  check_tensor(c, "Label");
  check_rank(c, "DetectRes", 2, 2);
  check_rank(c, "Label", 2, 2);
  check_shape(c, "DetectRes", {kUnknown, 6});
  const Shape& label = c.in("Label").shape;
  AB_CHECK(label[1] == kUnknown || label[1] == 5 || label[1] == 6, ShapeMismatch, "Label must have 5 or 6 columns, got {}",
           label.str());
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

// A detection of a class: whether it is the first one that finds a true box.
template <class T> struct Judged {
  T score;
  bool right, wrong;
};

template <class T> struct Counts {
  std::vector<int32_t> boxes;                // true ones, of each class
  std::vector<std::vector<Judged<T>>> found;  // of each class, in the order in which they came
};

// One image.
template <class T> struct Scene {
  const T *detections, *labels;
  int64_t found, truths, width;  // width of a label: 6 with `difficult` behind the class, 5 without
  int64_t label(int64_t t) const { return static_cast<int64_t>(labels[t * width]); }
  bool difficult(int64_t t) const { return width == 6 && std::abs(labels[t * width + 1]) >= static_cast<T>(1e-6); }
  const T* box(int64_t t) const { return labels + t * width + width - 4; }
};

template <class T> class Judge {
 public:
  explicit Judge(const KernelArgs& op)
      : classes_(op.attr<int32_t>("class_num")),
        threshold_(static_cast<T>(op.attr<float>("overlap_threshold"))),
        difficult_(op.attr<bool>("evaluate_difficult")) {}

  void begin(Counts<T>* counts) const {
    counts->boxes.assign(static_cast<size_t>(classes_), 0);
    counts->found.resize(static_cast<size_t>(classes_));
    for (auto& list : counts->found) list.clear();
  }

  void add(const Scene<T>& scene, Counts<T>* counts) {
    seen_.assign(static_cast<size_t>(scene.truths), false);
    for (int64_t t = 0; t < scene.truths; ++t) {
      const size_t k = class_of(scene.labels[t * scene.width], "Label");
      if (difficult_ || !scene.difficult(t)) ++counts->boxes[k];
    }
    order_.clear();
    for (int64_t d = 0; d < scene.found; ++d) {
      class_of(scene.detections[6 * d], "DetectRes");
      const T score = scene.detections[6 * d + 1];
      AB_CHECK(!std::isnan(score), InvalidArgument, "the scores of DetectRes must be numbers, got {} in row {}", score, d);
      order_.push_back({score, static_cast<int32_t>(d)});
    }
    std::sort(order_.begin(), order_.end());
    for (const auto& d : order_) {
      const T* row = scene.detections + 6 * int64_t{d.box};
      const Judged<T> judged = judge(scene, row);
      if (judged.right || judged.wrong) counts->found[static_cast<size_t>(row[0])].push_back(judged);
    }
  }

 private:
  size_t class_of(T label, const char* slot) const {
    AB_CHECK(label >= 0 && label < static_cast<T>(classes_), InvalidArgument, "the classes of {} must be from 0 to {}, got {}",
             slot, classes_ - 1, label);
    return static_cast<size_t>(label);
  }

  // A true box belongs to the first detection that is nearest to it. Neither right nor wrong is one that finds a
  // difficult box where these do not count.
  Judged<T> judge(const Scene<T>& scene, const T* row) {
    T box[4];
    for (int64_t k = 0; k < 4; ++k) box[k] = std::clamp(row[2 + k], T(0), T(1));
    T most = -1;
    int64_t best = -1;
    for (int64_t t = 0; t < scene.truths; ++t) {
      if (scene.label(t) != static_cast<int64_t>(row[0])) continue;
      const T near = box_overlap(box, scene.box(t), T(0));
      if (near > most) {
        most = near;
        best = t;
      }
    }
    if (best < 0 || !(most > threshold_)) return {row[1], false, true};
    if (!difficult_ && scene.difficult(best)) return {row[1], false, false};
    const bool first = !seen_[static_cast<size_t>(best)];
    seen_[static_cast<size_t>(best)] = true;
    return {row[1], first, !first};
  }

  int64_t classes_;
  T threshold_;
  bool difficult_;
  std::vector<bool> seen_;
  std::vector<Detection<T>> order_;
};

// Precision over recall of one class, as the area under the steps, or the mean of the best ones from 11 recalls on.
template <class T> T average(std::vector<Judged<T>> found, int32_t boxes, bool eleven) {
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  T right = 0, all = 0, area = 0, before = 0;
  T best[11] = {};
  for (const auto& d : found) {
    right += d.right ? T(1) : T(0);
    ++all;
    const T precision = right / all, recall = right / static_cast<T>(boxes);
    if (std::abs(recall - before) > static_cast<T>(1e-6)) {
      area += precision * (recall - before);
      before = recall;
    }
    for (int k = 0; k <= 10; ++k) {
      if (static_cast<double>(recall) >= k / 10.0) best[k] = std::max(best[k], precision);
    }
  }
  if (!eleven) return area;
  T sum = 0;
  for (T p : best) sum += p;
  return sum / 11;
}

// Of the classes that have a true box.
template <class T> T mean_average(const Counts<T>& counts, bool eleven) {
  T sum = 0;
  int64_t classes = 0;
  for (size_t k = 0; k < counts.boxes.size(); ++k) {
    if (counts.boxes[k] <= 0) continue;
    sum += average(counts.found[k], counts.boxes[k], eleven);
    ++classes;
  }
  return classes ? sum / static_cast<T>(classes) : T(0);
}

// What earlier batches gave.
template <class T> void add_state(const Tensor& counts, const Tensor& right, const Tensor& wrong, Counts<T>* to) {
  const auto classes = static_cast<int64_t>(to->boxes.size());
  AB_CHECK(counts.numel() == classes, ShapeMismatch, "PosCount must have a number for each of the {} classes, got {}",
           classes, counts.shape().str());
  for (const Tensor* t : {&right, &wrong}) {
    const bool fits = !t->lod().empty() && static_cast<int64_t>(t->lod().back().size()) == classes + 1 &&
                      t->lod().back() == right.lod().back() && t->lod().back().back() <= t->rows() && t->row_elems() == 2;
    AB_CHECK(fits, InvalidArgument, "TruePos and FalsePos must be [rows, 2] with a sequence for each of the {} classes, got {}",
             classes, t->shape().str());
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
      judge.add({c[detections].template data<T>() + 6 * found[n], c[labels].template data<T>() + width * truths[n],
                 found[n + 1] - found[n], truths[n + 1] - truths[n], width},
                &counts);
    }
    if (c.wants(accum_count)) {
      c[accum_count].resize({static_cast<int64_t>(counts.boxes.size()), 1}, DType::kInt32);
      std::copy(counts.boxes.begin(), counts.boxes.end(), c[accum_count].template mutable_data<int32_t>());
    }
    if (c.wants(accum_true)) write_judged(counts, true, &c[accum_true]);
    if (c.wants(accum_false)) write_judged(counts, false, &c[accum_false]);
    if (c.wants(map)) *c[map].template mutable_data<T>() = mean_average(counts, eleven);
  }

  // Whether there is state, and it counts.
  bool goes_on(const KernelContext& c) const {
    if (!has_state) return false;
    AB_CHECK(c.value(has_state).initialized() && c[has_state].numel() > 0, InvalidArgument,
             "HasState must hold a number, got nothing");
    if (*c[has_state].template data<int32_t>() == 0) return false;
    for (const auto& [slot, in] : {std::pair("PosCount", pos_count), {"TruePos", true_pos}, {"FalsePos", false_pos}}) {
      AB_CHECK(in && c.value(in).initialized(), InvalidArgument, "{} must hold state, since HasState is not 0", slot);
    }
    return true;
  }
};

AB_OP(detection_map)
    .doc(
        "MAP = the mean over classes with a true box of their average precision: by falling score a detection is right "
        "when the true box of its class that it overlaps most, by more than overlap_threshold, was not found before.")
    .source("Everingham et al., The Pascal visual object classes challenge, IJCV 2010, doi:10.1007/s11263-009-0275-4")
    .in("DetectRes", "[M, 6] float: class, score, box in parts of the image, with a sequence for each image")
    .in("Label", "[N, 6] as DetectRes: class, difficult, box, or [N, 5] without `difficult`; sequences likewise")
    .in_optional("HasState", "[1] int32: not 0 where the next three are to be gone on with")
    .in_optional("PosCount", "[class_num, 1] int32: AccumPosCount of the batches before")
    .in_optional("TruePos", "[rows, 2] as DetectRes: AccumTruePos of the batches before")
    .in_optional("FalsePos", "[rows, 2] as DetectRes: AccumFalsePos of the batches before")
    .out("AccumPosCount", "[class_num, 1] int32: true boxes of each class")
    .out("AccumTruePos", "[rows, 2]: score, 1 for right; of all detections, with a sequence for each class")
    .out("AccumFalsePos", "[rows, 2]: score, 1 for wrong")
    .out("MAP", "[1]")
    .required_attr("class_num", AttrType::kInt, "classes, the background among them")
    .attr<int32_t>("background_label", 0, "accepted without effect: classes without a true box do not count")
    .attr<float>("overlap_threshold", 0.5f, "a smaller overlap is none")
    .attr<bool>("evaluate_difficult", true, "false: difficult boxes, and what finds them, do not count")
    .attr<std::string>("ap_type", "integral", "integral or 11point", one_of("ap_type", {"integral", "11point"}))
    .effects(kDynamic | kMaybeUnset)
    .infer(infer)
    .no_grad("a count of detections is piecewise constant")
    .dtype_of_input("DetectRes")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [metric = std::make_shared<Metric<T>>(op)](KernelContext& c) { metric->run(c); };
    });

}  // namespace
}  // namespace anabranch::detection
