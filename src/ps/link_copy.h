// Writes the links of a growable table whose shards are on servers. The rows of a server are those of one moment. They
// belong to one moment on all servers if no worker sends gradients meanwhile, as in synchronous training, in which the
// others wait for the worker that saves.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ps/client.h"
#include "sparse/table_chain.h"

namespace anabranch::ps {

// Requests of Verb::kTable with more than two numbers: one of these, a number that the worker has drawn for its save,
// and further ones.
enum class LinkRequest : int64_t {
  kState = 0,  // answered with the checksum of the link since which changes are recorded
  kBegin = 1,  // 1: all rows and the changes, 0: the changes; answered with the header, and the keys that are gone
  kNext = 2,   // number of the part; answered with rows, changed rows, and whether there are more
  kEnd = 3,    // checksum of the link that was written
};

// Of each server; 0: changes are not recorded. Waits.
std::vector<uint64_t> recorded_since(const std::vector<Remote>& servers);

// A link of the rows of a moment, from all servers. The moment is the construction. Waits for the servers. Without
// end(), they keep the changes for the next cut, and drop this one when they begin it, or a snapshot a minute later.
class ServerCut {
 public:
  ServerCut(std::vector<Remote> servers, bool whole);
  ServerCut(const ServerCut&) = delete;

  // As for sparse::write_links.
  sparse::LinkSums write(const std::string& name, sparse::LinkPlace place, io::AtomicFile* whole,
                         io::AtomicFile* changes);
  // The files stand under their names: servers record changes since this link.
  void end(uint64_t link);

 private:
  MessageRef ask(const Remote& server, LinkRequest what, int64_t number) const;

  const std::vector<Remote> servers_;
  int64_t token_;
  bool has_changes_ = true;
  sparse::TableHeader header_{};
  std::vector<int64_t> gone_;
};

}  // namespace anabranch::ps
