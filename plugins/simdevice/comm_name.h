// What the id of a communicator says: which process has made it, and under which descriptor that process holds the
// memory in which all meet. Whoever is told the id opens that descriptor; a key tells that it is still the same file.
// A file in memory without a name leaves nothing behind, however its processes end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "descriptor.h"

namespace anabranch::simdevice {

struct CommName {
  uint64_t number = 0;
  int64_t process = 0;
  uint64_t start = 0;  // of the process, as Peer takes it
  int file = -1;
  uint64_t key = 0;

  std::string shown() const;  // "simulated 1 of process 4711"
  std::string id() const;     // at most 127 characters
  // AB_UNSUPPORTED when the text is none of id().
  static CommName read(const std::string& id);
};

struct CommOpening {  // with which the memory begins; the rest is zeros
  uint64_t key = 0;
  uint64_t side = 0;  // bytes that a rank may give to one collective
};
// Of so many bytes, which take no memory before they are written. Sets name.file and name.key.
Descriptor make_comm_memory(CommName& name, uint64_t side, size_t bytes);
// AB_UNAVAILABLE when the process has ended or holds the memory no more.
Descriptor open_comm_memory(const CommName& name);

}  // namespace anabranch::simdevice
