// Kernels that are generated and compiled for the steps of a program.
#pragma once
#include <memory>
#include <string>

#include "kernels.h"
#include "ptx_functions.h"

namespace anabranch::cuda {

const PtxFunctions& step_functions();  // of step_functions.cu

// That of "element_steps/<type>" for a table; one for all programs that have the same steps. Unsupported: for another
// kernel there is none, or the driver does not compile it.
std::shared_ptr<const MadeKernel> make_step_kernel(const std::string& key, const void* table, size_t size);

}  // namespace anabranch::cuda
