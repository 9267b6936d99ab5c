#include "ops/math/elementwise_rows.h"

namespace anabranch::math {

void infer_out(InferContext& c) {
  const Meta &x = c.in("X"), &y = c.in("Y");
  check_same_dtype(c, "X", "Y");
  const Shape out = broadcast_shape(x.shape, y.shape, c.attr<int32_t>("axis"));
  c.set_out("Out", out, x.dtype);
  c.out("Out").kind = x.kind;
  if (out.rank() > 0 && x.shape.rank() > 0 && out[0] == x.shape[0]) c.share_lod("Out", "X");
}

namespace {

bool is_whole(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Sparse rows times or divided by one number, on a device.
DTypeFactory rows_there(const char* function) {
  return [function](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = device::kernel_of(std::string("binary/") + function, dtype), x = op.in("X"), y = op.in("Y"),
            out = op.out("Out"), tensors = device::binary(function)(dtype, op)](KernelContext& c) {
      const auto* rows = c.value(x).get<SelectedRows>();
      if (!rows) return tensors(c);
      AB_CHECK(c[y].numel() == 1, ShapeMismatch, "X holds sparse rows, so Y must have one element, got {}",
               c[y].shape().str());
      const DeviceContext& queued = DeviceContext::of(c);
      auto& to = c.value(out).as<SelectedRows>();
      device::same_rows(queued, *rows, &to);
      device::BinaryArgs a{device::operand(rows->value), device::operand(c[y]), device::operand(to.value), {}, {}};
      a.axes = device::one_line<3>(rows->value.numel());
      a.axes.stride[2][0] = 0;
      queued.launch(kernel, a);
    };
  };
}

}  // namespace

const char* function_of(const OpDef& def) { return def.type().c_str() + std::string_view("elementwise_").size(); }

DTypeFactory forward_there(const char* function, bool sparse, const char* division) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    if (is_whole(dtype) && division) return device::integer_division(division)(dtype, op);
    return sparse ? rows_there(function)(dtype, op) : device::binary(function)(dtype, op);
  };
}

DTypeFactory backward_there(const char* function, bool divides) {
  return [divides, plain = device::binary_grad(function)](DType dtype, const KernelArgs& op) -> Kernel {
    return is_whole(dtype) && divides ? device::integer_division_grad()(dtype, op) : plain(dtype, op);
  };
}

void forward_as_step(OpDef& def) {
  def.with(device_step([function = function_of(def)](const KernelArgs& op, const std::string&) {
    return DeviceStep{function, {op.in("X").first, op.in("Y").first}};
  }));
}

void backward_as_step(OpDef& def, const char* function, bool needs_out) {
  def.with(device_step([function = std::string(function), needs_out](const KernelArgs& op, const std::string& result) {
    const int dout = op.in("Out@GRAD").first, out = needs_out ? op.in("Out").first : dout;
    return DeviceStep{function + (result == "X@GRAD" ? "_dx" : "_dy"), {dout, op.in("X").first, op.in("Y").first, out}};
  }));
}

}  // namespace anabranch::math
