// Convolutions and their transposes as operators: the same slots, attributes and kernels, in which input and output of
// the convolution change places.
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

// Attributes that all forms share, shape function, gradient and kernels.
std::function<void(OpDef&)> convolution(const ConvForm& form);
std::function<void(OpDef&)> convolution_gradient(const ConvForm& form);

// Attributes of fused forms in Fluid, which are refused.
void fusion_attrs(OpDef& def);

// A fused form that would change numbers is never left out in silence.
std::function<void(const bool&)> refuse_fusion(const char* op);

}  // namespace anabranch::nn
