// channels_last: on devices, images of 16-bit (or TF32) convolutions have their channels last from one convolution to
// the next, the layout of the matrix units. With channels first the library would transpose every image before and
// after each convolution. Filters, per-channel values, and images that the program, a fetch or another operator uses
// keep their layout.
#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "base/flags.h"
#include "graph/passes/image_layouts.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Operators with an attribute for the layout of their images, and the slots of these images, forward and backward.
struct Told {
  const char* type;
  const char* attr;
  std::vector<std::string> images;
};
const Told kTold[] = {
    {"conv2d", "data_format", {"Input", "Output", "Output@GRAD", "Input@GRAD"}},
    {"depthwise_conv2d", "data_format", {"Input", "Output", "Output@GRAD", "Input@GRAD"}},
    {"pool2d", "data_format", {"X", "Out", "Out@GRAD", "X@GRAD"}},
    {"batch_norm", "data_layout", {"X", "Y", "Y@GRAD", "X@GRAD"}},
};

// Elementwise operators. The added operand may have one number per channel.
const std::set<std::string_view> kSamePlace = {"cast",           "scale", "sum", "elementwise_add", "elementwise_sub",
                                               "elementwise_mul"};

std::string_view forward_of(std::string_view type) {
  return type.ends_with("_grad") ? type.substr(0, type.size() - 5) : type;
}

bool same_place(std::string_view forward) {
  if (kSamePlace.count(forward)) return true;
  const OpDef* def = find_op_or_null(std::string(forward));
  return def && def->is(kElementwise) && !def->has(kRandom);
}

class ChannelsLast final : public ImageLayouts {
 public:
  ChannelsLast(Graph& graph, bool tf32) : ImageLayouts(graph), tf32_(tf32) {}

 private:
  DType dtype_of(int var) const { return graph_.vars[var].desc.dtype; }
  const Shape& shape_of(int var) const { return graph_.vars[var].desc.shape; }

  bool may_change(int var) const override {
    const DType dtype = dtype_of(var);
    return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32;
  }
  bool shapes_change() const override { return true; }

  // Elements of one image, as far as they are known.
  int64_t price(int var) const override {
    int64_t elements = 1;
    for (int axis = 1; axis < 4; ++axis) elements *= std::max<int64_t>(1, shape_of(var)[axis]);
    return elements;
  }

  std::vector<AlikeImages> alike(const GraphNode& node) const override {
    const std::string_view forward = forward_of(node.op->type);
    const auto told =
        std::find_if(std::begin(kTold), std::end(kTold), [&](const Told& t) { return t.type == forward; });
    AlikeImages images;
    if (told != std::end(kTold)) {
      images = told_images(node, *told);
    } else if (same_place(forward)) {
      images = images_of_same_place(node);
    }
    const auto keeps = [&](int v) { return !may(v); };
    if (told != std::end(kTold)) {
      std::copy_if(images.vars.begin(), images.vars.end(), std::back_inserter(images.outside), keeps);
      std::erase_if(images.vars, keeps);
    }
    const bool all = std::none_of(images.vars.begin(), images.vars.end(), keeps) &&
                     std::all_of(images.outside.begin(), images.outside.end(), [&](int v) { return may_be_copied(v); });
    return images.vars.empty() || !all ? std::vector<AlikeImages>() : std::vector<AlikeImages>{std::move(images)};
  }

  AlikeImages told_images(const GraphNode& node, const Told& told) const {
    AlikeImages images{.vars = in_slots(node, told.images), .attr = told.attr};
    const auto flat = [&](int v) { return shape_of(v).rank() != 4; };
    if (std::any_of(images.vars.begin(), images.vars.end(), flat)) return {};
    if (node.op->attr<std::string>(told.attr).ends_with("C")) return {};
    if (std::string_view(told.type).ends_with("conv2d")) images.saves = saved(images.vars);
    return images;
  }

  int64_t saved(const std::vector<int>& vars) const {
    int64_t elements = 0;
    for (const int v : vars) elements += dtype_of(v) != DType::kFloat32 || tf32_ ? price(v) : 0;
    return elements;
  }

  // All of its arguments are images of one shape, or vectors of their channels, which axis 1 says.
  AlikeImages images_of_same_place(const GraphNode& node) const {
    AlikeImages images;
    bool of_channels = false;
    for (const auto* ids : {&node.ins, &node.outs}) {
      for (const int v : *ids) {
        if (v < 0) continue;
        const Shape& shape = shape_of(v);
        if (shape.rank() == 1) {
          of_channels = true;
        } else if (images.vars.empty() || shape == shape_of(images.vars[0])) {
          images.vars.push_back(v);
        } else {
          return {};
        }
      }
    }
    if (!of_channels) return images;
    const bool on_axis_1 = node.op->has_attr("axis") && node.op->attr<int32_t>("axis") == 1;
    images.attr = "axis";
    return on_axis_1 ? images : AlikeImages();
  }

  void tell(ir::Op& op, const AlikeImages& images) const override {
    if (images.attr == "axis") {
      op.attrs[images.attr] = int32_t{3};
    } else {
      op.attrs[images.attr] = std::string("NHWC");
    }
  }

  GraphNode reorder(const GraphNode& next_to, int from, int to, bool to_last) const override {
    NodeBuilder node(graph_, "transpose", next_to);
    const std::vector<int32_t> axis = to_last ? std::vector<int32_t>{0, 2, 3, 1} : std::vector<int32_t>{0, 3, 1, 2};
    return node.attr("axis", axis).in("X", from).out("Out", to).done();
  }

  void describe(GraphVar& var) const override {
    const Shape s = var.desc.shape;
    var.desc.shape = Shape{s[0], s[2], s[3], s[1]};
  }

  const bool tf32_;  // products of float32, too
};

int channels_last(Graph& graph, const PassContext& context) {
  ChannelsLast layouts(graph, std::get<bool>(get_flag("FLAGS_enable_cublas_tensor_op_math")));
  const int changes = layouts.run();
  if (changes > 0 && context.notes) context.notes->push_back(layouts.summary());
  return changes;
}

}  // namespace

const Pass kChannelsLast = {.name = "channels_last",
                            .what = "stores images between convolutions with the channels last, on devices",
                            .tolerance = "sums over channels and pixels in a different order: 1e-5 of their size",
                            .on_devices = true,
                            .skip = skip_on_cpu,
                            .run = channels_last};

}  // namespace anabranch
