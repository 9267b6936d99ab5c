// Large messages between processes of one machine, through memory that both have mapped: one copy in, one copy out, and
// a small message of the wire below that says where the bytes lie. Where memory cannot be shared - other machines,
// other users, other containers, none left - or is not free at the moment, messages go over the wire whole.
#pragma once
#include "comm/wire.h"

namespace anabranch::comm {

struct SharingOptions {
  size_t least_bytes = size_t{1} << 15;    // smaller messages go over the wire: a copy would cost more
  size_t memory_bytes = size_t{16} << 20;  // of this process, for what all others have not taken yet
  size_t most_of_slot = size_t{4} << 20;   // of one message
};

// The same wire, faster; all processes of a group call it together. Null, and a failure, when one of them is gone.
std::unique_ptr<Wire> share_memory(std::unique_ptr<Wire> wire, int rank, int size, int64_t within_ms,
                                   std::string* failure, const SharingOptions& options = {});

}  // namespace anabranch::comm
