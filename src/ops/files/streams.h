// What the ops that reach files share. A path is the program's own: programs from strangers may not hold these ops
// (opdef/only_computes.h).
#pragma once
#include <string>

#include "core/tensor.h"
#include "core/value.h"
#include "opdef/op_def.h"

namespace anabranch::files {

// Files keep their order, and variables have the shapes that files give them.
inline constexpr unsigned kReaches = kOrdered | kDynamic;

// What a file says is known when it is read.
inline void known_when_read(InferContext& /*c*/) {}

void check_path(const std::string& path);

// The tensor with its float32 numbers as float16; others as they are.
Tensor as_float16(const Tensor& tensor);

// The stream of a value as files hold it. InvalidArgument: it holds neither a tensor nor sparse rows.
std::string stream_of(const Value& value, const std::string& name, bool as_half);

// A file that takes its place when all of it is written. InvalidArgument: it is there and may not be replaced.
void write_file(const std::string& path, bool overwrite, const std::string& bytes);

}  // namespace anabranch::files
