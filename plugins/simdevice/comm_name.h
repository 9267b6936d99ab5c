// The id of a communicator: the process that created it, and the descriptor of the shared memory in that process. A
// process that gets the id opens that descriptor; a key proves that it is still the same file. A nameless file in
// memory leaves no file when its processes end.
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
  // AB_UNSUPPORTED if the text is not from id().
  static CommName read(const std::string& id);
};

struct CommOpening {  // the header of the memory; the rest is zeros
  uint64_t key = 0;
  uint64_t side = 0;  // maximum number of bytes of a rank in one collective
};
// Creates a sparse file of this size. Sets name.file and name.key.
Descriptor make_comm_memory(CommName& name, uint64_t side, size_t bytes);
// AB_UNAVAILABLE if the process has ended or no longer holds the memory.
Descriptor open_comm_memory(const CommName& name);

}  // namespace anabranch::simdevice
