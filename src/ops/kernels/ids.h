// Checks of integer inputs that index something. Always on: a wrong id would read or write foreign memory.
#pragma once
#include <cstdint>
#include <string>

#include "opdef/kernel_context.h"

namespace anabranch {

// Raises InvalidArgument for the first id outside [0, height), other than `allowed`. what: "lookup_table: Ids".
void check_ids(const char* what, const int64_t* ids, int64_t n, int64_t height, int64_t allowed);

// An integer tensor (int32 or int64) as int64: itself, or converted into scratch.
const int64_t* as_int64(const Tensor& t, Tensor* scratch);

}  // namespace anabranch
