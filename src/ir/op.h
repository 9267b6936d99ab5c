// An operation of a block: type, arguments by slot, attributes, and the user's line that created it. An Op is data;
// opdef/ defines what its type means.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/attr.h"
#include "ir/source_loc.h"

namespace anabranch::ir {

// Bits of the attribute op_role.
namespace role {
inline constexpr int kForward = 0x0000;
inline constexpr int kBackward = 0x0001;
inline constexpr int kOptimize = 0x0002;
inline constexpr int kRpc = 0x0004;
inline constexpr int kDist = 0x0008;
inline constexpr int kLrSched = 0x0010;
inline constexpr int kLoss = 0x0100;  // or-ed
inline constexpr int kNotSpecified = 0x1000;
}  // namespace role

// Number of an op that draws random numbers without a seed, among those of its program, from 1. Fluid ignores this
// attribute; it preserves the op's random numbers when other ops are removed.
inline constexpr const char* kDrawNumber = "op_draw_number";

struct Slot {
  std::string name;
  std::vector<std::string> args;  // names of variables; kEmptyVar for "none"
};

class Op {
 public:
  std::string type;
  std::vector<Slot> inputs, outputs;  // in the order of the schema
  AttrMap attrs;
  SourceLoc made_at;

  const std::vector<std::string>& input(std::string_view slot) const { return find(inputs, slot); }  // {} when absent
  const std::vector<std::string>& output(std::string_view slot) const { return find(outputs, slot); }
  void set_input(const std::string& slot, std::vector<std::string> args) { set(&inputs, slot, std::move(args)); }
  void set_output(const std::string& slot, std::vector<std::string> args) { set(&outputs, slot, std::move(args)); }
  std::vector<std::string> input_args() const;  // all, without kEmptyVar
  std::vector<std::string> output_args() const;
  void rename_input(const std::string& from, const std::string& to);
  void rename_output(const std::string& from, const std::string& to);

  bool has_attr(std::string_view name) const;
  template <class T> const T& attr(std::string_view name) const;       // T: an alternative of Attr
  int role() const;                                                    // op_role, 0 when absent
  std::vector<std::pair<std::string, std::string>> role_vars() const;  // op_role_var as (parameter, gradient) pairs
  std::vector<int> sub_blocks() const;                                 // indices in BLOCK and BLOCKS attributes

  // "#12 mul -> fc_0.tmp_0 (forward, block 0)  made at ..."; index < 0: without number
  std::string describe(int index, int block) const;

 private:
  static const std::vector<std::string>& find(const std::vector<Slot>& slots, std::string_view name);
  static void set(std::vector<Slot>* slots, const std::string& name, std::vector<std::string> args);
};

using OpRef = std::shared_ptr<Op>;

}  // namespace anabranch::ir
