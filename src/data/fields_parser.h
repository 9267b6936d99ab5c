// Lines to packed samples: a Cut divides a line into fields, and a RowPlan writes their values. A Cut has
//
//   bool header;                                      // whether the first line of a file holds names
//   FileHead head(const FileHeads& heads, std::string_view line, const std::string& path) const;
//   bool operator()(std::string_view line, const FileHead& head, CutLine* out) const;  // false: see out->bad
//
// and is constant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/fields.h"
#include "data/file_head.h"
#include "data/row_plan.h"

namespace anabranch::data {

// A line as fields, or what is wrong with it.
struct CutLine {
  std::vector<Field> fields;  // of FileHead::columns
  std::string own;            // the text of fields that are not as they are in the line
  RowPlan::Bad bad{1, -1, BadReason::kFieldCount, 0};
  size_t got = 0, expected = 0;  // of a number of fields

  struct Pair {
    uint64_t index;
    std::string_view text, value;
    int64_t column;
  };
  std::vector<Pair> pairs;  // of a libsvm line

  bool refuse(size_t at, BadReason reason, int32_t slot = -1) {
    bad = {static_cast<int64_t>(at) + 1, slot, reason, 0};
    return false;
  }
};

template <class Cut> class FieldsParser final : public RowParser {
 public:
  FieldsParser(const Schema& schema, const RowFormat& format)
      : heads_(format), plan_(schema, format, &heads_), cut_(format, plan_, heads_) {}

  FileHead head(std::string_view line, const std::string& path) const override { return cut_.head(heads_, line, path); }

  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    CutLine line;
    bool skip = cut_.header && out->chunk == 0 && out->lines == 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view whole = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (skip) {
        skip = false;
        ++out->lines;
      } else if (!write(whole, head, &line, &writer)) {
        refuse(line, whole, &writer);
      }
    }
  }

 private:
  static void refuse(const CutLine& line, std::string_view whole, RowWriter* writer) {
    const auto& [column, slot, reason, field] = line.bad;
    if (reason == BadReason::kFieldCount) return writer->refuse_fields(column, line.got, line.expected, whole);
    writer->refuse(column, slot, reason, whole);
  }

  bool write(std::string_view whole, const FileHead& head, CutLine* line, RowWriter* writer) const {
    if (!cut_(without_line_end(whole), head, line)) return false;
    uint32_t* out = writer->room(plan_.words_at_most(line->fields, head.columns));
    int64_t missing = 0;
    if (!plan_.write(line->fields, head.columns, &out, &missing, &line->bad)) return false;
    writer->add_missing(missing);
    writer->keep(out);
    return true;
  }

  FileHeads heads_;
  RowPlan plan_;
  Cut cut_;
};

}  // namespace anabranch::data
