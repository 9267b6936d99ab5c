// The number of arithmetic operations of products and convolutions, for .flops() of their ops.
#pragma once
#include <string_view>

#include "opdef/work_context.h"

namespace anabranch {

// [B, M, K] x [B, K, N] -> [B, M, N] in the slots X, Y and Out.
double product_flops(const WorkContext& c);

// A filter [out, in / groups, ...] in the slot Filter, for Input. `at`: the images with one element for each
// application of a filter; an input of the op for transposed convolutions, else its Output.
double convolution_flops(const WorkContext& c, const Tensor* at);

// Gates [steps, n * size] in the slot Input, Weight [size, n * size]; twice in the gradient op.
double recurrent_flops(const WorkContext& c);

}  // namespace anabranch
