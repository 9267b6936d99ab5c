// Functions of the process that programs call by number: what a user gave to the op py_func. A program that names one
// runs in the process that made it. Any thread may use these functions; entries stay until the process ends, because a
// program may be run at any time.
#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace anabranch {

// Inputs may be null: no value was made. Outputs may be null: nobody wants them. Others are filled, in any shape.
using Callable = std::function<void(const std::vector<const Tensor*>& ins, const std::vector<Tensor*>& outs)>;

int add_callable(Callable callable);    // its number, from 0
const Callable& find_callable(int id);  // NotFound when this process has none of that number

}  // namespace anabranch
