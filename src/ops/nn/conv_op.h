// Convolutions and transposed convolutions as operators: the same slots, attributes and kernels, with input and output
// of the convolution swapped.
#pragma once
#include <functional>

#include "ops/declare/declare.h"
#include "ops/nn/conv.h"

namespace anabranch::nn {

struct ConvForm {
  int axes;  // 2: images; 3: volumes
  bool transposed;
  ConvDims (*dims)(const ir::Op& op, const Shape& input, const Shape& filter);  // of the convolution
  Shape (*output)(const ConvDims& d);                                           // of the operator
};

// The attributes, shape function, gradient and kernels of all forms.
std::function<void(OpDef&)> convolution(const ConvForm& form);
std::function<void(OpDef&)> convolution_gradient(const ConvForm& form);

// Attributes of Fluid's fused forms, which are rejected.
void fusion_attrs(OpDef& def);

// A fused form that would change results is never ignored silently.
std::function<void(const bool&)> refuse_fusion(const char* op);

}  // namespace anabranch::nn
