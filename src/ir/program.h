// A Program: blocks of variables and ops. It is data that layers append to, append_backward extends, files hold and
// the engine compiles. Block 0 is the global block; the others are bodies of control flow.
// Every change increases version(), so that owners of a compiled program see that it is outdated. Not thread-safe.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "ir/var.h"

namespace anabranch::ir {

inline constexpr int64_t kFileVersion = 1008005;  // what Fluid 1.8.5 writes

class Program;
using VarRef = std::shared_ptr<Var>;

class Block {
 public:
  Block(Program* program, int idx, int parent) : program_(program), idx_(idx), parent_(parent) {}
  Block(const Block&) = delete;

  int idx() const { return idx_; }
  int parent() const { return parent_; }  // -1 for the global block
  int forward_block = -1;                 // the block whose gradient this one computes
  Program& program() const { return *program_; }

  // Vars, in order of creation.
  const std::vector<VarRef>& vars() const { return vars_; }
  VarRef find_var(const std::string& name) const;            // here; null when absent
  VarRef find_var_recursive(const std::string& name) const;  // here, in the forward block, in the parents
  // Creates the variable, or returns the one of that name if it is equal; InvalidArgument if it differs in kind, dtype,
  // lod_level or (known) shape.
  VarRef create_var(const Var& var);
  void remove_var(const std::string& name);
  void rename_var(const std::string& from, const std::string& to);  // in ops of this block too

  // Ops, in program order. These add to the list only: schema checks and inference are opdef/append_op.h. Versions that
  // later ops read (ir/versions.h) stay right.
  const std::vector<OpRef>& ops() const { return ops_; }
  OpRef insert_op(size_t index, OpRef op);
  OpRef push_op(OpRef op) { return insert_op(ops_.size(), std::move(op)); }
  void remove_ops(size_t first, size_t last);

 private:
  friend class Program;  // renumbers blocks

  Program* program_;
  int idx_, parent_;
  std::vector<VarRef> vars_;
  std::unordered_map<std::string, VarRef> by_name_;
  std::vector<OpRef> ops_;
  bool reads_versions_ = false;  // an op that reads versions has been added (ir/versions.h)
};

class Program : public std::enable_shared_from_this<Program> {
 public:
  static std::shared_ptr<Program> make() { return std::shared_ptr<Program>(new Program()); }
  std::shared_ptr<Program> clone() const;  // deep

  Block& global_block() const { return *blocks_[0]; }
  Block& block(int idx) const;  // InvalidArgument if there is none
  int num_blocks() const { return static_cast<int>(blocks_.size()); }
  Block& create_block(int parent);
  // Drops blocks that no op refers to and renumbers the rest.
  void drop_unused_blocks();

  int64_t random_seed = 0;              // 0: drawn at random
  int draws = 0;                        // largest kDrawNumber in use
  int64_t file_version = kFileVersion;  // ProgramDesc.version
  // The file it was read from and what we would have written then: an unchanged program is written as it was read, with
  // the order and the fields that other writers give theirs.
  std::string read_bytes, read_canonical;

  uint64_t id() const { return id_; }  // never reused: a cache key
  uint64_t version() const { return version_; }
  void touch() { ++version_; }

 private:
  Program();

  std::deque<std::unique_ptr<Block>> blocks_;
  uint64_t id_, version_ = 0;
};
using ProgramRef = std::shared_ptr<Program>;

}  // namespace anabranch::ir
