// The description of a training job: its computations and its numbers of processes, as lines "name: value". Each worker
// sends its description to the servers. A server refuses a worker whose description differs from the one it knows, and
// stores that one in its state.
#pragma once
#include <string>
#include <vector>

namespace anabranch::ps {

using Description = std::vector<std::string>;

// Returns "workers is 4, not 2; ..." for the first lines that differ; empty if all lines are equal.
std::string differences_of(const Description& one, const Description& other);
// Returns the lines without the numbers of processes.
Description without_counts(const Description& job);

}  // namespace anabranch::ps
