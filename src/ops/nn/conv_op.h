// Convolutions and their transposes as operators: the same slots, attributes and kernels, in which input and output of
// the convolution change places.
#pragma once
#include <functional>

#include "ops/declare/declare.h"
#include "ops/nn/conv.h"

namespace anabranch::nn {

struct ConvForm {
  bool transposed;
  ConvDims (*dims)(const ir::Op& op, const Shape& input, const Shape& filter);  // of the convolution
  Shape (*output)(const ConvDims& d);                                           // of the operator
};

// Slots but for the docs of Input, Filter and Output, attributes, shape function, gradient and kernels.
std::function<void(OpDef&)> convolution(const ConvForm& form);
std::function<void(OpDef&)> convolution_gradient(const ConvForm& form);

// A fused form that would change numbers is never left out in silence.
std::function<void(const bool&)> refuse_fusion(const char* op);

}  // namespace anabranch::nn
