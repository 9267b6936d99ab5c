#include "engine/served_program.h"

#include <algorithm>
#include <charconv>

#include "base/event_time.h"
#include "base/flags.h"
#include "core/host_copy.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

constexpr std::string_view kTrainer = ".trainer_";

// Workers number their messages by name: "w@GRAD.trainer_1".
std::string_view without_trainer(std::string_view name) { return name.substr(0, name.rfind(kTrainer)); }

bool of_trainers(const std::vector<std::string>& names) {
  return !names.empty() &&
         std::all_of(names.begin(), names.end(), [](const auto& n) { return n.find(kTrainer) != std::string::npos; });
}

// Null: it is not a server's.
ir::OpRef listening_op(const ir::Program& program) {
  const auto& ops = program.global_block().ops();
  const auto at = std::find_if(ops.begin(), ops.end(), [](auto& op) { return op->has_attr("grad_to_block_id"); });
  return at == ops.end() ? nullptr : *at;
}

ir::OpRef find_listen(const ir::Program& program) {
  auto found = listening_op(program);
  AB_CHECK(found, InvalidArgument, "a server program has an op listen_and_serv in its first block, this one has none");
  return found;
}

}  // namespace

std::optional<std::string> served_endpoint(const ir::Program& program) {
  const ir::OpRef op = listening_op(program);
  return op ? std::optional(op->attr<std::string>("endpoint")) : std::nullopt;
}

ServedProgram::ServedProgram(ir::ProgramRef program, std::shared_ptr<Scope> scope)
    : program_(std::move(program)), scope_(std::move(scope)), listen_(find_listen(*program_)) {
  for (const std::string& pair : listen_->attr<std::vector<std::string>>("grad_to_block_id")) {
    const size_t colon = pair.rfind(':');
    int block = -1;
    const char* end = pair.data() + pair.size();
    const bool number = colon != pair.npos && std::from_chars(pair.data() + colon + 1, end, block).ptr == end;
    AB_CHECK(number && block > 0 && block < program_->num_blocks(), InvalidArgument,
             "listen_and_serv: grad_to_block_id must hold \"gradient:block\" with blocks 1 to {}, got \"{}\"",
             program_->num_blocks() - 1, pair);
    add(pair.substr(0, colon), block);
  }
  schedule_block_ = listen_->attr<int32_t>("lr_decay_block_id");
  AB_CHECK(schedule_block_ < program_->num_blocks(), InvalidArgument,
           "listen_and_serv: lr_decay_block_id must be below {}, got {}", program_->num_blocks(), schedule_block_);
  for (const auto& v : program_->global_block().vars()) {
    if (v->persistable && !numbers_.count(v->name)) add(v->name, -1);
  }
  for (const std::string& pair : listen_->attr<std::vector<std::string>>("sparse_grad_to_param")) {
    const size_t colon = pair.find(':');
    const auto gradient = numbers_.find(pair.substr(0, colon));
    const auto table = numbers_.find(colon == pair.npos ? "" : pair.substr(colon + 1));
    if (gradient != numbers_.end() && table != numbers_.end()) tables_[gradient->second] = table->second;
  }
}

uint32_t ServedProgram::table_of(uint32_t gradient) const {
  const auto it = tables_.find(gradient);
  return it == tables_.end() ? gradient : it->second;
}

uint32_t ServedProgram::add(const std::string& name, int block) {
  const auto number = static_cast<uint32_t>(entries_.size());
  entries_.push_back({name, block, scope_->share(name)});
  const Tensor* t = entries_.back().value->get<Tensor>();
  if (t && !t->place().on_host()) {
    const RunGate::Change change(&scope_->gate());
    bring_to_host(entries_.back().value->as<Tensor>());
  }
  numbers_.emplace(name, number);
  return number;
}

ps::ServerOptions ServedProgram::options() const {
  ps::ServerOptions o;
  o.name = listen_->attr<std::string>("endpoint");
  const int number = listen_->attr<int32_t>("distributed_mode");
  const auto mode = rpc::mode_of(number);
  AB_CHECK(mode, InvalidArgument, "listen_and_serv: distributed_mode must be 0 to 3, got {}", number);
  o.mode = *mode;
  o.trainers = listen_->attr<int32_t>("Fanin");
  o.job = listen_->attr<std::vector<std::string>>("job");
  return o;
}

std::map<std::string, ps::Durability> ServedProgram::table_durability() const {
  std::map<std::string, ps::Durability> out;
  for (const std::string& pair : listen_->attr<std::vector<std::string>>("table_durability")) {
    const size_t colon = pair.rfind(':');
    const std::string level = colon == pair.npos ? "" : pair.substr(colon + 1);
    AB_CHECK(level == "0" || level == "1" || level == "2", InvalidArgument,
             "listen_and_serv: table_durability must hold \"table:level\" with levels 0 to 2, got \"{}\"", pair);
    out[pair.substr(0, colon)] = static_cast<ps::Durability>(level[0] - '0' + 1);
  }
  return out;
}

