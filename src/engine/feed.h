// Fed batches: cut into one piece a replica.
#pragma once
#include <vector>

#include "engine/compiled_program.h"

namespace anabranch {

// Pieces of ceil(rows / replicas) rows each, by sequence where there are sequences; as many pieces as have rows.
// Variables in `whole` go to every replica as they are. ShapeMismatch when two feeds give different numbers of pieces;
// with `refuse_idle`, also when there are fewer pieces than replicas.
std::vector<FeedMap> split_feed(const FeedMap& feed, int replicas, const std::vector<std::string>& whole,
                                bool refuse_idle);

}  // namespace anabranch
