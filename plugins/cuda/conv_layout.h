// A convolution's operands as cuDNN accepts them: equal padding on both sides, filters in the layout of images, and
// volumes with channels first. An operand that is stored otherwise is copied into the workspace, or out of it.
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
  int64_t first = 0;    // index of the first stored element among cuDNN's
  bool staged = false;  // cuDNN's operand is in the workspace
  size_t at = 0;        // its offset there, in bytes

  int64_t count() const;
  int64_t seen_count() const;
  bool padded() const { return extents != seen; }
};

struct ConvLayout {
  // channels_last: the layout for cuDNN.
  ConvLayout(const device::ConvDesc& desc, bool channels_last, size_t element_bytes);

  std::array<ConvOperand, 3> operands;  // by role
  std::vector<int> padding, stride, dilation;
  bool channels_last;
  size_t room = 0;  // of all staged operands
};

// The layouts to try, the best first: cuDNN does not support everything with channels last.
std::vector<bool> layouts_of(const device::ConvDesc& desc);

size_t rounded_up(size_t bytes);  // to the alignment of workspace buffers

std::vector<int> narrow(const std::vector<int64_t>& v);  // Unsupported if cuDNN's integers cannot hold them

// Copies the stored elements of an operand to cuDNN's layout (`in`), or back.
void copy_elements(cudaStream_t stream, const ConvOperand& operand, size_t element_bytes, void* stored, void* seen,
                   bool in);

}  // namespace anabranch::cuda
