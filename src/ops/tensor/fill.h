// Shared by ops that make constant tensors.
#pragma once
#include <cstdlib>
#include <string>

#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/whole.h"
#include "ops/kernels/wide.h"

namespace anabranch::tensor {

// A number given as float and as text, which preserves the digits of large integers.
struct Number {
  double real = 0;
  int64_t integer = 0;

  Number(float value, const std::string& text) : real(static_cast<double>(value)), integer(whole<int64_t>(real)) {
    if (text.empty()) return;
    char* end = nullptr;
    real = std::strtod(text.c_str(), &end);
    AB_CHECK(end != text.c_str() && *end == '\0', InvalidArgument, "str_value must be a number, got \"{}\"", text);
    integer = std::strtoll(text.c_str(), &end, 10);
    if (*end != '\0') integer = whole<int64_t>(real);
  }
  template <class T> T as() const {
    if constexpr (std::is_same_v<T, bool>)
      return real != 0;
    else if constexpr (std::is_same_v<T, int64_t>)
      return integer;
    else if constexpr (std::is_integral_v<T>)
      return whole<T>(real);  // a number beyond int32 gives its least value, as in Fluid 1.8.5
    else
      return static_cast<T>(real);
  }
};

template <class T> void fill(const KernelContext& c, Tensor* out, T value) {
  T* to = out->mutable_data<T>();
  c.parallel_for(out->numel(), kCheapGrain,
                 [=](int64_t begin, int64_t end) { in_wide_vectors([=] { std::fill(to + begin, to + end, value); }); });
}

inline DType dtype_attr(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

}  // namespace anabranch::tensor
