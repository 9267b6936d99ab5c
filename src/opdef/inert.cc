// Attributes in files and programs of Fluid without meaning here: they choose a library, tune it, or describe what this
// engine determines itself.
#include <string_view>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

struct Inert {
  std::string_view name;
  Attr value;
};

const Inert& find_inert(std::string_view name) {
  static const Inert kAll[] = {
      {.name = "use_cudnn", .value = false},
      {.name = "use_mkldnn", .value = false},
      {.name = "use_quantizer", .value = false},
      {.name = "force_fp32_output", .value = false},
      {.name = "is_test", .value = false},
      {.name = "exhaustive_search", .value = false},
      {.name = "workspace_size_MB", .value = int32_t{512}},
      {.name = "in_dtype", .value = int32_t{-1}},
      {.name = "out_dtype", .value = int32_t{-1}},
      {.name = "data_format", .value = std::string("AnyLayout")},
      {.name = "x_data_format", .value = std::string()},
      {.name = "y_data_format", .value = std::string()},
      {.name = "scale_x", .value = 1.0f},
      {.name = "scale_y", .value = std::vector<float>{1.0f}},
      {.name = "scale_out", .value = 1.0f},
      {.name = "Scale_x", .value = 1.0f},
      {.name = "Scale_y", .value = 1.0f},
      {.name = "Scale_out", .value = 1.0f},
      {.name = "infer_flags", .value = std::vector<int32_t>{}},
      {.name = "fused_reshape_Out", .value = std::vector<int32_t>{}},
      {.name = "fused_transpose_Out", .value = std::vector<int32_t>{}},
  };
  for (const Inert& inert : kAll) {
    if (inert.name == name) return inert;
  }
  AB_THROW(Internal, "{} is not a well-known attribute without effect: give its default", name);
}

}  // namespace

OpDef& OpDef::ignores(const char* name, Attr value) {
  const AttrType type = attr_type(value);
  return add_attr(
      {name, "no effect; accepted because programs of Fluid 1.8.5 may set it", type, std::move(value), false, {}});
}

OpDef& OpDef::ignores(std::initializer_list<const char*> names) {
  for (const char* name : names) ignores(name, find_inert(name).value);
  return *this;
}

}  // namespace anabranch
