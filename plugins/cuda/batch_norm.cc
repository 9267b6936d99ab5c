// "batch_norm" and "batch_norm_grad": cuDNN if statistics are those of the batch, otherwise our kernels. cuDNN updates
// moving variances with unbiased ones, so it gets a separate buffer for them, and a kernel updates the engine's.
#include <algorithm>
#include <cstdint>

#include "handles.h"
#include "kernels.h"
#include "open_cudnn.h"
#include "ops/device/batch_norm_operands.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

using device::BatchNormArgs;
using device::BatchNormDesc;
using device::BatchNormGradArgs;

ab_kernel kernel_of(const char* stem, int32_t dtype) {
  const char* type = dtype == AB_FLOAT32 ? "f32" : dtype == AB_FLOAT64 ? "f64" : dtype == AB_FLOAT16 ? "f16" : "bf16";
  const std::string key = said(stem, "/", type);
  const ab_kernel kernel = find_kernel_of(key.c_str());
  if (!kernel) fail(AB_INTERNAL, "batch_norm: there is no kernel ", key);
  return kernel;
}

// Common to both directions: tensors, number of channels, and their descriptors.
class Norm : public LibraryCall {
 public:
  Norm(Process& process, int device, const BatchNormDesc& desc)
      : desc_(desc),
        types_(cudnn_types("batch_norm", desc.dtype)),
        mode_(process.setting("cudnn_batchnorm_spatial_persistent", false) ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT
                                                                           : CUDNN_BATCHNORM_SPATIAL) {
    need(desc.outer >= 0 && desc.channels >= 0 && desc.inner >= 0, "batch_norm: extents must be 0 or more");
    if (!measured()) return;
    if (desc.outer * desc.inner > INT32_MAX / std::max<int64_t>(1, desc.channels))
      fail(AB_UNSUPPORTED, "batch_norm: cuDNN counts to ", INT32_MAX, " elements");
    handle_ = cudnn_handle(process, device);
    const int outer = static_cast<int>(desc.outer), c = static_cast<int>(desc.channels);
    const int inner = static_cast<int>(desc.inner);
    // With channels last all rows form one image: cuDNN supports more elements per image than images.
    tensor_ = inner == 1 ? describe_tensor(types_.data, {1, c, outer, 1}, {outer * c, 1, c, c})
                         : describe_tensor(types_.data, {outer, c, inner, 1}, {c * inner, inner, 1, 1});
    vector_ = describe_tensor(types_.wide, {1, c, 1, 1}, {c, 1, 1, 1});
  }

 protected:
  int64_t a_channel() const { return desc_.outer * desc_.inner; }
  bool passes() const { return !desc_.fixed && a_channel() == 1; }
  bool measured() const { return !desc_.fixed && a_channel() > 1 && desc_.channels > 0; }
  uint64_t vector_bytes() const { return static_cast<uint64_t>(desc_.channels) * types_.wide_bytes; }
  uint64_t tensor_bytes() const { return static_cast<uint64_t>(a_channel() * desc_.channels) * types_.bytes; }

  // Checks operands: those in the bit mask `whole` are tensors, the others vectors; those in `may_lack` may be missing.
  void check(const ab_operand* operands, int count, int needed, uint32_t whole, uint32_t may_lack) const {
    need(count == needed, "batch_norm takes ", needed, " operands, got ", count);
    for (int k = 0; k < count; ++k) {
      if (may_lack >> k & 1u && !operands[k].address) continue;
      const uint64_t bytes = whole >> k & 1u ? tensor_bytes() : vector_bytes();
      if (operands[k].bytes < bytes) [[unlikely]]
        fail(AB_INVALID_ARGUMENT, "batch_norm: operand ", k, " must have ", bytes, " bytes, got ", operands[k].bytes);
    }
  }
  template <class Args> void launch(const ab_queue& queue, ab_kernel kernel, Args& a) const {
    a.outer = desc_.outer;
    a.channels = desc_.channels;
    a.inner = desc_.inner;
    a.epsilon = desc_.epsilon;
    well(run_kernel(kernel, queue.stream, &a, nullptr, 0), "batch_norm");
  }

  const BatchNormDesc desc_;
  const CudnnTypes types_;
  const cudnnBatchNormMode_t mode_;
  std::shared_ptr<CudnnHandle> handle_;
  TensorDescriptor tensor_{nullptr, nullptr}, vector_{nullptr, nullptr};
};

