// Batch normalization for the keys "batch_norm" and "batch_norm_grad" of library calls, by the CPU's kernels. These
// take their tensors from a context, so each call makes one of views.
#include <array>
#include <deque>

#include "ops/device/args_library.h"
#include "ops/device/library.h"
#include "ops/nn/batch_norm.h"

namespace anabranch::device::library_norm_op {
namespace {

// Tensors over foreign memory: the operands of one kernel call.
class Operands {
 public:
  explicit Operands(DType dtype) : dtype_(dtype) {}
  In in(const void* data, const Shape& shape) {
    if (!data) return {};
    ins_.push_back(view(const_cast<void*>(data), shape));
    return {static_cast<int>(ins_.size()) - 1, 1};
  }
  Out out(void* data, const Shape& shape) {
    outs_.push_back(data ? view(data, shape) : nullptr);
    return {static_cast<int>(outs_.size()) - 1, 1};
  }
  KernelContext context() const {
    KernelContext c;
    c.ins = ins_.data();
    c.outs = outs_.data();
    return c;
  }

 private:
  Value* view(void* data, const Shape& shape) {
    Value& value = held_.emplace_back();
    value.as<Tensor>().view(data, shape, dtype_, nullptr);
    return &value;
  }

  const DType dtype_;
  std::deque<Value> held_;
  std::vector<Value*> ins_, outs_;
};

struct Shapes {
  Shape whole, channels;
  explicit Shapes(const BatchNormDesc& d) : whole{d.outer, d.channels, d.inner}, channels{d.channels} {}
};

template <class T> void forward(const BatchNormDesc& desc, void* const* p) {
  const Shapes s(desc);
  Operands o(dtype_of<T>);
  nn::batch_norm::Forward<T> norm;
  norm.x = o.in(p[0], s.whole);
  norm.scale = o.in(p[1], s.channels);
  norm.bias = o.in(p[2], s.channels);
  norm.mean = o.in(p[3], s.channels);
  norm.variance = o.in(p[4], s.channels);
  norm.y = o.out(p[5], s.whole);
  norm.mean_out = o.out(p[6], s.channels);
  norm.variance_out = o.out(p[7], s.channels);
  norm.saved_mean = o.out(p[8], s.channels);
  norm.saved_variance = o.out(p[9], s.channels);
  norm.fixed = desc.fixed != 0;
  norm.momentum = static_cast<float>(desc.momentum);
  norm.epsilon = static_cast<float>(desc.epsilon);
  KernelContext c = o.context();
  norm(c);
}

template <class T> void backward(const BatchNormDesc& desc, void* const* p) {
  const Shapes s(desc);
  Operands o(dtype_of<T>);
  nn::batch_norm::Backward<T> norm;
  norm.x = o.in(p[0], s.whole);
  norm.scale = o.in(p[1], s.channels);
  norm.dy = o.in(p[2], s.whole);
  norm.saved_mean = o.in(p[3], s.channels);
  norm.saved_variance = o.in(p[4], s.channels);
  norm.mean = o.in(p[5], s.channels);
  norm.variance = o.in(p[6], s.channels);
  norm.dx = o.out(p[7], s.whole);
  norm.dscale = o.out(p[8], s.channels);
  norm.dbias = o.out(p[9], s.channels);
  norm.fixed = desc.fixed != 0;
  norm.epsilon = static_cast<float>(desc.epsilon);
  KernelContext c = o.context();
  norm(c);
}

void batch_norm(const void* at, void* const* p, int) {
  const auto& desc = *static_cast<const BatchNormDesc*>(at);
  const int64_t whole = desc.outer * desc.channels * desc.inner;
  std::array<Narrow, 10> operands;
  operands[0] = {whole};
  operands[5] = {whole, true};
  with_operands("batch_norm", desc.dtype, p, operands,
                [&](auto tag, void* const* wide) { forward<typename decltype(tag)::type>(desc, wide); });
}

void batch_norm_grad(const void* at, void* const* p, int) {
  const auto& desc = *static_cast<const BatchNormDesc*>(at);
  const int64_t whole = desc.outer * desc.channels * desc.inner;
  std::array<Narrow, 10> operands;
  operands[0] = operands[2] = {whole};
  operands[7] = {whole, true};
  with_operands("batch_norm_grad", desc.dtype, p, operands,
                [&](auto tag, void* const* wide) { backward<typename decltype(tag)::type>(desc, wide); });
}

[[maybe_unused]] const bool offered = offer_library("batch_norm", {sizeof(BatchNormDesc), batch_norm}) &&
                                      offer_library("batch_norm_grad", {sizeof(BatchNormDesc), batch_norm_grad});

}  // namespace
}  // namespace anabranch::device::library_norm_op
