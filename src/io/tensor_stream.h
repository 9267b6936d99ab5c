// Tensors and sparse rows in Fluid's on-disk streams (little endian). Reading checks every size against what is left
// before it allocates.
#pragma once
#include <string>
#include <string_view>

#include "core/selected_rows.h"
#include "core/tensor.h"

namespace anabranch::io {

void write_tensor(const Tensor& tensor, std::string* out);  // appended; streams through row strides
void write_selected_rows(const SelectedRows& rows, std::string* out);

// Reads one tensor from the front of *in and moves *in past it. `what` names the variable and file in errors.
Tensor read_tensor(std::string_view* in, const std::string& what);
SelectedRows read_selected_rows(std::string_view* in, const std::string& what);

}  // namespace anabranch::io
