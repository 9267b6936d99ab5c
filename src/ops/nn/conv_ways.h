// The choice between the implementations of a pass of a float32 convolution, by their estimated times: rows
// (ops/nn/conv_rows.h), the kernel library, or loops over pixels (ops/nn/conv_pixels.h). Stateless; thread-safe.
#pragma once
#include "ops/nn/conv.h"

namespace anabranch::nn {

// For kForward independent of the batch.
bool rows_are_faster(ConvPass pass, const ConvDims& d);

// Of the sums of a filter: whether a row belongs to an input channel and vectors hold output channels, or the other
// way round.
bool filter_rows_are_inputs(const ConvDims& d);

}  // namespace anabranch::nn
