// How losses declare their kernels for devices, beside launch.h. Labels that are not allowed count as ignored there.
#pragma once
#include "base/error.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"

namespace anabranch::device {

// Kernels of one stem for each type that a label may have: "<stem>/<x>/<label>". Distributions are of X's type.
class ByLabel {
 public:
  template <class T> static ByLabel of(const std::string& stem, bool soft) {
    const auto kernel = [&](const char* label) { return device_kernel(stem + "/" + type_name<T> + "/" + label); };
    if (soft) return {dtype_of<T>, kernel(type_name<T>), nullptr};
    return {DType::kInt64, kernel(type_name<int64_t>), kernel(type_name<int32_t>)};
  }
  ab_kernel operator()(const Tensor& label) const {
    if (label.dtype() == first_) return of_first_;
    AB_CHECK(of_int32_ && label.dtype() == DType::kInt32, InvalidArgument, "Label is of {}", dtype_name(label.dtype()));
    return of_int32_;
  }

 private:
  ByLabel(DType first, ab_kernel of_first, ab_kernel of_int32)
      : first_(first), of_first_(of_first), of_int32_(of_int32) {}
  DType first_;
  ab_kernel of_first_, of_int32_;
};

// The classes of `axis` (ClassAxis of nn/softmax_block.h) and labels.
template <class Axis> ClassArgs classes_of(const Axis& axis, const Tensor& label, int64_t ignored) {
  ClassArgs a{};
  a.label = operand(label);
  a.outer = axis.outer;
  a.classes = axis.classes;
  a.inner = axis.inner;
  a.ignored = ignored;
  return a;
}

// y = f(x, label), element by element, by the kernel of this stem; with a gradient of y: x's.
template <class T> class ElementLoss {
 public:
  ElementLoss(const std::string& stem, In x, In label, In dy, Out y, double number, bool counts = false)
      : kernel_(kernel_of<T>(stem)), x_(x), label_(label), dy_(dy), y_(y), number_(number), counts_(counts) {}
  void operator()(KernelContext& c) const {
    LossArgs a{};
    a.x = operand(c[x_]);
    a.label = operand(c[label_]);
    if (dy_) a.dy = operand(c[dy_]);
    a.y = operand(c[y_]);
    a.n = c[x_].numel();
    a.p[0] = number_;
    a.flags = counts_ ? 1 : 0;
    DeviceContext::of(c).launch(kernel_, a);
  }

 private:
  ab_kernel kernel_;
  In x_, label_, dy_;
  Out y_;
  double number_;
  bool counts_;
};

}  // namespace anabranch::device
