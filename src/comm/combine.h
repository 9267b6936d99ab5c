// Elementwise combination of the numbers of two processes.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace anabranch::comm {

enum class Combine : uint8_t { kSum, kProd, kMax, kMin };  // by Fluid's numbers (reduce_type)
const char* combine_name(Combine how);

// Throws Unsupported if elements of this dtype cannot be combined.
void check_combines(Combine how, DType dtype);
// acc[i] = acc[i] `how` x[i]. The maximum and the minimum are NaN if either number is NaN.
void combine(Combine how, DType dtype, void* acc, const void* x, int64_t n);

}  // namespace anabranch::comm
