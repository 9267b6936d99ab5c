// The two kinds of BatchStream.
#pragma once
#include <memory>
#include <vector>

#include "data/block.h"
#include "data/dataset.h"

namespace anabranch::data {

// What load() made: blocks, and the order in which their samples are given out. Constant once it is shared; a copy
// shares the blocks.
struct Records {
  struct At {
    uint32_t block, row;
  };
  std::vector<std::shared_ptr<const Block>> blocks;
  std::vector<At> order;
  Statistics statistics;

  int64_t memory_bytes() const;
};

std::shared_ptr<BatchStream> file_stream(const Settings& settings, const StreamOptions& options);
std::shared_ptr<BatchStream> memory_stream(const Settings& settings, std::shared_ptr<const Records> records);

}  // namespace anabranch::data
