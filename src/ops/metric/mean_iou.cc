#include <algorithm>
#include <array>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/kernels/ids.h"

namespace anabranch::metric::mean_iou_op {
namespace {

constexpr const char* kCounts[] = {"InWrongs", "InCorrects"};

void infer_mean_iou(InferContext& c) {
  const int64_t classes = c.attr<int32_t>("num_classes");
  check_same_shape(c, "Predictions", "Labels");
  for (const char* slot : {"Predictions", "Labels"}) check_ids_dtype(c, slot);
  for (const char* slot : kCounts) {
    for (int i = 0; i < c.n_in(slot); ++i) {
      AB_CHECK(compatible(c.in(slot, i).shape, Shape{classes}) && c.in(slot, i).dtype == DType::kInt32, ShapeMismatch,
               "{0}[{1}] must be [{4}] of int32, got {2} of {3}", slot, i, c.in(slot, i).shape.str(),
               dtype_name(c.in(slot, i).dtype), classes);
    }
  }
  for (int i = 0; i < c.n_in("InMeanIou"); ++i) {
    AB_CHECK(compatible(c.in("InMeanIou", i).shape, Shape{1}) && c.in("InMeanIou", i).dtype == DType::kFloat32,
             ShapeMismatch, "InMeanIou[{}] must be [1] of float32, got {}", i, c.in("InMeanIou", i).shape.str());
  }
  c.set_out("OutMeanIou", Shape{1}, DType::kFloat32);
  c.set_out("OutWrong", Shape{classes}, DType::kInt32);
  c.set_out("OutCorrect", Shape{classes}, DType::kInt32);
}

// Counts wrap around.
void add(int32_t& count, int32_t more) {
  count = static_cast<int32_t>(static_cast<uint32_t>(count) + static_cast<uint32_t>(more));
}

int32_t* start(KernelContext& c, In before, Out out) {
  int32_t* to = c[out].mutable_data<int32_t>();
  std::fill(to, to + c[out].numel(), 0);
  for (int i = 0; i < before.count; ++i) {
    for (int64_t k = 0; k < c[out].numel(); ++k) add(to[k], c.at(before, i).data<int32_t>()[k]);
  }
  return to;
}

// The mean over the classes that occur.
float mean(const int32_t* wrong, const int32_t* correct, int64_t classes) {
  float sum = 0;
  int64_t present = 0;
  for (int64_t k = 0; k < classes; ++k) {
    const int64_t together = int64_t{wrong[k]} + correct[k];
    if (together == 0) continue;
    sum += static_cast<float>(correct[k]) / static_cast<float>(together);
    ++present;
  }
  return present ? sum / static_cast<float>(present) : 0.0f;
}

AB_OP(mean_iou)
    .doc(
        "OutMeanIou = the mean over the classes of correct / (correct + wrong) elements; a wrong element counts for "
        "its predicted and for its true class. A label out of range, such as 255, counts for the predicted class only.")
    .in("Predictions", "[...] int32 classes")
    .in("Labels", "like Predictions: the true classes, or a number out of range for elements without one")
    .in_optional_list("InWrongs", "[num_classes] int32 counts to add to")
    .in_optional_list("InCorrects", "[num_classes] int32 counts to add to")
    .in_optional_list("InMeanIou", "[1] float32 to add to")
    .out("OutMeanIou", "[1] float32")
    .out("OutWrong", "[num_classes] int32")
    .out("OutCorrect", "[num_classes] int32")
    .attr<int32_t>("num_classes", 2, "number of classes",
                   [](int32_t v) {
                     AB_CHECK(v >= 1 && v <= 1 << 24, InvalidArgument, "num_classes must be from 1 to 2^24, got {}", v);
                   })
    .infer(infer_mean_iou)
    .no_grad("counts do not change with small changes of the values")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const auto scratch = std::make_shared<std::array<Tensor, 2>>();
      return [=, given = op.in("Predictions"), labels = op.in("Labels"), wrongs = op.in("InWrongs"),
              corrects = op.in("InCorrects"), means = op.in("InMeanIou"), out = op.out("OutMeanIou"),
              wrong_out = op.out("OutWrong"), correct_out = op.out("OutCorrect")](KernelContext& c) {
        const int64_t classes = c[wrong_out].numel(), n = c[given].numel();
        const int64_t *p = as_int64(c[given], &(*scratch)[0]), *y = as_int64(c[labels], &(*scratch)[1]);
        check_ids("Predictions", p, n, classes);
        int32_t *wrong = start(c, wrongs, wrong_out), *correct = start(c, corrects, correct_out);
        for (int64_t i = 0; i < n; ++i) {
          if (p[i] == y[i]) {
            add(correct[p[i]], 1);
          } else {
            add(wrong[p[i]], 1);
            if (y[i] >= 0 && y[i] < classes) add(wrong[y[i]], 1);
          }
        }
        float* to = c[out].mutable_data<float>();
        *to = mean(wrong, correct, classes);
        for (int i = 0; i < means.count; ++i) *to += *c.at(means, i).data<float>();
      };
    });

}  // namespace
}  // namespace anabranch::metric::mean_iou_op
