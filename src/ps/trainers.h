// The clients of this process, one for each trainer in it: ops find theirs by the trainer's number.
#pragma once
#include <memory>

#include "ps/client.h"

namespace anabranch::ps {

// Another number for each start of a server or a trainer; never 0.
uint64_t fresh_incarnation();

// Made at first use, with the deadlines that flags say.
std::shared_ptr<Client> client_of(int trainer);
// Null when there is none.
std::shared_ptr<Client> find_client(int trainer);
// The next use makes a new one.
void forget_client(int trainer);

}  // namespace anabranch::ps
