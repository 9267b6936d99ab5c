// Stores and servers with defects, with which the harness is tried.
#pragma once
#include <map>

#include "ps_cluster.h"

namespace anabranch::ps::sim {

inline constexpr int kVariables = 2;

// Defects that the histories have to find.
enum class Planted {
  kNone,
  kJournalIsNotWritten,
  kSyncDoesNothing,
  kFolderSyncDoesNothing,
  kRequestsLoseTheirNumber,     // nobody can tell that one has come before
  kAcknowledgedBeforeItCame,    // the network answers for the server
  kOneVariableIsForgotten,      // of an update
  kStateIsNotLoaded,            // numbers of requests are, values are not
  kStateIsOfTheSnapshotBefore,  // values are saved late, numbers of requests are not
  kIncarnationStays,            // a server that comes again has the old one's
  kUpdatesComeTwice,            // each hundredth
  kLossIsNotCounted,
  kDefects,
  // Of GEO and of sums by name, beside some of those.
  kChangedRowsAreNotTold = kDefects,
  kSumsForgetOne,
  // Of queues of files, beside some of those.
  kHandedOutAndNotWritten,
  kBeatsDoNotCome,
  kTheDeadKeepTheirFiles,
};

class DefectiveStore final : public Store {
 public:
  explicit DefectiveStore(Planted planted) : planted_(planted) {}
  uint32_t number(std::string_view name) const override { return toy_.number(name); }
  std::string name(uint32_t number) const override { return toy_.name(number); }
  void apply(std::span<const Change> changes) override {
    ++applied_;
    if (planted_ == Planted::kOneVariableIsForgotten && applied_ % 7 == 0) changes = changes.subspan(1);
    toy_.apply(changes);
    if (planted_ == Planted::kUpdatesComeTwice && applied_ % 20 == 0) toy_.apply(changes);
  }
  uint32_t variables() const override { return toy_.variables(); }
  void read(uint32_t variable, Message* into) const override { toy_.read(variable, into); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    toy_.read_rows(variable, ids, into);
  }
  void save(const std::function<void(const std::string& name, const Tensor& value)>& put) const override {
    if (planted_ != Planted::kStateIsOfTheSnapshotBefore) return toy_.save(put);
    std::map<std::string, Tensor> now;
    toy_.save([&](const std::string& name, const Tensor& value) { now[name].copy_from(value); });
    for (const auto& [name, value] : before_.empty() ? now : before_) put(name, value);
    before_ = std::move(now);
  }
  void load(const std::string& name, const Tensor& value) override {
    if (planted_ != Planted::kStateIsNotLoaded) toy_.load(name, value);
  }
  float value(int variable, int i) const { return toy_.values_[static_cast<size_t>(variable)].data<float>()[i]; }

 private:
  const Planted planted_;
  ToyStore toy_{kVariables};
  int64_t applied_ = 0;
  mutable std::map<std::string, Tensor> before_;
};

class DefectiveServer final : public Server {
 public:
  DefectiveServer(const ServerOptions& options, Store& store, Planted planted)
      : Server(options, store), planted_(planted) {}

 protected:
  void keep(std::span<const MessageRef> messages) override {
    const bool forgets = planted_ == Planted::kJournalIsNotWritten || (planted_ == Planted::kHandedOutAndNotWritten &&
                                                                       messages[0]->header().verb == Verb::kTakeFile);
    if (!forgets) Server::keep(messages);
  }

 private:
  const Planted planted_;
};

}  // namespace anabranch::ps::sim
