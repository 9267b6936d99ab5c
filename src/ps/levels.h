// Which variables of a server survive what, where its tables differ: what of a push goes into the journal, and whether
// that is flushed before the push is answered. A part that is left out leaves a mark, so that a server which is made
// again from the journal can count what it does not have.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ps/history.h"
#include "ps/store.h"

namespace anabranch::ps {

class Levels {
 public:
  // NotFound: a table that the store does not have.
  Levels(const HistoryOptions& options, const Store& store);

  // Whether all variables are alike: then messages are kept as they are.
  bool uniform() const { return tables_.empty(); }
  // What of a message goes into the journal.
  MessageRef kept_of(const MessageRef& message) const;
  bool flushed(const Message& message) const;
  // Tables of which kept_of() has left something out.
  std::set<uint32_t> left_out(const Message& kept) const;

 private:
  Durability of(uint32_t variable) const;
  bool is_left_out(const Message& message, int part) const;

  const Store& store_;
  const Durability otherwise_;
  std::map<uint32_t, Durability> tables_;
};

}  // namespace anabranch::ps
