#include "data/table_input.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "data/schema_text.h"
#include "data/table_rows.h"

namespace anabranch::data {
namespace {

constexpr int64_t kChunkRows = 8192;

class TableInput final : public Input {
 public:
  TableInput(const Settings& settings, const std::string& path)
      : file_(settings.open_table(path)), rows_(settings, file_->schema(), path) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0) bytes_ = static_cast<int64_t>(info.st_size);
  }

  bool claim(Chunk* chunk) override {
    while (!batch_ || row_ == batch_->array.length) {
      auto batch = std::make_shared<TableBatch>();
      if (!file_->next(&batch->array)) return false;
      rows_.prepare(batch.get(), batch_.get());
      batch_ = std::move(batch);
      row_ = 0;
    }
    chunk->table = batch_;
    chunk->index = chunk_++;
    chunk->row = row_;
    chunk->rows = std::min(kChunkRows, batch_->array.length - row_);
    row_ += chunk->rows;
    taken_ += chunk->rows;
    return true;
  }

  void finish(Chunk* chunk, Block* out) const override {
    const auto batch = std::exchange(chunk->table, nullptr);
    rows_.parse(*batch, chunk->row, chunk->rows, out);
    out->bytes = file_->rows() > 0 ? bytes_ * chunk->rows / file_->rows() : 0;
  }

  int64_t consumed() const override { return file_->rows() > 0 ? bytes_ * taken_ / file_->rows() : 0; }

 private:
  const std::unique_ptr<TableFile> file_;
  const TableRows rows_;
  std::shared_ptr<const TableBatch> batch_;
  int64_t row_ = 0;  // the first remaining one of it
  int64_t bytes_ = 0, taken_ = 0, chunk_ = 0;
};

}  // namespace

const char* table_kind(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  char start[6] = {};
  if (!file || std::fread(start, 1, sizeof start, file.get()) < sizeof start) return nullptr;
  const std::string_view text(start, sizeof start);
  return text.substr(0, 4) == "PAR1" ? "Parquet" : text == "ARROW1" ? "Arrow" : nullptr;
}

std::unique_ptr<Input> table_input(const Settings& settings, const std::string& path, const char* kind) {
  AB_CHECK(is_schema_text(settings.format), InvalidArgument,
           "{} is a file of {}, which has columns instead of lines: set_format must be given an anabranch.Schema", path,
           kind);
  AB_CHECK(settings.cache_folder.empty(), Unsupported, "{}: files of {} have no cache: remove set_cache", path, kind);
  AB_CHECK(settings.open_table != nullptr, Unsupported, "{}: this program reads no files of {}", path, kind);
  return std::make_unique<TableInput>(settings, path);
}

}  // namespace anabranch::data
