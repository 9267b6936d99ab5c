#include <algorithm>
#include <memory>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "ops/device/args_fold.h"
#include "ops/device/launch_index.h"
#include "ops/kernels/ids.h"
#include "ops/kernels/wide.h"

namespace anabranch::metric::accuracy_op {
namespace {

void infer_accuracy(InferContext& c) {
  check_rank(c, "Indices", 2, 2);
  check_rank(c, "Label", 1, 2);
  check_same_shape(c, "Out", "Indices");
  const Shape &indices = c.in("Indices").shape, &label = c.in("Label").shape;
  AB_CHECK(label.rank() == 1 || label[1] == 1 || label[1] == kUnknown, InvalidArgument,
           "Label must be [samples, 1], got {}", label.str());
  AB_CHECK(indices[0] == label[0] || indices[0] < 0 || label[0] < 0, ShapeMismatch,
           "Indices and Label must have the same first extent, got {} and {}", indices.str(), label.str());
  c.set_out("Accuracy", Shape{1}, DType::kFloat32);
  c.set_out("Correct", Shape{1}, DType::kInt32);
  c.set_out("Total", Shape{1}, DType::kInt32);
}

AB_OP(accuracy)
    .doc("Accuracy = Correct / Total, the fraction of samples whose label is among their first k classes.")
    .in("Out", "[samples, k]: the k largest values")
    .in("Indices", "[samples, k] int64: their classes")
    .in("Label", "[samples, 1] int64")
    .out("Accuracy", "[1] float32; 0 without samples")
    .out("Correct", "[1] int32")
    .out("Total", "[1] int32")
    .infer(infer_accuracy)
    .no_grad("counts do not change with small changes of the values")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In indices = op.in("Indices"), label = op.in("Label");
      const Out accuracy = op.out("Accuracy"), correct = op.out("Correct"), total = op.out("Total");
      const auto scratch = std::make_shared<std::pair<Tensor, Tensor>>();
      return [=](KernelContext& c) {
        const int64_t n = c[indices].shape()[0], k = c[indices].shape()[1];
        const int64_t* found = as_int64(c[indices], &scratch->first);
        const int64_t* labels = as_int64(c[label], &scratch->second);
        int32_t hits = 0;
        in_wide_vectors([=, &hits] {
          for (int64_t i = 0; i < n; ++i) {
            constexpr int64_t kAtOnce = 32;
            const int64_t *row = found + i * k, sought = labels[i];
            int64_t hit = 0;
            for (int64_t from = 0; from < k && !hit; from += kAtOnce) {
              const int64_t to = std::min(k, from + kAtOnce);
              for (int64_t j = from; j < to; ++j) hit |= row[j] == sought;
            }
            hits += static_cast<int32_t>(hit);
          }
        });
        const auto set = [&](Out out, auto value) {
          if (c.needs(out)) *c[out].mutable_data<decltype(value)>() = value;
        };
        set(accuracy, n ? static_cast<float>(hits) / static_cast<float>(n) : 0.0f);
        set(correct, hits);
        set(total, static_cast<int32_t>(n));
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [of32 = device::KernelOfIds("accuracy/i32"), of64 = device::KernelOfIds("accuracy/i64"),
              indices = op.in("Indices"), label = op.in("Label"), accuracy = op.out("Accuracy"),
              correct = op.out("Correct"), total = op.out("Total")](const DeviceContext& c) {
        for (const Tensor* t : {&c[indices], &c[label]}) {
          AB_CHECK(t->dtype() == DType::kInt32 || t->dtype() == DType::kInt64, InvalidArgument,
                   "Indices and Label must hold int32 or int64, got {}", dtype_name(t->dtype()));
        }
        device::AccuracyArgs a{};
        a.indices = device::operand(c[indices]);
        a.label = device::operand(c[label]);
        if (c.needs(accuracy)) a.accuracy = device::operand(c[accuracy]);
        if (c.needs(correct)) a.correct = device::operand(c[correct]);
        if (c.needs(total)) a.total = device::operand(c[total]);
        a.samples = c[indices].shape()[0], a.k = c[indices].shape()[1];
        c.launch((c[indices].dtype() == DType::kInt32 ? of32 : of64).of(c[label]), a);
      };
    });

}  // namespace
}  // namespace anabranch::metric::accuracy_op
