// Fed batches, split into one slice per replica.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace anabranch {

// The feed of each replica: slices[replica][i] belongs to the i-th fed variable.
using Slices = std::vector<std::vector<Tensor>>;

struct FeedSplit {
  const std::vector<std::string>* names;  // of the fed variables, for messages
  const std::vector<char>* whole;         // by variable: passed unchanged to every replica
  int replicas = 1;
  bool refuse_idle = false;  // fewer slices than replicas are an error
};

// A fed tensor holds a value with at least one axis, and its sequences, if any, cover all of its rows.
void check_fed(const std::string& name, const Tensor& value);

// Slices of ceil(rows / replicas) rows each, or sequences if there are any; returns the number of replicas that have
// rows. `slices` is reused. ShapeMismatch if two feeds give rows to different numbers of replicas.
int split_feed(std::span<const Tensor> batch, const FeedSplit& how, Slices* slices);

}  // namespace anabranch
