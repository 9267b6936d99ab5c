// Changes of the records in memory: their order, the values of single slots, the grouping of records.
#pragma once
#include <string>
#include <vector>

#include "data/schema.h"
#include "data/streams.h"

namespace anabranch::data {

// A random permutation of the order: a function of (seed, round) and of the number of records only.
void shuffle_order(std::vector<Records::At>* order, uint64_t seed, uint64_t round);

// Copies in which the lists of these slots have moved between the records, each slot by a separate permutation.
Records shuffle_slots(const Records& from, const Schema& schema, const std::vector<std::string>& slots, uint64_t seed,
                      uint64_t round);

// Merges the records of one instance id, in their order: sparse slots are joined, dense ones come from the first
// record. merge_size > 0: ids with another number of records are dropped.
Records merge_by_ins_id(const Records& from, const Schema& schema, int64_t merge_size);

// The records, as bytes, distributed one by one over this number of workers; the first one goes to `first`.
std::vector<std::string> deal_records(const Records& from, const Schema& schema, int trainers, int first);
// The shares of all workers for one of them, in their order. InvalidArgument if bytes are not records of this schema.
Records records_of(const std::vector<std::string>& parts, const Schema& schema);

}  // namespace anabranch::data
