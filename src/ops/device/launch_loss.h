// How losses declare their device kernels; see also launch.h. Invalid labels are treated as ignored there.
#pragma once
#include "base/error.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch_math.h"

namespace anabranch::device {

// Kernels of one stem for each label dtype: "<stem>/<x>/<label>". Distributions have the type of X.
class ByLabel {
 public:
  template <class T> static ByLabel of(const std::string& stem, bool soft) {
    const auto kernel = [&](const char* label) { return device_kernel(stem + "/" + type_name<T> + "/" + label); };
    if (soft) return {dtype_of<T>, kernel(type_name<T>), nullptr};
    return {DType::kInt64, kernel(type_name<int64_t>), kernel(type_name<int32_t>)};
  }
  ab_kernel operator()(const Tensor& label) const {
    if (label.dtype() == first_) return of_first_;
    AB_CHECK(of_int32_ && label.dtype() == DType::kInt32, InvalidArgument, "Label must be int32 or int64, got {}",
             dtype_name(label.dtype()));
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

// y = f(x, label), elementwise, by the kernel of this stem; with a gradient of y: that of x.
template <class T> class ElementLoss {
 public:
  using Numbers = std::array<double, kMaxNumbers>;
  ElementLoss(const std::string& stem, In x, In label, In dy, Out y, const Numbers& numbers, bool counts = false)
      : kernel_(kernel_of<T>(stem)), x_(x), label_(label), dy_(dy), y_(y), numbers_(numbers), counts_(counts) {}
  void operator()(const DeviceContext& c) const {
    LossArgs a{};
    a.x = operand(c[x_]);
    a.label = operand(c[label_]);
    if (dy_) a.dy = operand(c[dy_]);
    a.y = operand(c[y_]);
    a.n = c[x_].numel();
    std::copy(numbers_.begin(), numbers_.end(), a.p);
    a.flags = counts_ ? 1 : 0;
    c.launch(kernel_, a);
  }

 private:
  ab_kernel kernel_;
  In x_, label_, dy_;
  Out y_;
  Numbers numbers_;
  bool counts_;
};

// y = f(x) and its gradient, by map kernels that take one number.
inline void launch_map(const DeviceContext& c, ab_kernel kernel, const Tensor& x, Tensor& y, double number) {
  c.launch(kernel, MapArgs{operand(x), operand(y), x.numel(), {number}});
}
inline void launch_map_grad(const DeviceContext& c, ab_kernel kernel, const Tensor& x, const Tensor& dy, Tensor& dx,
                            double number) {
  c.launch(kernel, MapGradArgs{operand(x), {}, operand(dy), operand(dx), x.numel(), {number}});
}

// The gradients of both operands of a difference: `make` writes one to a tensor, the other is its negative.
template <class T> class BothSides {
 public:
  BothSides(Out same, Out negative) : same_(same), negative_(negative) {}
  template <class Make> void run(const DeviceContext& c, Make&& make) {
    if (!c.needs(same_) && !c.needs(negative_)) return;
    Tensor& made = c[c.needs(same_) ? same_ : negative_];
    make(made);
    if (!c.needs(negative_)) return;
    ScalarArgs a{};
    put(a, 0, -1.0);
    launch_scalar(c, scale_, a, made, c[negative_]);
  }

 private:
  Out same_, negative_;
  ab_kernel scale_ = kernel_of<T>("scalar/scale");
};

}  // namespace anabranch::device
