// Stores and servers with defects, with which the harness is tried.
#pragma once
#include <memory>
#include <utility>

#include "ps_cluster.h"
#include "sim/counting_table.h"
#include "sim/planted.h"

namespace anabranch::ps::sim {

inline constexpr int kVariables = 2;
inline constexpr uint32_t kTable = kVariables;

class DefectiveStore final : public Store {
 public:
  explicit DefectiveStore(Planted planted) : planted_(planted) {}
  uint32_t number(std::string_view name) const override { return name == "t" ? kTable : toy_.number(name); }
  std::string name(uint32_t number) const override { return number == kTable ? "t" : toy_.name(number); }
  void apply(std::span<const Change> changes) override {
    ++applied_;
    if (planted_ == Planted::kOneVariableIsForgotten && applied_ % 7 == 0) changes = changes.subspan(1);
    apply_once(changes);
    if (planted_ == Planted::kUpdatesComeTwice && applied_ % 20 == 0) apply_once(changes);
  }
  uint32_t variables() const override { return toy_.variables() + 1; }
  void read(uint32_t variable, Message* into) const override { toy_.read(variable, into); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    toy_.read_rows(variable, ids, into);
  }
  std::vector<std::string> kept() const override {
    auto names = toy_.kept();
    names.push_back("t");
    return names;
  }
  std::unique_ptr<Saving> begin_save() const override {
    auto values = toy_.begin_save();
    if (planted_ == Planted::kStateIsOfTheSnapshotBefore) {
      if (!before_) before_ = toy_.begin_save();
      std::swap(values, before_);
    }
    return std::make_unique<Both>(std::move(values), table_.begin_save(planted_));
  }
  void load(const std::string& name, const Tensor& value) override {
    if (planted_ == Planted::kStateIsNotLoaded) return;
    name == "t" ? table_.load(value) : toy_.load(name, value);
  }
  const CountingTable& table() const { return table_; }
  float value(int variable, int i) const { return toy_.values_[static_cast<size_t>(variable)].data<float>()[i]; }

 private:
  class Both final : public Saving {
   public:
    Both(std::unique_ptr<Saving> first, std::unique_ptr<Saving> second)
        : first_(std::move(first)), second_(std::move(second)) {}
    bool next(const Put& put) override {
      if (first_ && !first_->next(put)) {
        first_ = nullptr;
        return true;
      }
      return first_ || second_->next(put);
    }

   private:
    std::unique_ptr<Saving> first_, second_;
  };

  void apply_once(std::span<const Change> changes) {
    std::vector<Change> toys;
    for (const Change& c : changes) {
      c.variable == kTable ? table_.add(c) : toys.push_back(c);
    }
    toy_.apply(toys);
  }

  const Planted planted_;
  ToyStore toy_{kVariables};
  CountingTable table_;
  int64_t applied_ = 0;
  mutable std::unique_ptr<Saving> before_;
};

class DefectiveServer final : public Server {
 public:
  DefectiveServer(const ServerOptions& options, Store& store, Planted planted)
      : Server(options, store), planted_(planted) {}

 protected:
  void keep(std::span<const MessageRef> messages) override {
    const bool forgets = planted_ == Planted::kJournalIsNotWritten ||
                         (planted_ == Planted::kLeasedAndNotWritten && messages[0]->header().verb == Verb::kTakeFile);
    if (!forgets) Server::keep(messages);
  }

 private:
  const Planted planted_;
};

}  // namespace anabranch::ps::sim
