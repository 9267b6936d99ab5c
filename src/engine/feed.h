// Fed batches: cut into one piece a replica.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace anabranch {

// What each replica is fed: pieces[replica][i] belongs to the i-th fed variable.
using Pieces = std::vector<std::vector<Tensor>>;

struct FeedSplit {
  const std::vector<std::string>* names;  // of the fed variables, for messages
  const std::vector<char>* whole;         // by variable: goes to every replica as it is
  int replicas = 1;
  bool refuse_idle = false;  // fewer pieces than replicas are an error
};

// A fed tensor holds a value with at least one axis and, where it has sequences, with all of its rows in them.
void check_fed(const std::string& name, const Tensor& value);

// Pieces of ceil(rows / replicas) rows each, by sequence where there are sequences; returns how many replicas have
// rows. `pieces` is used again. ShapeMismatch when two feeds give work to different numbers of replicas.
int split_feed(std::span<const Tensor> batch, const FeedSplit& how, Pieces* pieces);

}  // namespace anabranch
