// "conv" by cuDNN.
#include <algorithm>
#include <optional>

#include "conv_algorithms.h"
#include "conv_layout.h"
#include "handles.h"
#include "open_cudnn.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

using device::ConvDesc;

// Descriptors for one layout, with the chosen algorithm.
struct Told {
  Told(const ConvDesc& desc, const CudnnTypes& types, cudnnMathType_t math, bool channels_last);
  bool choose(Process& process, int device, const ConvDesc& desc, CudnnHandle& handle, const ConvLimits& limits);

  ConvLayout layout;
  TensorDescriptor image, output;
  CudnnOwned<cudnnFilterStruct> filter;
  CudnnOwned<cudnnConvolutionStruct> conv;
  ConvAlgorithm algorithm;
};

class Conv final : public LibraryCall {
 public:
  Conv(Process& process, int device, const ConvDesc& desc);
  size_t room() const override { return told_ ? told_->layout.room + told_->algorithm.room : 0; }
  void run(const ab_queue& queue, const ab_operand* operands, int count, void* workspace) const override;

 private:
  std::array<void*, 3> by_role(const ab_operand* operands) const;
  void put(const ab_queue& queue, const std::array<void*, 3>& p, void* scratch) const;

  const ConvDesc desc_;
  const CudnnTypes types_;
  std::array<ConvRole, 3> roles_;  // of the operands, the result last
  std::array<uint64_t, 3> bytes_;
  std::shared_ptr<CudnnHandle> handle_;
  std::optional<Told> told_;  // missing: there is nothing to compute
};

TensorDescriptor tensor(const CudnnTypes& types, const ConvOperand& operand) {
  return describe_tensor(types.data, narrow(operand.seen), narrow(operand.seen_strides));
}

CudnnOwned<cudnnFilterStruct> describe_filter(const CudnnTypes& types, const ConvOperand& operand, bool last) {
  cudnnFilterDescriptor_t made = nullptr;
  well(cudnn().cudnnCreateFilterDescriptor(&made), "conv");
  CudnnOwned<cudnnFilterStruct> filter(made, cudnn().cudnnDestroyFilterDescriptor);
  const std::vector<int> extents = narrow(operand.seen);
  well(cudnn().cudnnSetFilterNdDescriptor(made, types.data, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                          static_cast<int>(extents.size()), extents.data()),
       "conv");
  return filter;
}

CudnnOwned<cudnnConvolutionStruct> describe_windows(const ConvLayout& layout, const CudnnTypes& types, int64_t groups,
                                                    cudnnMathType_t math) {
  cudnnConvolutionDescriptor_t made = nullptr;
  well(cudnn().cudnnCreateConvolutionDescriptor(&made), "conv");
  CudnnOwned<cudnnConvolutionStruct> conv(made, cudnn().cudnnDestroyConvolutionDescriptor);
  well(cudnn().cudnnSetConvolutionNdDescriptor(made, static_cast<int>(layout.padding.size()), layout.padding.data(),
                                               layout.stride.data(), layout.dilation.data(), CUDNN_CROSS_CORRELATION,
                                               types.wide),
       "conv");
  well(cudnn().cudnnSetConvolutionGroupCount(made, static_cast<int>(groups)), "conv");
  well(cudnn().cudnnSetConvolutionMathType(made, math), "conv");
  return conv;
}

Told::Told(const ConvDesc& desc, const CudnnTypes& types, cudnnMathType_t math, bool channels_last)
    : layout(desc, channels_last, types.bytes),
      image(tensor(types, layout.operands[kImage])),
      output(tensor(types, layout.operands[kOutput])),
      filter(describe_filter(types, layout.operands[kFilter], channels_last)),
      conv(describe_windows(layout, types, desc.groups, math)) {}

bool Told::choose(Process& process, int device, const ConvDesc& desc, CudnnHandle& handle, const ConvLimits& limits) {
  const ConvDescriptors told{image.get(), filter.get(), conv.get(), output.get()};
  const auto choice = [&] { return choose_algorithm(desc.pass, handle, told, limits); };
  const std::optional<ConvAlgorithm> chosen =
      limits.timed ? kept_choice(process, device, desc, layout.channels_last, limits, choice) : choice();
  if (!chosen) return false;
  well(cudnn().cudnnSetConvolutionMathType(conv.get(), chosen->math), "conv");
  algorithm = *chosen;
  return true;
}

