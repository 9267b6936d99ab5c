// A convolution fused with the ops after it: bias, residual, relu. They are applied to the samples that a worker has
// computed while these are in its cache. The same bits as the separate ops.
#include "ops/kernels/simd.h"
#include "ops/kernels/work.h"
#include "ops/nn/blocked.h"
#include "ops/nn/conv.h"
#include "ops/nn/conv_attrs.h"

namespace anabranch::nn::conv_fusion_op {
namespace {

class Epilogue : public ConvEpilogue {
 public:
  bool relu = false;
  const ConvDims* dims = nullptr;
  const float *bias = nullptr, *residual = nullptr;  // null: none; one number per channel
  float* out = nullptr;

  void finish(int64_t begin, int64_t end) const override {
    const int64_t sample = dims->out_elems(), pixels = volume(dims->window.out);
    // Adjacent channels: all of them, a block, or one.
    const int64_t width = dims->channels_last ? dims->out_channels : dims->blocked_output ? channel_block() : 1;
    const int64_t run = width * pixels;
    for (int64_t at = begin; at < end; at += run) {
      if (bias) add_bias(out + at, bias + at % sample / pixels, pixels, width);
      if (residual) simd::add(out + at, residual + at, out + at, run);
      if (relu) simd::relu(out + at, out + at, run);
    }
  }

 private:
  static void add_bias(float* x, const float* values, int64_t pixels, int64_t width) {
    if (width > 1) return simd::add_to_rows(x, width, values, pixels, width);
    const float value = *values;
    for (int64_t i = 0; i < pixels; ++i) x[i] += value;
  }
};

// The bias that elementwise_add accepts on axis 1: a vector over the channels, or one number for all of them. Trailing
// extents of 1 are allowed.
void check_bias(const InferContext& c, int64_t channels) {
  if (!c.has_in("Bias")) return;
  check_same_dtype(c, "Bias", "Input");
  const Shape& bias = c.in("Bias").shape;
  const bool vector = bias.rank() > 0 && bias.rank() <= 3 && bias.numel(1, bias.rank()) == 1;
  const bool fits = vector && (bias[0] == channels || bias[0] == 1 || bias[0] == kUnknown);
  AB_CHECK(fits || channels == kUnknown, ShapeMismatch, "Bias must be [{}] or [1], got {}", channels, bias.str());
}

// The bias per channel; a single number is repeated in `repeated`, which is kept for the next run.
const float* by_channel(const Tensor& bias, int64_t channels, std::vector<float>* repeated) {
  const float* from = bias.data<float>();
  if (bias.numel() == channels) return from;
  repeated->assign(static_cast<size_t>(channels), *from);
  return repeated->data();
}

void infer(InferContext& c) {
  check_same_dtype(c, "Input", "Filter");
  const ConvDims d = conv_dims<2>(c.op(), c.in("Input").shape, c.in("Filter").shape);
  const Shape out = conv_output(d);
  check_bias(c, d.out_channels);
  if (c.has_in("ResidualData")) {
    check_same_dtype(c, "ResidualData", "Input");
    check_shape(c, "ResidualData", out);
  }
  c.set_out("Output", out, c.in("Input").dtype);
  c.share_lod("Output", "Input");
}

Kernel forward(const KernelArgs& args) {
  const In input = args.in("Input"), filter = args.in("Filter"), bias = args.in("Bias"),
           residual = args.in("ResidualData");
  const Out output = args.out("Output");
  const auto conv = std::make_shared<Conv<float>>(ConvPass::kForward, operand_of(args.op()));
  DimsOf<ConvDims, decltype(&conv_dims<2>)> dims(args.op(), conv_dims<2>);
  Epilogue tail;
  tail.relu = args.attr<std::string>("activation") == "relu";
  return [=, constant = args.attr<bool>("constant_filter"), repeated = std::vector<float>()](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    tail.dims = &d;
    tail.bias = bias ? by_channel(c[bias], d.out_channels, &repeated) : nullptr;
    tail.residual = residual ? c[residual].data<float>() : nullptr;
    tail.out = c[output].mutable_data<float>();
    if (d.empty()) {
      std::fill_n(tail.out, c[output].numel(), 0.0f);
      if (c[output].numel() > 0) tail.finish(0, c[output].numel());
      return;
    }
    const uint64_t version = constant ? c.value(filter).version() + 1 : 0;
    conv->run(c, d, c[input].data<float>(), c[filter].data<float>(), tail.out, {&tail, version});
  };
}

AB_OP(conv2d_fusion)
    .doc("Output = activation(convolution of Input and Filter + Bias + ResidualData), see conv2d.")
    .in("Input", "as in conv2d")
    .in("Filter", "as in conv2d")
    .in_optional("Bias", "[output channels], or [1] for all channels")
    .in_optional("ResidualData", "like Output")
    .out("Output", "as in conv2d")
    .attr<std::string>("activation", "", "relu, or empty for none",
                       [](const std::string& v) {
                         AB_CHECK(v.empty() || v == "relu" || v == "identity", Unsupported,
                                  "activation must be relu or identity, got {}", v);
                       })
    .attr<std::vector<int32_t>>("dilations", {1, 1}, "as in conv2d")
    .attr<int32_t>("groups", 1, "as in conv2d")
    .attr<bool>("constant_filter", false, "no op writes the filter while the program runs")
    .with(window_attrs)
    .effects(kEngineOnly)
    .traits(kRowWise | kBfloat16)
    .images({"Input"}, "blocked_input")
    .images({"Output", "ResidualData"}, "blocked_output")
    .flops([](const WorkContext& c) { return convolution_flops(c, c.out("Output")); })
    .infer(infer)
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& args) { return forward(args); });

}  // namespace
}  // namespace anabranch::nn::conv_fusion_op
