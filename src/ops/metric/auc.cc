#include <algorithm>
#include <memory>
#include <vector>

#include "base/flags.h"
#include "opdef/op_def.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"

namespace anabranch::metric::auc_op {
namespace {

// Histograms of predictions. slide_steps 0: one histogram of all steps. Otherwise a ring of slide_steps histograms,
// followed by their sum and the number of steps, which gives the position in the ring.
struct Layout {
  int64_t buckets, steps;
  int64_t sum_at() const { return steps * buckets; }
  int64_t count_at() const { return (steps + 1) * buckets; }
  int64_t size() const { return steps ? count_at() + 1 : buckets; }
  // Fluid's layer allocates the single histogram with a spare element, its operator does not use it.
  bool takes(int64_t n) const { return n == size() || (steps == 0 && n == buckets + 1); }
  Shape shape() const { return steps ? Shape{size()} : Shape{1, buckets}; }
};

Layout layout_of(const ir::Op& op) {
  return {op.attr<int32_t>("num_thresholds") + int64_t{1}, op.attr<int32_t>("slide_steps")};
}

// The dtypes of histograms. A script that clears them may set them to another dtype than that of the counts; they keep
// it, and the numbers are counted in `integers` and given back.
constexpr DType kDtypes[] = {DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kInt32};

void infer_auc(InferContext& c) {
  check_rank(c, "Predict", 2, 2);
  const Shape& predict = c.in("Predict").shape;
  AB_CHECK(predict[1] != 0, InvalidArgument, "Predict must have at least one column, got {}", predict.str());
  AB_CHECK(predict[1] <= 2, InvalidArgument, "Predict must have one or two columns, got {}", predict.str());
  check_number_per_row(c, "Label", predict[0]);
  const Layout layout = layout_of(c.op());
  for (const char* slot : {"StatPos", "StatNeg"}) {
    const Shape& stat = c.in(slot).shape;
    AB_CHECK(stat.numel() < 0 || layout.takes(stat.numel()), ShapeMismatch, "{0} must have {2} elements, got {1}", slot,
             stat.str(), layout.size());
    const DType dtype = c.in(slot).dtype;
    AB_CHECK(std::find(std::begin(kDtypes), std::end(kDtypes), dtype) != std::end(kDtypes), InvalidArgument,
             "{} must hold int64, float32, float64 or int32, got {}", slot, dtype_name(dtype));
    c.set_out(std::string(slot) + "Out", layout.shape(), dtype);
  }
  c.set_out("AUC", Shape{1}, DType::kFloat64);
}

// Subtracts the oldest histogram of the ring from the sum and clears its slot; returns the slot.
int64_t advance(const Layout& l, int64_t* stat) {
  int64_t& count = stat[l.count_at()];
  const int64_t place = (count < 0 ? 0 : count) % l.steps * l.buckets;
  for (int64_t i = 0; i < l.buckets; ++i) stat[l.sum_at() + i] -= stat[place + i];
  std::fill(stat + place, stat + place + l.buckets, 0);
  ++count;
  return place;
}

template <class T>
void count_samples(const Layout& l, const Tensor& predict, const int64_t* label, int64_t* pos, int64_t* neg) {
  const int64_t n = predict.shape()[0], width = predict.shape()[1];
  const T* p = predict.data<T>();
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(p[i * width + width - 1]);
    AB_CHECK(value >= 0 && value <= 1, InvalidArgument, "Predict of sample {} must be from 0 to 1, got {}", i, value);
    const auto bucket = static_cast<int64_t>(value * static_cast<double>(l.buckets - 1));
    if (label[i] > 0) {
      ++pos[bucket];
    } else if (label[i] == 0) {
      ++neg[bucket];
    }
  }
}

// Trapezoids under the curve of true over false positives, by descending threshold.
double roc_area(const int64_t* pos, const int64_t* neg, int64_t buckets) {
  double sum = 0, all_pos = 0, all_neg = 0;
  for (int64_t i = buckets - 1; i >= 0; --i) {
    const double before_pos = all_pos, before_neg = all_neg;
    all_pos += static_cast<double>(pos[i]);
    all_neg += static_cast<double>(neg[i]);
    sum += (all_neg - before_neg) * (all_pos + before_pos) / 2;
  }
  return all_pos > 0 && all_neg > 0 ? sum / all_pos / all_neg : 0.0;
}

// Trapezoids under the curve of precision over recall, by descending threshold. It starts at recall 0 with the
// precision of the first threshold that has samples.
double pr_area(const int64_t* pos, const int64_t* neg, int64_t buckets) {
  double sum = 0, all_pos = 0, all_neg = 0, precision = -1;
  for (int64_t i = buckets - 1; i >= 0; --i) {
    if (pos[i] == 0 && neg[i] == 0) continue;
    const auto gained = static_cast<double>(pos[i]);
    all_pos += gained;
    all_neg += static_cast<double>(neg[i]);
    const double before = precision < 0 ? all_pos / (all_pos + all_neg) : precision;
    precision = all_pos / (all_pos + all_neg);
    sum += gained * (before + precision) / 2;
  }
  return all_pos > 0 && all_neg > 0 ? sum / all_pos : 0.0;
}

// Fluid 1.8.5 accepts the curve PR, and computes ROC.
auto area_of(const ir::Op& op) {
  return op.attr<std::string>("curve") == "PR" && !Flags::exact_fluid() ? pr_area : roc_area;
}

// Histograms that a step works on.
struct Histograms {
  In in;
  Out out;
  std::vector<int64_t> integers;