// TF32 if products may be rounded: the mode that allows bfloat16 also allows float16, whose range is smaller.
cudnnMathType_t math_of(const ConvDesc& desc, bool tf32) {
  if (desc.dtype == AB_FLOAT16 || desc.dtype == AB_BFLOAT16) return CUDNN_TENSOR_OP_MATH;
  return desc.dtype == AB_FLOAT32 && !tf32 && !desc.rounded ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

std::array<ConvRole, 3> roles_of(int32_t pass) {
  switch (pass) {
    case device::kConvForward: return {kImage, kFilter, kOutput};
    case device::kConvBackwardData: return {kOutput, kFilter, kImage};
    case device::kConvBackwardFilter: return {kImage, kOutput, kFilter};
    default: fail(AB_INVALID_ARGUMENT, "conv: there is no pass ", pass);
  }
}

void check(const ConvDesc& desc) {
  const device::WindowDesc& w = desc.window;
  need(w.axes == 2 || w.axes == 3, "conv: of 2 or 3 axes, got ", w.axes);
  need(desc.groups > 0 && desc.in_channels % desc.groups == 0 && desc.out_channels % desc.groups == 0,
       "conv: ", desc.in_channels, " and ", desc.out_channels, " channels do not come in ", desc.groups, " groups");
  for (int d = 0; d < 3; ++d) {
    need(w.kernel[d] > 0 && w.stride[d] > 0 && w.dilation[d] > 0,
         "conv: windows must have extents and strides above 0");
  }
}

Conv::Conv(Process& process, int device, const ConvDesc& desc)
    : desc_(desc), types_(cudnn_types("conv", desc.dtype)), roles_(roles_of(desc.pass)) {
  check(desc);
  const ConvLimits limits{process.setting("cudnn_deterministic", false),
                          process.setting("cudnn_exhaustive_search", false),
                          process.number("conv_workspace_size_limit", 512) * (int64_t{1} << 20)};
  const ConvLayout stored(desc, desc.window.channels_last != 0, types_.bytes);
  bool empty = false;
  for (size_t k = 0; k < 3; ++k) {
    const int64_t count = stored.operands[roles_[k]].count();
    bytes_[k] = static_cast<uint64_t>(count) * types_.bytes;
    empty = empty || count == 0;
  }
  if (empty) return;
  handle_ = cudnn_handle(process, device);
  const cudnnMathType_t math = math_of(desc, process.setting("enable_cublas_tensor_op_math", false));
  for (const bool last : layouts_of(desc)) {
    told_.emplace(desc, types_, math, last);
    if (told_->choose(process, device, desc, *handle_, limits)) return;
  }
  const device::WindowDesc& w = desc.window;
  fail(AB_UNSUPPORTED, "conv: cuDNN has no ", limits.deterministic ? "deterministic " : "", "algorithm for ",
       desc.in_channels, " to ", desc.out_channels, " channels, windows of ", w.kernel[0], "x", w.kernel[1], "x",
       w.kernel[2], ", dtype ", desc.dtype, ", within FLAGS_conv_workspace_size_limit");
}

std::array<void*, 3> Conv::by_role(const ab_operand* operands) const {
  std::array<void*, 3> p{};
  for (size_t k = 0; k < 3; ++k) p[roles_[k]] = operands[k].address;
  return p;
}

void Conv::run(const ab_queue& queue, const ab_operand* operands, int count, void* workspace) const {
  need(count == 3, "conv takes 3 operands, got ", count);
  for (size_t k = 0; k < 3; ++k) {
    if (operands[k].bytes < bytes_[k]) [[unlikely]] {
      fail(AB_INVALID_ARGUMENT, "conv: operand ", k, " must have ", bytes_[k], " bytes, got ", operands[k].bytes);
    }
  }
  if (!told_) {  // an empty sum is 0
    if (bytes_[2]) well(cudaMemsetAsync(operands[2].address, 0, bytes_[2], queue.stream), "conv");
    return;
  }
  const std::array<void*, 3> stored = by_role(operands);
  std::array<void*, 3> seen = stored;
  for (const ConvRole role : roles_) {
    const ConvOperand& o = told_->layout.operands[role];
    if (!o.staged) continue;
    seen[role] = static_cast<char*>(workspace) + o.at;
    if (role == roles_[2]) continue;
    const size_t bytes = static_cast<size_t>(o.seen_count()) * types_.bytes;
    if (o.padded()) well(cudaMemsetAsync(seen[role], 0, bytes, queue.stream), "conv");
    copy_elements(queue.stream, o, types_.bytes, stored[role], seen[role], true);
  }
  put(queue, seen, static_cast<char*>(workspace) + told_->layout.room);
  const ConvOperand& result = told_->layout.operands[roles_[2]];
  if (result.staged) copy_elements(queue.stream, result, types_.bytes, stored[roles_[2]], seen[roles_[2]], false);
}

void Conv::put(const ab_queue& queue, const std::array<void*, 3>& p, void* scratch) const {
  const Cudnn& dnn = cudnn();
  const Told& t = *told_;
  const void *one = cudnn_scale(types_, true), *zero = cudnn_scale(types_, false);
  const size_t room = t.algorithm.room;
  if (!room) scratch = nullptr;
  handle_->put(queue, "conv", [&](cudnnHandle_t h) {
    switch (desc_.pass) {
      case device::kConvForward:
        return dnn.cudnnConvolutionForward(h, one, t.image.get(), p[kImage], t.filter.get(), p[kFilter], t.conv.get(),
                                           static_cast<cudnnConvolutionFwdAlgo_t>(t.algorithm.number), scratch, room,
                                           zero, t.output.get(), p[kOutput]);
      case device::kConvBackwardData:
        return dnn.cudnnConvolutionBackwardData(h, one, t.filter.get(), p[kFilter], t.output.get(), p[kOutput],
                                                t.conv.get(),
                                                static_cast<cudnnConvolutionBwdDataAlgo_t>(t.algorithm.number), scratch,
                                                room, zero, t.image.get(), p[kImage]);
      default:
        return dnn.cudnnConvolutionBackwardFilter(h, one, t.image.get(), p[kImage], t.output.get(), p[kOutput],
                                                  t.conv.get(),
                                                  static_cast<cudnnConvolutionBwdFilterAlgo_t>(t.algorithm.number),
                                                  scratch, room, zero, t.filter.get(), p[kFilter]);
    }
  });
}

}  // namespace

std::unique_ptr<LibraryCall> plan_conv(Process& process, int device, const void* desc, size_t size) {
  return std::make_unique<Conv>(process, device, described<ConvDesc>("conv", desc, size));
}

}  // namespace anabranch::cuda