std::string ServedProgram::server_name() const {
  const int32_t number = listen_->attr<int32_t>("pserver_id");
  if (number >= 0) return fmt::format("server-{}", number);
  std::string name = "server-" + listen_->attr<std::string>("endpoint");
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ':'; }, '_');
  return name;
}

uint32_t ServedProgram::number(std::string_view name) const {
  for (const std::string_view n : {name, without_trainer(name)}) {
    if (const auto it = numbers_.find(n); it != numbers_.end()) return it->second;
  }
  AB_THROW(NotFound, "the server at {} has no variable {}: it is placed at another server, or in no server program",
           listen_->attr<std::string>("endpoint"), name);
}

// Gradients, and variables of which workers keep a copy: their step counters.
bool ServedProgram::is_taken(const Entry& entry) {
  return entry.block >= 0 || entry.name.find(kTrainer) != std::string::npos;
}

bool ServedProgram::is_gradient(const std::string& name) const {
  const auto it = numbers_.find(name);
  return it != numbers_.end() && entries_[it->second].block >= 0;
}

void ServedProgram::apply(std::span<const ps::Change> changes) {
  Shapes what;
  uint32_t time = 0;
  for (const ps::Change& c : changes) {
    time = std::max(time, c.time);
    AB_CHECK(c.variable < entries_.size() && is_taken(entries_[c.variable]), InvalidArgument,
             "a worker sends {}, which is not a gradient for an update of this server",
             c.variable < entries_.size() ? entries_[c.variable].name : "an unknown variable");
    if (entries_[c.variable].block >= 0) what.emplace_back(c.variable, c.rows != nullptr);
  }
  for (const ps::Change& c : changes) {
    Value& value = *entries_[c.variable].value;
    if (c.rows) {
      auto& rows = value.as<SelectedRows>();
      rows.height = c.rows->height == rpc::Part::kAnyHeight ? kUnknown : c.rows->height;
      rows.rows = c.rows->rows;
      rows.value = c.rows->value;
    } else if (entries_[c.variable].block >= 0) {
      value.as<Tensor>() = c.dense;
    } else {
      value.as<Tensor>().copy_from(c.dense);  // the memory stays
    }
  }
  const EventTime of_messages(time);  // which the journal has
  updates(what).run({});
}

CompiledProgram& ServedProgram::updates(const Shapes& what) {
  auto& made = updates_[what];
  if (!made) {
    CompileOptions options;
    options.execution.num_threads = 1;  // workers of this process may occupy its threads while they wait for the answer
    made = std::make_unique<CompiledProgram>(make_updates(what), scope_, options);
  }
  return *made;
}

// Block 0 of a program with the ops of the schedule and of all blocks of these gradients.
ir::ProgramRef ServedProgram::make_updates(const Shapes& what) const {
  auto out = ir::Program::make();
  out->random_seed = program_->random_seed;
  std::vector<int> blocks;
  if (schedule_block_ > 0) blocks.push_back(schedule_block_);
  std::vector<int> mine;
  for (const auto& [variable, sparse] : what) mine.push_back(entries_[variable].block);
  std::sort(mine.begin(), mine.end());
  blocks.insert(blocks.end(), mine.begin(), mine.end());
  for (const int b : blocks) add_ops(program_->block(b), out->global_block(), what);
  return out;
}

// Without the ops that add up and average gradients of workers: the server has summed them in the order of workers, and
// workers have averaged them by weighting their losses.
void ServedProgram::add_ops(const ir::Block& from, ir::Block& to, const Shapes& what) const {
  std::string summed;
  for (const auto& op : from.ops()) {
    const auto outs = op->output_args();
    if (outs.size() == 1 && of_trainers(op->input_args()) && is_gradient(outs[0])) {
      summed = outs[0];
      continue;
    }
    const bool averages =
        !summed.empty() && find_op(op->type).is(kLinear) && outs == std::vector{summed} && op->input_args() == outs;
    if (averages) summed.clear();
    if (averages && !Flags::exact_fluid()) continue;
    for (const auto& names : {op->input_args(), op->output_args()}) {
      for (const auto& name : names) {
        const ir::VarRef found = from.find_var_recursive(name);
        AB_CHECK(found, NotFound, "op {} of a server's block {} names {}, which is in no block that can be seen",
                 op->type, from.idx(), name);
        ir::Var var = *found;
        for (const auto& [variable, sparse] : what) {
          if (entries_[variable].name != name) continue;
          var.kind = sparse ? VarKind::kSelectedRows : VarKind::kLoDTensor;
          var.persistable = false;
        }
        if (!to.find_var(name)) to.create_var(var);
      }
    }
    to.push_op(std::make_shared<ir::Op>(*op));
  }
}

}  // namespace anabranch
