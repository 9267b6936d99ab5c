// Copies tensors one after another into one.
#include <algorithm>
#include <cstring>

#include "ops/declare/declare.h"

namespace anabranch::tensor::coalesce_tensor_op {
namespace {

// Each tensor starts at a multiple of this number of bytes.
constexpr int64_t kAlignment = 4096;

int64_t room_of(int64_t numel, DType dtype) {
  const auto in_a_block = kAlignment / static_cast<int64_t>(dtype_size(dtype));
  return (numel + in_a_block - 1) / in_a_block * in_a_block;
}

void infer(InferContext& c) {
  const auto dtype = dtype_from_number(c.attr<int32_t>("dtype"));
  const int n = c.n_in("Input");
  AB_CHECK(c.n_out("Output") == n, InvalidArgument, "Output must list one variable for each of the {} Input, got {}", n,
           c.n_out("Output"));
  int64_t total = 0;
  for (int i = 0; i < n; ++i) {
    const Meta& m = c.in("Input", i);
    AB_CHECK(m.dtype == dtype, InvalidArgument, "Input[{}] must hold {}, the attribute dtype, got {}", i,
             dtype_name(dtype), dtype_name(m.dtype));
    const int64_t numel = m.shape.numel();
    total = total < 0 || numel < 0 ? kUnknown : total + room_of(numel, dtype);
    c.set_out("Output", m.shape, dtype, i);
  }
  c.set_out("FusedOutput", Shape{total}, dtype);
}

void fill(Tensor* to, float value) {
  visit_dtype(to->dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>) {
      T* at = to->mutable_data<T>();
      std::fill(at, at + to->numel(), static_cast<T>(value));
    }
  });
}

// Copies to its position in the joint tensor, followed by zeros, and to its output, as far as these are requested: in
// chunks that fit the cache, so that it is read once.
void copy_to_both(const Tensor& from, int64_t room, char* whole, Tensor* own) {
  constexpr size_t kChunk = 32 << 10;
  const size_t bytes = from.bytes();
  const auto* source = static_cast<const char*>(from.raw());
  auto* part = own && own->raw() != from.raw() ? static_cast<char*>(own->mutable_raw()) : nullptr;
  for (size_t i = 0; i < bytes; i += kChunk) {
    const size_t n = std::min(kChunk, bytes - i);
    if (whole) std::memcpy(whole + i, source + i, n);
    if (part) std::memcpy(part + i, source + i, n);
  }
  if (whole && room > 0) std::memset(whole + bytes, 0, static_cast<size_t>(room) - bytes);
}

AB_OP(coalesce_tensor)
    .doc(
        "FusedOutput = the tensors of Input one after another, each starting at a multiple of 4096 bytes, with zeros "
        "between; or filled with a constant or zeros. Output = the slices of FusedOutput in the shapes of Input.")
    .in_list("Input", "[...] of one dtype")
    .out_list("Output", "like Input")
    .out("FusedOutput", "[elements], with padding between")
    .required_attr("dtype", AttrType::kInt, "id of the dtype of Input")
    .attr<bool>("copy_data", false, "copies Input")
    .attr<bool>("set_constant", false, "without copy_data: fills all elements with `constant`")
    .attr<float>("constant", 0.0f, "value for set_constant")
    .ignores("check_name", false)
    .infer(infer)
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const bool copy = op.attr<bool>("copy_data");
      const float value = !copy && op.attr<bool>("set_constant") ? op.attr<float>("constant") : 0.0f;
      return [=, in = op.in("Input"), out = op.out("Output"), fused = op.out("FusedOutput")](KernelContext& c) {
        Tensor* whole = c.needs(fused) ? &c[fused] : nullptr;
        if (whole && !copy) fill(whole, value);
        int64_t at = 0;
        for (int i = 0; i < in.count; ++i) {
          const Tensor& from = c.at(in, i);
          const int64_t room = room_of(from.numel(), from.dtype());
          Tensor* own = c.needs(out, i) ? &c.at(out, i) : nullptr;
          if (copy) {
            const auto size = static_cast<int64_t>(dtype_size(from.dtype()));
            copy_to_both(from, room * size, whole ? static_cast<char*>(whole->mutable_raw()) + at * size : nullptr,
                         own);
          } else if (own) {
            fill(own, value);
          }
          at += room;
        }
      };
    });

}  // namespace
}  // namespace anabranch::tensor::coalesce_tensor_op
