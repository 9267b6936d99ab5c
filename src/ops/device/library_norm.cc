// Batch normalization for the keys "batch_norm" and "batch_norm_grad" of library calls, by the CPU's kernels. These
// take their tensors from a context, so each call makes one of views.
#include <array>
#include <utility>

#include "ops/device/args_library.h"
#include "ops/device/library.h"
#include "ops/nn/batch_norm.h"

namespace anabranch::device::library_norm_op {
namespace {

constexpr size_t kOperands = 10;

// The first `ins` operands are inputs. Those in the bit mask `whole` are tensors, the others vectors.
struct Layout {
  const char* key;
  size_t ins;
  unsigned whole;
  bool is_whole(size_t k) const { return whole >> k & 1u; }
};

template <class T, class Norm>
void run(Norm norm, const Layout& layout, const BatchNormDesc& desc, void* const* pointers) {
  std::array<Value, kOperands> views;
  std::array<Value*, kOperands> at{};
  for (size_t k = 0; k < kOperands; ++k) {
    if (!pointers[k]) continue;
    const Shape shape = layout.is_whole(k) ? Shape{desc.outer, desc.channels, desc.inner} : Shape{desc.channels};
    views[k].as<Tensor>().view(pointers[k], shape, dtype_of<T>, nullptr);
    at[k] = &views[k];
  }
  KernelContext c;
  c.ins = at.data();
  c.outs = at.data() + layout.ins;
  norm.fixed = desc.fixed != 0;
  norm.epsilon = static_cast<float>(desc.epsilon);
  norm(c);
}

template <class Fn> void call(const Layout& layout, const BatchNormDesc& desc, void* const* pointers, const Fn& fn) {
  std::array<Narrow, kOperands> narrow;
  for (size_t k = 0; k < kOperands; ++k) {
    if (layout.is_whole(k)) narrow[k] = {desc.outer * desc.channels * desc.inner, k >= layout.ins};
  }
  with_operands(layout.key, desc.dtype, pointers, narrow, fn);
}

void batch_norm(const void* at, void* const* pointers, int) {
  static constexpr Layout kLayout = {"batch_norm", 5, 1u << 0 | 1u << 5};
  const auto& desc = *static_cast<const BatchNormDesc*>(at);
  call(kLayout, desc, pointers, [&]<class T>(TypeTag<T>, void* const* wide) {
    nn::batch_norm::Forward<T> norm;
    norm.momentum = static_cast<float>(desc.momentum);
    run<T>(std::move(norm), kLayout, desc, wide);
  });
}

void batch_norm_grad(const void* at, void* const* pointers, int) {
  static constexpr Layout kLayout = {"batch_norm_grad", 7, 1u << 0 | 1u << 2 | 1u << 7};
  const auto& desc = *static_cast<const BatchNormDesc*>(at);
  call(kLayout, desc, pointers, [&]<class T>(TypeTag<T>, void* const* wide) {
    nn::batch_norm::Backward<T> norm;
    if (!wide[5]) norm.mean = {};
    if (!wide[6]) norm.variance = {};
    run<T>(std::move(norm), kLayout, desc, wide);
  });
}

[[maybe_unused]] const bool offered = offer_library("batch_norm", {sizeof(BatchNormDesc), batch_norm}) &&
                                      offer_library("batch_norm_grad", {sizeof(BatchNormDesc), batch_norm_grad});

}  // namespace
}  // namespace anabranch::device::library_norm_op
