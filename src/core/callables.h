// Functions of the process that programs call by number, such as the callback of the op py_func. A program that names
// one runs in the process that created it. Any thread may use these functions; entries stay until the process exits,
// because a program may run at any time.
#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace anabranch {

// Inputs may be null: they have no value. Outputs may be null: they are not requested. Others are filled, in any shape.
using Callable = std::function<void(const std::vector<const Tensor*>& ins, const std::vector<Tensor*>& outs)>;

int add_callable(Callable callable);    // its number, from 0
const Callable& find_callable(int id);  // NotFound if this process has none of that number

}  // namespace anabranch
