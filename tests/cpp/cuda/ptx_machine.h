// Runs kernels of PTX on the host, lane after lane. Memory is that of the host: what a kernel touches beyond the ranges
// that it is given is an error, as is an instruction that is not known.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "ptx_program.h"

namespace anabranch::cuda {

struct PtxRange {
  const void* begin;
  uint64_t bytes;
  bool written;
};

// `blocks` blocks of `lanes` lanes, of which those from `first` on are run.
struct PtxGrid {
  uint32_t blocks = 1, lanes = 1, first = 0;
};

class PtxMachine {
 public:
  explicit PtxMachine(const std::string& text) : program_(text) {}
  // std::runtime_error where it fails.
  void run(const std::string& entry, PtxGrid grid, std::span<const std::byte> args,
           std::span<const PtxRange> memory) const;

 private:
  PtxProgram program_;
};

}  // namespace anabranch::cuda
