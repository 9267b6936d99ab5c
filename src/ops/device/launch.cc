#include "ops/device/launch.h"

#include <algorithm>

namespace anabranch::device {

const char* type_name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return type_name<half>;
    case DType::kBFloat16: return type_name<bfloat16>;
    default: return visit_dtype(dtype, []<class T>(TypeTag<T>) { return type_name<T>; });
  }
}

ab_kernel kernel_of(const std::string& stem, DType dtype) { return device_kernel(stem + "/" + type_name_of(dtype)); }

std::array<double, kMaxNumbers> NumbersOf::read(const KernelArgs& op) const {
  std::array<double, kMaxNumbers> p{};
  for (size_t k = 0; k < p.size() && names[k]; ++k) p[k] = static_cast<double>(op.attr<float>(names[k]));
  return p;
}

DTypeFactory each_element(std::string stem, NumbersOf numbers) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(stem, dtype), x = op.in("X"), out = op.out("Out"),
            p = numbers.read(op)](const DeviceContext& c) {
      MapArgs a{operand(c[x]), operand(c[out]), c[x].numel(), {}};
      std::copy(p.begin(), p.end(), a.p);
      c.launch(kernel, a);
    };
  };
}

DTypeFactory map(const char* function, NumbersOf numbers) {
  return each_element(std::string("map/") + function, numbers);
}

DTypeFactory map_grad(const std::string& function, NumbersOf numbers) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    const bool reads_x = op.has_in("X"), reads_out = op.has_in("Out");
    return [kernel = kernel_of("map_grad/" + function, dtype), x = reads_x ? op.in("X") : In(),
            out = reads_out ? op.in("Out") : In(), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
            p = numbers.read(op)](const DeviceContext& c) {
      MapGradArgs a{};
      if (x) a.x = operand(c[x]);
      if (out) a.y = operand(c[out]);
      a.dy = operand(c[dout]);
      a.dx = operand(c[dx]);
      a.n = c[dout].numel();
      std::copy(p.begin(), p.end(), a.p);
      c.launch(kernel, a);
    };
  };
}

DTypeFactory broadcast(std::string stem) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(stem, dtype), x = op.in("X"), y = op.in("Y"), out = op.out("Out"),
            axis = op.attr<int32_t>("axis")](const DeviceContext& c) {
      BinaryArgs a{operand(c[x]), operand(c[y]), operand(c[out]), {}, {}};
      a.axes = axes_of(broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis));
      c.launch(kernel, a);
    };
  };
}

DTypeFactory binary(const char* function) { return broadcast(std::string("binary/") + function); }

DTypeFactory binary_grad(const char* function) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    const In out = op.has_in("Out") ? op.in("Out") : In();
    return [kernel = kernel_of(std::string("binary_grad/") + function, dtype), x = op.in("X"), y = op.in("Y"), out,
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
            axis = op.attr<int32_t>("axis")](const DeviceContext& c) {
      BinaryGradArgs a{};
      a.x = operand(c[x]);
      a.y = operand(c[y]);
      if (out) a.out = operand(c[out]);
      a.dout = operand(c[dout]);
      if (c.needs(dx)) a.dx = operand(c[dx]);
      if (c.needs(dy)) a.dy = operand(c[dy]);
      a.axes = axes_of(broadcast_loop(c[dout].shape(), c[x].shape(), c[y].shape(), axis));
      c.launch(kernel, a);
    };
  };
}

}  // namespace anabranch::device
