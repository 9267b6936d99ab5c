// The lines of a share of the data, chosen by their hash.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/near.h"
#include "data/fields.h"
#include "data/row_format.h"
#include "data/row_parser.h"

namespace anabranch::data {
namespace {

class ShareParser final : public RowParser {
 public:
  ShareParser(std::unique_ptr<RowParser> all, const Settings::Share& share, const RowFormat& format)
      : all_(std::move(all)), share_(share), header_(format.header), separator_(format.separator) {}

  FileHead head(std::string_view line, const std::string& path) const override {
    FileHead head = all_->head(line, path);
    if (share_.column.empty()) return head;
    Fields fields;
    cut_fields(without_line_end(line), separator_, &fields.all, &fields.own);
    std::vector<std::string_view> names;
    for (const Field& field : fields.all) names.push_back(field.text);
    head.share_column = share_column(share_, header_, names, path);
    return head;
  }

  // Parses each run of lines that belong to the share.
  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    Fields fields;
    bool first = header_ && out->chunk == 0 && out->lines == 0;
    size_t begin = 0, at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      const bool taken = first || takes(without_line_end(text.substr(at, end - at)), head, &fields);
      first = false;
      if (!taken) {
        if (at > begin) all_->parse(text.substr(begin, at - begin), head, out);
        ++out->skipped;
        ++out->lines;  // positions of malformed lines count all
        begin = end + 1;
      }
      at = end + 1;
    }
    if (at > begin) all_->parse(text.substr(begin, at - begin), head, out);
  }

 private:
  struct Fields {
    std::vector<Field> all;
    std::string own;
  };

  // A line without the column is malformed, and belongs to the share of its text.
  bool takes(std::string_view line, const FileHead& head, Fields* fields) const {
    if (share_.column.empty() || cut_fields(line, separator_, &fields->all, &fields->own) != 0 ||
        head.share_column >= fields->all.size()) {
      return in_share(share_, line);
    }
    return in_share(share_, fields->all[head.share_column].text);
  }

  std::unique_ptr<RowParser> all_;
  Settings::Share share_;
  bool header_;
  char separator_;
};

}  // namespace

bool in_share(const Settings::Share& share, std::string_view line) {
  constexpr uint64_t kSeed = 0x7368617265;  // another than those of ids
  const auto part = static_cast<double>(hash_bytes(line, kSeed + share.seed) >> 11) * 0x1p-53;
  return part >= share.begin && part < share.end;
}

size_t share_column(const Settings::Share& share, bool header, const std::vector<std::string_view>& names,
                    const std::string& path) {
  if (!header) return static_cast<size_t>(std::stoull(share.column));
  const auto found = std::find(names.begin(), names.end(), share.column);
  AB_CHECK(found != names.end(), InvalidArgument, "{}: set_share: the header has no column {}: {}{}", path,
           share.column, fmt::join(names, ", "), near_name(share.column, {names.begin(), names.end()}));
  return static_cast<size_t>(found - names.begin());
}

std::unique_ptr<RowParser> share_of(std::unique_ptr<RowParser> all, const Settings::Share& share,
                                    const RowFormat& format) {
  if (share.is_whole()) return all;
  const bool numbered = share.column.find_first_not_of("0123456789") == std::string::npos && share.column.size() < 7;
  AB_CHECK(share.column.empty() || format.lines == Lines::kColumns, InvalidArgument,
           "set_share: column must be None for lines of this format, which have no columns, got {}", share.column);
  AB_CHECK(share.column.empty() || format.header || numbered, InvalidArgument,
           "set_share: column must be a number from 0, because the format has no header, got {}", share.column);
  return std::make_unique<ShareParser>(std::move(all), share, format);
}

}  // namespace anabranch::data
