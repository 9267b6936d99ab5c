// The state of a parameter server: the variables of a scope, updated by the blocks of a server program (the ops that
// listen_and_serv names). Gradients that arrive together are applied by one program, created at the first such set.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/scope.h"
#include "engine/compiled_program.h"
#include "engine/served_links.h"
#include "ps/server.h"
#include "ps/store.h"
#include "sparse/growable_table.h"

namespace anabranch {

// The address that a server's program names; none: it is another program.
std::optional<std::string> served_endpoint(const ir::Program& program);

class ServedProgram final : public ps::Store {
 public:
  // InvalidArgument if block 0 of the program has no listen_and_serv, or names missing blocks.
  ServedProgram(ir::ProgramRef program, std::shared_ptr<Scope> scope);

  ps::ServerOptions options() const;  // endpoint, mode and workers, from listen_and_serv
  std::map<std::string, ps::Durability> table_durability() const;
  std::string server_name() const;  // for files: the same at each start

  uint32_t number(std::string_view name) const override;
  std::string name(uint32_t number) const override { return entries_.at(number).name; }
  void apply(std::span<const ps::Change> changes) override;
  uint32_t table_of(uint32_t gradient) const override;
  uint32_t variables() const override { return static_cast<uint32_t>(entries_.size()); }
  ps::Extent extent(uint32_t variable) const override;
  void read(uint32_t variable, rpc::Message* into) const override;
  void read_rows(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) const override;
  void read_changed(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) const override;
  std::vector<int64_t> take_told(uint32_t variable) override;
  void train_rows(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) override;
  void read_table(uint32_t variable, uint64_t part, int bits, rpc::Message* into) const override;
  void read_link(uint32_t variable, std::span<const int64_t> request, rpc::Message* into) override;
  // Everything the program keeps from step to step: parameters, the state of their rules, counters.
  std::vector<std::string> kept() const override;
  std::unique_ptr<ps::Saving> begin_save() const override;
  void load(const std::string& name, const Tensor& value) override;

 private:
  struct Entry {
    std::string name;
    int block = -1;  // of this gradient; -1: a variable
    std::shared_ptr<Value> value;
  };
  using Shapes = std::vector<std::pair<uint32_t, bool>>;  // changed variables, and whether each is sparse

  template <class Fn> void each_kept(Fn&& fn) const;
  uint32_t add(const std::string& name, int block);
  static bool is_taken(const Entry& entry);
  bool is_gradient(const std::string& name) const;
  const Tensor& tensor_of(uint32_t variable) const;
  std::shared_ptr<sparse::GrowableTable> table_at(uint32_t variable) const;  // null if it is not a growable table
  void find_rows(sparse::GrowableTable& table, uint32_t variable, std::span<const int64_t> ids, bool train,
                 rpc::Message* into) const;
  CompiledProgram& updates(const Shapes& what);
  ir::ProgramRef make_updates(const Shapes& what) const;
  void add_ops(const ir::Block& from, ir::Block& to, const Shapes& what) const;

  const ir::ProgramRef program_;
  const std::shared_ptr<Scope> scope_;
  ir::OpRef listen_;
  int schedule_block_ = -1;
  std::vector<Entry> entries_;
  std::map<uint32_t, uint32_t> tables_;  // by their gradient
  mutable std::map<std::string, uint32_t, std::less<>> numbers_;
  std::map<Shapes, std::unique_ptr<CompiledProgram>> updates_;
  mutable ServedLinks links_;
};

}  // namespace anabranch
