// Puts an op into a block the way every caller does: schema check (slots, attributes, defaults), creation of missing
// output variables, kind, dtype and shape inference. Bad input raises before anything is changed.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ir/program.h"
#include "opdef/op_def.h"

namespace anabranch {

struct OpSpec {
  std::string type;
  std::vector<ir::Slot> inputs, outputs;
  AttrMap attrs;
};

// index: position in the block; empty: at the end. Missing output variables are created in the block. The op is given
// defaults for missing attributes, the attribute op_role when it has none, and the current source location.
ir::OpRef append_op(ir::Block& block, OpSpec spec, std::optional<size_t> index = {});

// The schema part alone, on an op already built (programs read from files, gradient ops): fills defaults, orders slots,
// converts attribute types. Unknown slots are refused; unknown attributes are kept (files of other versions have some).
void check_op(ir::Op& op);
// The name of every output that an op computes and nobody wants: each is a variable of its own.
inline constexpr const char* kDiscarded = "@DISCARDED@";
// A checked copy, to be run: programs come from files too, and kernels rely on what the check guarantees. Outputs that
// are only named are left out, intermediate ones that are not given are discarded ones.
ir::OpRef checked_copy(const ir::Op& op);
// The variables that the op writes: its outputs but for those that are only named.
std::vector<std::string> written_args(const ir::Op& op);
// The version of a variable that an op reads, where it says none itself (ir/versions.h); absent: the latest.
using VersionOf = std::function<std::optional<int>(const std::string& var)>;
// Shape inference of one op against the variables of its block: writes the metas of its outputs back.
void infer_op(ir::Block& block, const ir::Op& op, const VersionOf& version_of = {});

}  // namespace anabranch
