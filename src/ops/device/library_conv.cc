// Convolutions behind the key "conv" of library calls, by the kernels of the CPU.
#include "ops/device/library.h"
#include "ops/device/windows.h"
#include "ops/nn/conv.h"

namespace anabranch::device {
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

void conv(const void* at, void* const* pointers, int) {
  const auto& desc = *static_cast<const ConvDesc*>(at);
  with_float("conv", desc.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    nn::Conv<T>(static_cast<nn::ConvPass>(desc.pass), desc.rounded ? Operand::kBfloat16 : Operand::kFull)
        .run(KernelContext(), dims_of(desc), static_cast<const T*>(pointers[0]), static_cast<const T*>(pointers[1]),
             static_cast<T*>(pointers[2]));
  });
}

static_assert(static_cast<int32_t>(nn::ConvPass::kForward) == kConvForward &&
              static_cast<int32_t>(nn::ConvPass::kBackwardData) == kConvBackwardData &&
              static_cast<int32_t>(nn::ConvPass::kBackwardFilter) == kConvBackwardFilter);

[[maybe_unused]] const bool offered = offer_library("conv", {sizeof(ConvDesc), conv});

}  // namespace
}  // namespace anabranch::device
