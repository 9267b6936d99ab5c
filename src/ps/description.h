// What a job computes, and with how many processes, as lines "what: how". A worker tells it to its servers, which
// refuse another job, and a server writes it into its state.
#pragma once
#include <string>
#include <vector>

namespace anabranch::ps {

using Description = std::vector<std::string>;

// "workers is 4, not 2; ..." of the first lines that differ; empty: none does.
std::string differences_of(const Description& one, const Description& other);
// Without the numbers of processes.
Description without_counts(const Description& job);

}  // namespace anabranch::ps
