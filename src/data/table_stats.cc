#include "data/table_stats.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/fields.h"
#include "data/input.h"
#include "data/row_parser.h"

namespace anabranch::data {

// The parser of a reader that counts the fields of a row instead of keeping them.
class TableStats::Parser final : public RowParser {
 public:
  explicit Parser(TableStats* stats) : stats_(*stats) {}

  FileHead head(std::string_view line, const std::string& path) const override {
    std::vector<Field> fields;
    std::string unquoted;
    const int64_t column = cut_fields(without_line_end(line), stats_.separator_, &fields, &unquoted);
    AB_CHECK(!column, InvalidArgument, "{}:1:{}: the first line must show the columns: {}", path, column,
             bad_reason_text(BadReason::kQuote));
    std::vector<std::string> names;
    for (const Field& field : fields) {
      names.push_back(stats_.header_ ? std::string(field.text) : std::to_string(names.size()));
    }
    stats_.open(names, path);
    return {names.size(), stats_.ragged_, {}};
  }

  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    std::vector<Field> fields;
    std::string unquoted;
    bool skip = stats_.header_ && out->chunk == 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view whole = text.substr(0, end), line = without_line_end(whole);
      text.remove_prefix(end + 1);
      if (skip) {
        skip = false;
        ++out->lines;
      } else if (const int64_t column = cut_fields(line, stats_.separator_, &fields, &unquoted)) {
        writer.refuse(column, -1, BadReason::kQuote, whole);
      } else if (fields.size() < head.fields || (fields.size() > head.fields && !head.at_least)) {
        const bool further = fields.size() > head.fields;
        writer.refuse_fields(further ? fields[head.fields].column : static_cast<int64_t>(line.size()) + 1,
                             fields.size(), head.fields, whole);
      } else {
        for (size_t i = 0; i < head.fields; ++i) stats_.columns_[i].add(fields[i].text);
        ++stats_.rows_;
        ++out->lines;
      }
    }
  }

 private:
  TableStats& stats_;
};

void TableStats::open(const std::vector<std::string>& names, const std::string& path) {
  if (columns_.empty()) {
    for (const std::string& name : names) columns_.emplace_back(name);
    return;
  }
  bool same = names.size() == columns_.size();
  for (size_t i = 0; same && i < names.size(); ++i) same = names[i] == columns_[i].name();
  if (same) return;
  std::vector<std::string> before;
  for (const ColumnStats& column : columns_) before.push_back(column.name());
  AB_THROW(InvalidArgument, "{}: the files must have the same columns, got {} instead of {}", path,
           fmt::join(names, ", "), fmt::join(before, ", "));
}

void TableStats::add(const std::string& path, const std::function<void()>& idle) {
  const Settings settings;
  const Schema none;  // of the messages
  const std::atomic<bool> stop{false};
  const auto input = text_input(open_source(settings, path, &stop), std::make_shared<Parser>(this), path,
                                settings.max_line_bytes, &stop);
  Chunk chunk;
  Block block;
  int64_t line = 1;
  while (input->claim(&chunk)) {
    block.clear();
    block.chunk = chunk.index;
    input->finish(&chunk, &block);
    for (const BadRow& row : block.bad) {
      if (shown_bad_.size() < kShownBad) shown_bad_.push_back(bad_row_message(row, none, path, line + row.line));
    }
    bad_ += static_cast<int64_t>(block.bad.size());
    line += block.lines;
    if (idle) idle();
  }
}

}  // namespace anabranch::data
