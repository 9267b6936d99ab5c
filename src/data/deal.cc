// Exchanges records between workers: distributed like cards, as bytes, and put together again.
#include <cstring>

#include "data/cache.h"
#include "data/shuffle.h"
#include "io/byte_reader.h"

namespace anabranch::data {
namespace {

constexpr int64_t kRecordsPerBlock = 4096;

void close_block(Block* block, std::string* out) {
  if (block->rows() == 0) return;
  block->lines = block->rows();
  const std::string bytes = block_bytes(*block);
  const auto size = static_cast<uint64_t>(bytes.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  *out += bytes;
  *block = Block();
}

}  // namespace

std::vector<std::string> deal_records(const Records& from, const Schema& schema, int trainers, int first) {
  std::vector<std::string> out(trainers);
  for (int t = 0; t < trainers; ++t) {
    Block block;
    const auto step = static_cast<size_t>(trainers);
    for (size_t i = static_cast<size_t>((t - first + trainers) % trainers); i < from.order.size(); i += step) {
      const Block& source = *from.blocks[from.order[i].block];
      const size_t row = from.order[i].row;
      block.append(source.row(static_cast<int64_t>(row)), source.starts[row + 1] - source.starts[row]);
      if (schema.ins_id) block.ins_ids.push_back(source.ins_ids[row]);
      if (schema.content) block.contents.push_back(source.contents[row]);
      if (block.rows() == kRecordsPerBlock) close_block(&block, &out[t]);
    }
    close_block(&block, &out[t]);
  }
  return out;
}

Records records_of(const std::vector<std::string>& parts, const Schema& schema) {
  Records made;
  for (size_t t = 0; t < parts.size(); ++t) {
    const std::string what = fmt::format("records of trainer {}", t);
    io::ByteReader in(parts[t], what);
    while (!in.done()) {
      const auto size = in.get<uint64_t>("the size of a block");
      auto block = std::make_shared<Block>();
      block_from_bytes(in.take(size, "a block"), what, schema, block.get());
      const auto number = static_cast<uint32_t>(made.blocks.size());
      for (int64_t i = 0; i < block->rows(); ++i) made.order.push_back({number, static_cast<uint32_t>(i)});
      made.blocks.push_back(std::move(block));
    }
  }
  return made;
}

}  // namespace anabranch::data
