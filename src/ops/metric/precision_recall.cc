// Precision and recall of each class, over a batch and over all batches so far.
#include <array>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::metric::precision_recall_op {
namespace {

// Per class: weights of true positives, false positives, true negatives and false negatives.
enum Count { kTruePositive, kFalsePositive, kTrueNegative, kFalseNegative, kCounts };

void infer(InferContext& c) {
  const int64_t classes = c.attr<int32_t>("class_number");
  within<int32_t>("class_number", 1, 1 << 24)(c.attr<int32_t>("class_number"));
  check_rank(c, "MaxProbs", 2, 2);
  const Shape samples{c.in("MaxProbs").shape[0], 1};
  for (const char* slot : {"MaxProbs", "Indices", "Labels", "Weights"}) {
    if (c.has_in(slot)) check_shape(c, slot, samples);
  }
  for (const char* slot : {"Indices", "Labels"}) {
    check_dtype(c, slot, DType::kInt32);
  }
  if (c.has_in("Weights")) check_same_dtype(c, "Weights", "MaxProbs");
  const Shape states{classes, kCounts};
  if (c.has_in("StatesInfo")) {
    check_shape(c, "StatesInfo", states);
    check_same_dtype(c, "StatesInfo", "MaxProbs");
  }
  c.set_out("BatchMetrics", Shape{6}, DType::kFloat64);
  c.set_out("AccumMetrics", Shape{6}, DType::kFloat64);
  c.set_out("AccumStatesInfo", states, c.in("MaxProbs").dtype);
}

// A ratio without any samples counts as 1.
double share(double part, double rest) { return part > 0 || rest > 0 ? part / (part + rest) : 1.0; }
double f1(double precision, double recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
}

// Precision, recall and F1 as means over the classes (macro), then over all samples (micro).
template <class T> void measure(const T* states, int64_t classes, double* to) {
  std::array<double, kCounts> all{};
  double precision = 0, recall = 0;
  for (int64_t k = 0; k < classes; ++k, states += kCounts) {
    precision += share(states[kTruePositive], states[kFalsePositive]);
    recall += share(states[kTruePositive], states[kFalseNegative]);
    for (size_t i = 0; i < kCounts; ++i) all[i] += states[i];
  }
  to[0] = precision / static_cast<double>(classes);
  to[1] = recall / static_cast<double>(classes);
  to[2] = f1(to[0], to[1]);
  to[3] = share(all[kTruePositive], all[kFalsePositive]);
  to[4] = share(all[kTruePositive], all[kFalseNegative]);
  to[5] = f1(to[3], to[4]);
}

// A correct sample is a true negative of all other classes, a wrong one of all except two: counts it once for all
// classes and subtracts the exceptions.
template <class T>
void count(const int32_t* given, const int32_t* labels, const T* weights, int64_t n, int64_t classes, T* states) {
  T not_given = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (const int32_t k : {given[i], labels[i]}) {
      AB_CHECK(k >= 0 && k < classes, InvalidArgument, "classes must be from 0 to {}, got {}", classes - 1, k);
    }
    const T w = weights ? weights[i] : T{1};
    T *of_given = states + given[i] * kCounts, *of_label = states + labels[i] * kCounts;
    not_given += w;
    of_label[kTrueNegative] -= w;
    if (given[i] == labels[i]) {
      of_given[kTruePositive] += w;
    } else {
      of_given[kTrueNegative] -= w;
      of_given[kFalsePositive] += w;
      of_label[kFalseNegative] += w;
    }
  }
  for (int64_t k = 0; k < classes; ++k) states[k * kCounts + kTrueNegative] += not_given;
}

constexpr auto kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [given = op.in("Indices"), labels = op.in("Labels"), weights = op.in("Weights"), before = op.in("StatesInfo"),
          batch = op.out("BatchMetrics"), all = op.out("AccumMetrics"), states = op.out("AccumStatesInfo"),
          own = std::vector<T>()](KernelContext& c) mutable {
    const int64_t classes = c[states].rows(), n = c[states].numel();
    own.assign(static_cast<size_t>(n), T{0});
    count(c[given].data<int32_t>(), c[labels].data<int32_t>(), weights ? c[weights].data<T>() : nullptr,
          c[given].numel(), classes, own.data());
    if (c.needs(batch)) measure(own.data(), classes, c[batch].mutable_data<double>());
    T* to = c[states].mutable_data<T>();
    const T* from = before ? c[before].data<T>() : nullptr;
    for (int64_t i = 0; i < n; ++i) to[i] = own[static_cast<size_t>(i)] + (from ? from[i] : T{0});
    if (c.needs(all)) measure(to, classes, c[all].mutable_data<double>());
  };
};

AB_OP(precision_recall)
    .doc(
        "Precision, recall and F1 of a classifier: means over the classes (macro), then over all samples (micro). The "
        "ratios of a class without samples count as 1.")
    .in("MaxProbs", "[N, 1] float: only its dtype is used")
    .in("Indices", "[N, 1] int32: predicted classes")
    .in("Labels", "[N, 1] int32: true classes")
    .in_optional("Weights", "[N, 1] like MaxProbs: weights of the samples; 1 if not given")
    .in_optional("StatesInfo", "[class_number, 4] like MaxProbs: counts of earlier batches")
    .out("BatchMetrics", "[6] float64, of this batch")
    .out("AccumMetrics", "[6] float64, of all batches")
    .out("AccumStatesInfo", "[class_number, 4]: true positives, false positives, true negatives, false negatives")
    .required_attr("class_number", AttrType::kInt, "number of classes")
    .dtype_of_input("MaxProbs")
    .infer(infer)
    .no_grad("counts do not change with small changes of the values")
    .cpu<float, double>(kernel);

}  // namespace
}  // namespace anabranch::metric::precision_recall_op