class Forward final : public Norm {
 public:
  Forward(Process& process, int device, const BatchNormDesc& desc)
      : Norm(process, device, desc),
        apply_(kernel_of("batch_norm/apply", desc.dtype)),
        move_(kernel_of("batch_norm/move", types_.wide == CUDNN_DATA_DOUBLE ? AB_FLOAT64 : AB_FLOAT32)) {}
  size_t room() const override { return measured() ? 2 * vector_bytes() : 0; }

  // x, scale, bias, mean, variance, y, mean_out, variance_out, used, inverse
  void run(const ab_queue& queue, const ab_operand* o, int count, void* workspace) const override {
    check(o, count, 10, 1u << 0 | 1u << 5, 1u << 6 | 1u << 7);
    BatchNormArgs a{};
    take(a, o);
    a.momentum = desc_.momentum;
    a.pass = passes();
    if (!measured()) return launch(queue, apply_, a);
    measure(queue, o, workspace);
    void* unbiased = static_cast<char*>(workspace) + vector_bytes();
    a.unbiased = {unbiased, vector_bytes()};
    launch(queue, move_, a);
  }

 private:
  // The workspace gets mean and unbiased variance: as moving ones that are fully replaced.
  void measure(const ab_queue& queue, const ab_operand* o, void* workspace) const {
    well(cudaMemsetAsync(workspace, 0, room(), queue.stream), "batch_norm");
    const void *one = cudnn_scale(types_, true), *zero = cudnn_scale(types_, false);
    void* variance = static_cast<char*>(workspace) + vector_bytes();
    handle_->put(queue, "batch_norm", [&](cudnnHandle_t h) {
      return cudnn().cudnnBatchNormalizationForwardTraining(
          h, mode_, one, zero, tensor_.get(), o[0].address, tensor_.get(), o[5].address, vector_.get(), o[1].address,
          o[2].address, 1.0, workspace, variance, desc_.epsilon, o[8].address, o[9].address);
    });
  }

  const ab_kernel apply_, move_;
};

class Backward final : public Norm {
 public:
  Backward(Process& process, int device, const BatchNormDesc& desc)
      : Norm(process, device, desc), grad_(kernel_of("batch_norm/grad", desc.dtype)) {}
  size_t room() const override { return measured() ? 2 * vector_bytes() : 0; }

  // x, scale, gradient of y, mean and inverse deviation used, mean, variance, gradients of x, scale, bias
  void run(const ab_queue& queue, const ab_operand* o, int count, void* workspace) const override {
    check(o, count, 10, 1u << 0 | 1u << 2 | 1u << 7, 0x3e0u);
    if (measured() && o[7].address) return by_cudnn(queue, o, workspace);
    BatchNormGradArgs a{};
    take(a, o);
    if (desc_.fixed) {
      a.mean = device::read(o[5]);
      a.variance = device::read(o[6]);
    }
    a.fixed = desc_.fixed;
    a.pass = passes();
    launch(queue, grad_, a);
  }

 private:
  // It always writes the gradients of scale and bias.
  void by_cudnn(const ab_queue& queue, const ab_operand* o, void* workspace) const {
    const void *one = cudnn_scale(types_, true), *zero = cudnn_scale(types_, false);
    void* dscale = o[8].address ? o[8].address : workspace;
    void* dbias = o[9].address ? o[9].address : static_cast<char*>(workspace) + vector_bytes();
    handle_->put(queue, "batch_norm_grad", [&](cudnnHandle_t h) {
      return cudnn().cudnnBatchNormalizationBackward(
          h, mode_, one, zero, one, zero, tensor_.get(), o[0].address, tensor_.get(), o[2].address, tensor_.get(),
          o[7].address, vector_.get(), o[1].address, dscale, dbias, desc_.epsilon, o[3].address, o[4].address);
    });
  }

  const ab_kernel grad_;
};

}  // namespace

std::unique_ptr<LibraryCall> plan_batch_norm(Process& process, int device, const void* desc, size_t size) {
  return std::make_unique<Forward>(process, device, described<BatchNormDesc>("batch_norm", desc, size));
}

std::unique_ptr<LibraryCall> plan_batch_norm_grad(Process& process, int device, const void* desc, size_t size) {
  return std::make_unique<Backward>(process, device, described<BatchNormDesc>("batch_norm_grad", desc, size));
}

}  // namespace anabranch::cuda
