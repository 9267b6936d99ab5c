// Ops whose kernels for devices take and make sparse rows, as core/row_blocks.h has them there; those of all others see
// tensors alone.
#pragma once
#include <string>

namespace anabranch {

class OpDef;

void rows_on_devices(OpDef& def);  // .with(rows_on_devices)
bool takes_rows_on_devices(const std::string& type);

}  // namespace anabranch
