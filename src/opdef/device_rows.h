// Ops whose device kernels read and write sparse rows, in the form of core/row_blocks.h; all others see tensors only.
#pragma once
#include <string>

namespace anabranch {

class OpDef;

void rows_on_devices(OpDef& def);  // .with(rows_on_devices)
bool takes_rows_on_devices(const std::string& type);

}  // namespace anabranch
