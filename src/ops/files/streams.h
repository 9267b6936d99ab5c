// Shared by the ops that read or write files. A program chooses its own paths, so untrusted programs must not contain
// these ops (opdef/only_computes.h).
#pragma once
#include <string>

#include "core/tensor.h"
#include "core/value.h"
#include "opdef/op_def.h"

namespace anabranch::files {

// Kernels run in program order, and outputs take the shapes found in the files.
inline constexpr unsigned kReaches = kOrdered | kDynamic;

// Shapes are known only after the file has been read.
inline void known_when_read(InferContext& /*c*/) {}

void check_path(const std::string& path);

// The tensor with float32 converted to float16; other dtypes unchanged.
Tensor as_float16(const Tensor& tensor);

// Serializes a value in the file format. InvalidArgument: it is neither a tensor nor sparse rows.
std::string stream_of(const Value& value, const std::string& name, bool as_half);

// A file that appears under its name once it is complete. InvalidArgument: it exists and must not be replaced.
void write_file(const std::string& path, bool overwrite, const std::string& bytes);

}  // namespace anabranch::files
