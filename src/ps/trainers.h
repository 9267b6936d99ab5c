// The clients of this process, one per worker in it: ops find theirs by the worker's number.
#pragma once
#include <memory>

#include "ps/client.h"

namespace anabranch::ps {

// Different for each start of a server or a worker; never 0.
uint64_t fresh_incarnation();

// Created at first use, with the deadlines of the flags.
std::shared_ptr<Client> client_of(int trainer);
// Null when there is none.
std::shared_ptr<Client> find_client(int trainer);
// The next use makes a new one.
void forget_client(int trainer);
// Waits until the servers have everything that these clients' steps have left to background threads.
void flush_clients();

}  // namespace anabranch::ps
