// Convolutions for the key "conv" of library calls, by the CPU's kernels.
#include <array>

#include "ops/device/library.h"
#include "ops/device/windows.h"
#include "ops/nn/conv.h"

namespace anabranch::device::library_conv_op {
namespace {

nn::ConvDims dims_of(const ConvDesc& desc) {
  nn::ConvDims d;
  d.batch = desc.batch;
  d.in_channels = desc.in_channels;
  d.out_channels = desc.out_channels;
  d.groups = desc.groups;
  d.channels_last = desc.window.channels_last != 0;
  d.window = window_of(desc.window);
  return d;
}

int64_t product(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

std::array<Narrow, 3> operands_of(const ConvDesc& desc) {
  const Narrow images{desc.batch * desc.in_channels * product(desc.window.in)};
  const Narrow filter{desc.out_channels * (desc.in_channels / desc.groups) * product(desc.window.kernel)};
  const Narrow result{desc.batch * desc.out_channels * product(desc.window.out)};
  std::array<Narrow, 3> operands = {images, filter, result};
  if (desc.pass == kConvBackwardData) operands = {result, filter, images};
  if (desc.pass == kConvBackwardFilter) operands = {images, result, filter};
  operands[2].written = true;
  return operands;
}

void conv(const void* at, void* const* pointers, int) {
  const auto& desc = *static_cast<const ConvDesc*>(at);
  with_operands("conv", desc.dtype, pointers, operands_of(desc), [&]<class T>(TypeTag<T>, void* const* p) {
    nn::Conv<T>(static_cast<nn::ConvPass>(desc.pass), desc.rounded ? Operand::kBfloat16 : Operand::kFull)
        .run(KernelContext(), dims_of(desc), static_cast<const T*>(p[0]), static_cast<const T*>(p[1]),
             static_cast<T*>(p[2]));
  });
}

static_assert(static_cast<int32_t>(nn::ConvPass::kForward) == kConvForward &&
              static_cast<int32_t>(nn::ConvPass::kBackwardData) == kConvBackwardData &&
              static_cast<int32_t>(nn::ConvPass::kBackwardFilter) == kConvBackwardFilter);

[[maybe_unused]] const bool offered = offer_library("conv", {sizeof(ConvDesc), conv});

}  // namespace
}  // namespace anabranch::device::library_conv_op
