// Convolutions (cross-correlations) of images and volumes with strides, padding, dilation and groups; the depthwise
// types are the same function with one channel per group.
#include "ops/nn/blocked.h"
#include "ops/nn/conv_op.h"

namespace anabranch::nn::conv_op {
namespace {

constexpr ConvForm kForm{.axes = 2, .transposed = false, .dims = conv_dims<2>, .output = conv_output};
constexpr ConvForm kVolumes{.axes = 3, .transposed = false, .dims = conv_dims<3>, .output = conv_output};

void conv2d(OpDef& def) {
  def.doc(
         "2-D convolution: Output[n, o, y, x] = sum over channels and window of Input[n, i, y s + ky d - p, ...] "
         "Filter[o, i, ky, kx]; each group of output channels reads its group of input channels.")
      .in("Input", "[N, C, H, W] float, or [N, H, W, C]")
      .in("Filter", "[O, C / groups, height, width]")
      .in_optional("Bias", "not supported")
      .in_optional("ResidualData", "not supported")
      .out("Output", "[N, O, H', W'], or [N, H', W', O]; H' = (H + top + bottom - d (height - 1) - 1) / s + 1")
      .with(convolution(kForm))
      .with(fusion_attrs)
      .attr<bool>("fuse_relu_before_depthwise_conv", false, "not supported", refuse_fusion("relu in front"))
      .attr<bool>("fuse_brelu", false, "not supported", refuse_fusion("brelu"))
      .attr<bool>("fuse_residual_connection", false, "not supported", refuse_fusion("elementwise_add"))
      .ignores("fuse_brelu_threshold", 6.0f)
      .ignores("Scale_in", 1.0f)
      .ignores("Scale_in_eltwise", 1.0f)
      .ignores("Scale_weights", std::vector<float>{1.0f})
      .ignores({"Scale_out", "use_quantizer", "force_fp32_output", "exhaustive_search"})
      .traits(kRowWise);
}

AB_OP(conv2d)
    .with(conv2d)
    .traits(kRowWise | kBfloat16)
    .images({"Input"}, kBlockedInput)
    .images({"Output"}, kBlockedOutput);
AB_GRAD(conv2d).with(convolution_gradient(kForm)).traits(kBfloat16);
AB_OP(depthwise_conv2d).with(conv2d).images({"Input"}, kBlockedInput).images({"Output"}, kBlockedOutput);
AB_GRAD(depthwise_conv2d).with(convolution_gradient(kForm));

AB_OP(conv3d)
    .doc("conv2d over volumes, with a depth before the height.")
    .in("Input", "[N, C, D, H, W] float, or [N, D, H, W, C]")
    .in("Filter", "[O, C / groups, depth, height, width]")
    .in_optional("ResidualData", "not supported")
    .out("Output", "[N, O, D', H', W'], or [N, D', H', W', O]; D' = (D + front + back - d (depth - 1) - 1) / s + 1")
    .with(convolution(kVolumes))
    .with(fusion_attrs)
    .attr<bool>("fuse_residual_connection", false, "not supported", refuse_fusion("elementwise_add"))
    .ignores({"force_fp32_output", "exhaustive_search"})
    .traits(kRowWise);
AB_GRAD(conv3d).with(convolution_gradient(kVolumes));

}  // namespace
}  // namespace anabranch::nn::conv_op