  int64_t* carried_over(KernelContext& c) {
    const Tensor& from = c[in];
    const int64_t n = c[out].numel();
    if (from.dtype() != DType::kInt64) {
      visit_dtype(from.dtype(), [&]<class T>(TypeTag<T>) {
        const T* numbers = from.data<T>();
        integers.assign(numbers, numbers + n);
      });
      return integers.data();
    }
    int64_t* to = c[out].mutable_data<int64_t>();
    const int64_t* counts = from.data<int64_t>();
    if (to != counts) std::copy(counts, counts + n, to);
    return to;
  }
  void give_back(KernelContext& c) const {
    if (c[out].dtype() == DType::kInt64) return;
    visit_dtype(c[out].dtype(), [&]<class T>(TypeTag<T>) {
      std::transform(integers.begin(), integers.end(), c[out].mutable_data<T>(),
                     [](int64_t v) { return static_cast<T>(v); });
    });
  }
};

AB_OP(auc)
    .doc(
        "AUC = the area under a curve of binary predictions, ROC or precision over recall (PR), from histograms with "
        "num_thresholds + 1 buckets over all steps (slide_steps 0) or the last slide_steps.")
    .in("Predict", "[samples, columns] float in [0, 1]; only the last column is used")
    .in("Label", "[samples, 1] int64: 0 negative, above 0 positive, below 0 ignored")
    .in("StatPos", "int64 histograms of the positive samples")
    .in("StatNeg", "int64 histograms of the negative samples")
    .out("AUC", "[1] float64; 0 until both kinds of labels have been seen")
    .out("StatPosOut", "StatPos, updated in place")
    .out("StatNegOut", "StatNeg, updated in place")
    .attr<std::string>("curve", "ROC", "ROC or PR", one_of("curve", {"ROC", "PR"}))
    .attr<int32_t>("num_thresholds", 4095, "number of buckets minus one",
                   [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "num_thresholds must be at least 1, got {}", v); })
    .attr<int32_t>("slide_steps", 1, "number of steps in the window; 0: all",
                   [](int32_t v) { AB_CHECK(v >= 0, InvalidArgument, "slide_steps must be at least 0, got {}", v); })
    .merges([](const ir::Op& op) {  // windows cannot be merged by addition
      return op.attr<int32_t>("slide_steps") > 0 ? StateMerge::kFirst : StateMerge::kSum;
    })
    .infer(infer_auc)
    .no_grad("counts do not change with small changes of the values")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In predict = op.in("Predict"), label = op.in("Label");
      const Out auc = op.out("AUC");
      const auto pos = std::make_shared<Histograms>(Histograms{op.in("StatPos"), op.out("StatPosOut"), {}});
      const auto neg = std::make_shared<Histograms>(Histograms{op.in("StatNeg"), op.out("StatNegOut"), {}});
      const Layout l = layout_of(op.op());
      const auto area = area_of(op.op());
      const auto scratch = std::make_shared<Tensor>();
      return [=](KernelContext& c) {
        int64_t *p = pos->carried_over(c), *n = neg->carried_over(c);
        const int64_t* labels = as_int64(c[label], scratch.get());
        if (l.steps == 0) {
          count_samples<T>(l, c[predict], labels, p, n);
        } else {
          int64_t *p_now = p + advance(l, p), *n_now = n + advance(l, n);
          count_samples<T>(l, c[predict], labels, p_now, n_now);
          p += l.sum_at();
          n += l.sum_at();
          for (int64_t i = 0; i < l.buckets; ++i) {
            p[i] += p_now[i];
            n[i] += n_now[i];
          }
        }
        if (c.needs(auc)) *c[auc].mutable_data<double>() = area(p, n, l.buckets);
        pos->give_back(c);
        neg->give_back(c);
      };
    });

}  // namespace
}  // namespace anabranch::metric::auc_op
