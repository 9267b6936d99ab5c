// Durability levels of a server's variables, if its tables differ: the part of a push for the journal, and whether it
// is flushed before the push is answered. An omitted part leaves a mark, so that a server that is restored from the
// journal can count what it lacks.
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

  // Whether all variables have one level: then messages are stored unchanged.
  bool uniform() const { return tables_.empty(); }
  // The part of a message for the journal.
  MessageRef kept_of(const MessageRef& message) const;
  bool flushed(const Message& message) const;
  // Tables of which kept_of() has omitted something.
  std::set<uint32_t> left_out(const Message& kept) const;

 private:
  Durability of(uint32_t variable) const;
  bool is_left_out(const Message& message, int part) const;

  const Store& store_;
  const Durability otherwise_;
  std::map<uint32_t, Durability> tables_;
};

}  // namespace anabranch::ps
