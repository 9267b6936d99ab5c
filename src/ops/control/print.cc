// Writes a tensor to the standard output of the process.
#include <cstdio>
#include <string>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/copy.h"

namespace anabranch::control::print_op {
namespace {

struct Form {
  std::string message, name;
  int first_n, summarize;
  bool with_name, with_type, with_shape, with_lod;
};

template <class T> std::string number_text(T value) {
  if constexpr (std::is_floating_point_v<T>) return fmt::format("{:.6g}", value);
  return fmt::format("{}", value);
}

std::string numbers(const Tensor& t, int most) {
  const int64_t n = most < 0 ? t.numel() : std::min<int64_t>(t.numel(), most);
  std::string text = "[";
  visit_dtype(t.dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = t.data<T>();
    for (int64_t i = 0; i < n; ++i) text += (i ? ", " : "") + number_text(x[i]);
  });
  return text + (n == t.numel() ? "]" : n > 0 ? ", ...]" : "...]");
}

// One write for the whole text, so that output of several threads does not interleave.
void print(const Form& form, const Tensor& t, int replica) {
  std::string text = form.message;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "  ") + part; };
  if (form.with_name) add(form.name);
  if (replica > 0) add(fmt::format("replica: {}", replica));
  if (form.with_shape) add("shape: " + t.shape().str());
  if (form.with_type) add(fmt::format("dtype: {}", dtype_name(t.dtype())));
  if (form.with_lod && !t.lod().empty()) add("lod: " + lod_str(t.lod()));
  add("data: " + numbers(t, form.summarize));
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Kernel print_kernel(const KernelArgs& op) {
  const bool forward = op.attr<bool>("is_forward");
  const auto& phase = op.attr<std::string>("print_phase");
  const bool prints = phase == "BOTH" || phase == (forward ? "FORWARD" : "BACKWARD");
  Form form{op.attr<std::string>("message"),     op.op().input("In")[0],
            op.attr<int32_t>("first_n"),         op.attr<int32_t>("summarize"),
            op.attr<bool>("print_tensor_name"),  op.attr<bool>("print_tensor_type"),
            op.attr<bool>("print_tensor_shape"), op.attr<bool>("print_tensor_lod")};
  return [prints, form = std::move(form), in = op.in("In"), out = op.out("Out"),
          times = int64_t{0}](KernelContext& c) mutable {
    copy_bytes(c, c[in], &c[out]);
    if (!prints || (form.first_n >= 0 && times >= form.first_n)) return;
    ++times;
    print(form, c[in], c.replica);
  };
}

AB_OP(print)
    .doc("Out = In; prints In to the standard output.")
    .in("In", "[...]")
    .out("Out", "like In")
    .attr<int32_t>("first_n", -1, "number of times to print after the program is prepared; negative: always")
    .attr<std::string>("message", "", "text printed first")
    .attr<int32_t>("summarize", -1, "number of elements to print; negative: all")
    .attr<bool>("print_tensor_name", true, "prints the variable's name")
    .attr<bool>("print_tensor_type", true, "prints the dtype")
    .attr<bool>("print_tensor_shape", true, "prints the shape")
    .attr<bool>("print_tensor_lod", true, "prints the LoD")
    .attr<std::string>("print_phase", "BOTH", "prints the tensor, its gradient, or both",
                       one_of("print_phase", {"BOTH", "FORWARD", "BACKWARD"}))
    .attr<bool>("is_forward", true, "In is a forward value, not a gradient")
    .effects(kOrdered)
    .infer([](InferContext& c) { c.same_as("Out", "In"); })
    .grad([](GradContext& g) {
      g.op("print").in("In", g.dout("Out")).out("Out", g.din("In")).attr("is_forward", false);
    })
    .cpu_any(print_kernel);

}  // namespace
}  // namespace anabranch::control::print_op
