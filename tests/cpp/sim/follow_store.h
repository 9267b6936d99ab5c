// The store of a server in FollowRun, and the model that follows it.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_files.h"
#include "engine/served_links.h"
#include "opdef/append_op.h"
#include "ps/link_copy.h"
#include "sim/follow.h"

namespace anabranch::ps::sim {

inline constexpr uint32_t kDenseVariable = 0, kGrowable = 1;

// Keys of all steps.
inline std::vector<int64_t> all_keys() {
  std::vector<int64_t> keys{0, 1, 2};
  for (int64_t k = 10; k < 15; ++k) keys.push_back(k);
  for (int64_t k = 100; k < 200; ++k) keys.push_back(k);
  return keys;
}

inline std::vector<int64_t> keys_of_step(int worker, int step) {
  return {step % 3, 10 + (step + worker) % 5, 100 + step / 2 * 4 + worker};
}

// w counts the updates; rows of the table follow its rules.
class FollowRun::Store final : public ps::Store {
 public:
  Store(const GrownRules& rules, FollowDefect planted) : planted_(planted), grown_(rules), w_(filled(0, 1)) {}
  uint32_t number(std::string_view name) const override { return name == "w" ? kDenseVariable : kGrowable; }
  std::string name(uint32_t number) const override { return number == kDenseVariable ? "w" : "t"; }
  uint32_t variables() const override { return 2; }
  void apply(std::span<const Change> changes) override {
    for (const Change& c : changes) {
      c.rows ? grown_.add(c) : void(*w_.mutable_data<float>() += c.dense.data<float>()[0]);
    }
  }
  void read(uint32_t, Message* into) const override { into->add(kDenseVariable, w_); }
  void read_rows(uint32_t, std::span<const int64_t>, Message*) const override {}
  void read_link(uint32_t variable, std::span<const int64_t> request, Message* into) override {
    const bool starts = request[0] == static_cast<int64_t>(LinkRequest::kBegin);
    Message whole(Verb::kTable);
    links_.handle(variable, grown_.table(), request, starts ? &whole : into);
    if (!starts) return;
    at_begin_ = {rows(), w_.data<float>()[0], ""};
    for (int i = 0; i < whole.parts(); ++i) {
      if (i == 2 && planted_ == FollowDefect::kGoneKeysAreKept) {
        into->add_ids(variable, {});
      } else {
        into->add_copy(whole, i);
      }
    }
  }
  std::vector<std::string> kept() const override { return {"w", "t"}; }
  std::unique_ptr<Saving> begin_save() const override {
    auto saving = std::make_unique<SavedCopies>();
    saving->add("w", w_);
    grown_.save(saving.get(), "t");
    return saving;
  }
  void load(const std::string& name, const Tensor& value) override {
    name == "w" ? w_.copy_from(value) : grown_.load(value);
  }

  const GrownTable& grown() const { return grown_; }
  float dense() const { return w_.data<float>()[0]; }
  const Moment& at_begin() const { return at_begin_; }
  std::map<int64_t, std::vector<float>> rows() const {
    const std::vector<int64_t> keys = grown_.table()->keys();
    const std::vector<float> values = rows_of(*grown_.table(), keys);
    std::map<int64_t, std::vector<float>> out;
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* row = values.data() + i * GrownTable::kWidth;
      out[keys[i]] = {row, row + GrownTable::kWidth};
    }
    return out;
  }

 private:
  const FollowDefect planted_;
  GrownTable grown_;
  Tensor w_;
  ServedLinks links_;
  Moment at_begin_;  // of the last link that was begun
};

// Answers the rows of ids, and w.
inline Model following_model() {
  Model model{ir::Program::make(), Scope::make(), {"ids"}, {"rows", "answer"}};
  ir::Block& block = model.program->global_block();
  block.create_var({.name = "ids", .shape = {kUnknown, 1}, .dtype = DType::kInt64});
  block.create_var(
      {.name = "t", .kind = VarKind::kSelectedRows, .shape = {kUnknown, GrownTable::kWidth}, .persistable = true});
  block.create_var({.name = "w", .shape = {1}, .persistable = true});
  append_op(block, {"lookup_growable",
                    {{"W", {"t"}}, {"Ids", {"ids"}}},
                    {{"Out", {"rows"}}},
                    {{"width", GrownTable::kWidth}, {"last_is_one", true}, {"is_test", true}}});
  append_op(block, {"assign", {{"X", {"w"}}}, {{"Out", {"answer"}}}, {}});
  sparse::TableOptions o;
  o.width = GrownTable::kWidth;
  sparse::GrowableTable::put(model.scope->var("t"), std::make_shared<sparse::GrowableTable>("t", o));
  model.scope->var("w")->as<Tensor>().copy_from(filled(0, 1));
  return model;
}

}  // namespace anabranch::ps::sim
