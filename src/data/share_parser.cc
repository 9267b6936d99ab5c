// The lines of a share of the data, chosen by their hash.
#include "data/fields.h"
#include "data/row_format.h"
#include "data/row_parser.h"

namespace anabranch::data {
namespace {

class ShareParser final : public RowParser {
 public:
  ShareParser(std::unique_ptr<RowParser> all, const Settings::Share& share, bool header)
      : all_(std::move(all)), share_(share), header_(header) {}

  FileHead head(std::string_view line, const std::string& path) const override { return all_->head(line, path); }

  // Parses each run of lines that belong to the share.
  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    bool first = header_ && out->chunk == 0 && out->lines == 0;
    size_t begin = 0, at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      const bool taken = first || in_share(share_, without_line_end(text.substr(at, end - at)));
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
  std::unique_ptr<RowParser> all_;
  Settings::Share share_;
  bool header_;
};

}  // namespace

bool in_share(const Settings::Share& share, std::string_view line) {
  constexpr uint64_t kSeed = 0x7368617265;  // another than those of ids
  const auto part = static_cast<double>(hash_bytes(line, kSeed + share.seed) >> 11) * 0x1p-53;
  return part >= share.begin && part < share.end;
}

std::unique_ptr<RowParser> share_of(std::unique_ptr<RowParser> all, const Settings::Share& share, bool header) {
  if (share.is_whole()) return all;
  return std::make_unique<ShareParser>(std::move(all), share, header);
}

}  // namespace anabranch::data
