// Versions of variables that ops read. A variable that is written several times has several values in one run, and an
// op reads the latest one before it. A gradient op needs the value of its forward op; if that is an earlier one, the
// gradient op records it in an attribute that Fluid ignores. Otherwise the attribute is absent.
//
// A version is the number of ops of the block, before the reader, that had written the variable when the value was
// made: 0 is what it held before the block. An op that lists a variable among its outputs writes it once, whether or
// not it keeps what was there.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace anabranch::ir {

inline constexpr const char* kReadVersions = "op_read_versions";  // STRINGS, each "SLOT INDEX VERSION"

struct VersionRead {
  std::string slot;  // of the inputs
  size_t arg = 0;    // place in the slot
  int version = 0;
};

// InvalidArgument: the attribute cannot be read, or names no argument.
std::vector<VersionRead> version_reads(const Op& op);
void set_version_reads(Op& op, const std::vector<VersionRead>& reads);

// The version that argument `arg` of an input slot reads; absent: the latest before the op.
std::optional<int> version_read(const Op& op, std::string_view slot, size_t arg);

// How many of the ops [0, end) of the block write the variable.
int writes_before(const Block& block, const std::string& name, size_t end);

// Keeps the versions right when `op` is inserted at `index` (by = 1) or removed from it (by = -1), for the ops from
// `first` on that read a later version.
void shift_version_reads(Block& block, const Op& op, size_t index, size_t first, int by);

}  // namespace anabranch::ir
