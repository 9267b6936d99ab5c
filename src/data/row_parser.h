// Lines to packed samples. Several threads may share one parser: it keeps nothing between calls.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/block.h"
#include "data/dataset.h"

namespace anabranch::data {

// Facts about all lines of a file, from its first one.
struct FileHead {
  size_t fields = 0;            // of each line
  bool at_least = true;         // a line may have further fields
  std::vector<size_t> columns;  // positions of the columns of the schema
  size_t share_column = 0;      // position of Settings::Share::column
};

struct RowFormat;

class RowParser {
 public:
  virtual ~RowParser() = default;
  // For the first line of a file, without its end. InvalidArgument if the schema does not match it.
  virtual FileHead head(std::string_view /*line*/, const std::string& /*path*/) const { return {}; }
  // Appends the samples of whole lines (the last one ends with '\n', too) of a file with this head to *out, and the
  // errors of the others. kTextPadding readable bytes follow the text. The text may be a part of the chunk, after the
  // first out->lines lines.
  virtual void parse(std::string_view text, const FileHead& head, Block* out) const = 0;
};

// For Settings::format; InvalidArgument if its text is malformed or the schema does not match it.
std::unique_ptr<RowParser> make_parser(const Settings& settings);
std::unique_ptr<RowParser> make_multi_slot_parser(const Schema& schema);
// A parser that passes only the lines of this share, and the header, to `all`. InvalidArgument if it is a share by a
// column, and the lines have none.
std::unique_ptr<RowParser> share_of(std::unique_ptr<RowParser> all, const Settings::Share& share,
                                    const RowFormat& format);

// Whether a line, or a text of the column, belongs to a share.
bool in_share(const Settings::Share& share, std::string_view text);
// Position of a share's column; `names`: the fields of a header.
size_t share_column(const Settings::Share& share, bool header, const std::vector<std::string_view>& names,
                    const std::string& path);

// Writes a block sample by sample. A discarded sample leaves no trace.
class RowWriter {
 public:
  explicit RowWriter(Block* out) : out_(out) {
    if (out->starts.empty()) out->starts.push_back(0);
  }

  // Room for this number of words after the existing ones; returns where to write them.
  uint32_t* room(size_t words) {
    if (out_->word_count + words > out_->word_capacity) grow(words);
    return out_->words.get() + out_->word_count;
  }
  void keep(const uint32_t* end) {
    out_->word_count = static_cast<size_t>(end - out_->words.get());
    out_->starts.push_back(static_cast<uint32_t>(out_->word_count));
    ++out_->lines;
  }
  // The same for a number of samples of one size, in words.
  void keep(const uint32_t* end, int64_t count, size_t words) {
    out_->word_count = static_cast<size_t>(end - out_->words.get());
    const size_t before = out_->starts.size();
    out_->starts.resize(before + static_cast<size_t>(count));
    uint32_t start = static_cast<uint32_t>(out_->word_count - static_cast<size_t>(count) * words);
    for (size_t i = before; i < out_->starts.size(); ++i) out_->starts[i] = start += static_cast<uint32_t>(words);
    out_->lines += count;
  }
  void refuse(int64_t column, int32_t slot, BadReason reason, std::string_view text) {
    out_->bad.push_back({out_->lines, out_->rows(), column, slot, reason, std::string(text)});
    ++out_->lines;
  }
  void refuse_fields(int64_t column, size_t got, size_t expected, std::string_view text) {
    refuse(column, -1, BadReason::kFieldCount, text);
    out_->bad.back().got = static_cast<int32_t>(got);
    out_->bad.back().expected = static_cast<int32_t>(expected);
  }
  void add_missing(int64_t values) { out_->missing += values; }

 private:
  void grow(size_t words);
  Block* out_;
};

}  // namespace anabranch::data
