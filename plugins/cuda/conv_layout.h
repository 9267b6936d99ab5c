// A convolution's operands as cuDNN sees them. It knows paddings that are the same on both sides, filters that lie as
// images do, and volumes with their channels first: where an operand is stored otherwise, it is copied into the
// workspace, or out of it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "errors.h"
#include "ops/device/args_library.h"

namespace anabranch::cuda {

enum ConvRole : uint8_t { kImage, kFilter, kOutput };

struct ConvOperand {
  std::vector<int64_t> extents, strides;  // as stored: batch, channels, space
  std::vector<int64_t> seen, seen_strides;
  int64_t first = 0;    // of the elements seen, where the stored ones begin
  bool staged = false;  // what cuDNN sees lies in the workspace
  size_t at = 0;        // there, in bytes

  int64_t count() const;
  int64_t seen_count() const;
  bool padded() const { return extents != seen; }
};

struct ConvLayout {
  // channels_last: how cuDNN is to see images.
  ConvLayout(const device::ConvDesc& desc, bool channels_last, size_t element_bytes);

  std::array<ConvOperand, 3> operands;  // by role
  std::vector<int> padding, stride, dilation;
  bool channels_last;
  size_t room = 0;  // of all that is staged
};

// The layouts that are worth trying, the best first: cuDNN has not everything with channels last.
std::vector<bool> layouts_of(const device::ConvDesc& desc);

size_t rounded_up(size_t bytes);  // to where another piece of a workspace may begin

std::vector<int> narrow(const std::vector<int64_t>& v);  // Unsupported when cuDNN cannot count so far

// Copies the stored elements of an operand to what cuDNN sees of it (`in`), or back.
void copy_elements(cudaStream_t stream, const ConvOperand& operand, size_t element_bytes, void* stored, void* seen,
                   bool in);

}  // namespace anabranch::cuda
