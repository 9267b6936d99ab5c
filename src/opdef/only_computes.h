// The ops that an untrusted model may contain: those that only compute outputs from inputs - no file, no network, no
// process, no call back into Python. An op qualifies only if it is listed here.
#pragma once
#include <string>
#include <string_view>

namespace anabranch {

// By the family that declares it, if all of its ops except ordered ones only compute; or by the trait kOnlyComputes.
// False for unknown types.
bool only_computes(const std::string& type);

const char* op_file(const std::string& type);         // the source file that declares it; null for unknown types
std::string_view op_family(const std::string& type);  // "math" of src/ops/math/scale.cc; "" outside of src/ops

}  // namespace anabranch
