// What changes the records in memory: their order, the values of single slots, records that belong together.
#pragma once
#include <string>
#include <vector>

#include "data/schema.h"
#include "data/streams.h"

namespace anabranch::data {

// A random permutation of the order: a function of (seed, round) and of the number of records alone.
void shuffle_order(std::vector<Records::At>* order, uint64_t seed, uint64_t round);

// Copies in which the lists of these slots have moved between the records, each slot by a permutation of its own.
Records shuffle_slots(const Records& from, const Schema& schema, const std::vector<std::string>& slots, uint64_t seed,
                      uint64_t round);

// One record from those of one instance id, in the order in which they are: sparse slots joined, dense ones of the
// first record. merge_size > 0: ids with another number of records are left out.
Records merge_by_ins_id(const Records& from, const Schema& schema, int64_t merge_size);

// The records, as bytes, dealt out one after the other to so many trainers; the first one goes to `first`.
std::vector<std::string> deal_records(const Records& from, const Schema& schema, int trainers, int first);
// What all trainers have dealt to one, in their order. InvalidArgument when bytes are no records of this schema.
Records records_of(const std::vector<std::string>& parts, const Schema& schema);

}  // namespace anabranch::data
