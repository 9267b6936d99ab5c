// libsvm lines under a schema, whose columns are those of data/pair_columns.h. Text after a # is a comment.
#include <algorithm>
#include <utility>

#include "data/fields_parser.h"
#include "data/number.h"
#include "data/pair_columns.h"

namespace anabranch::data {
namespace {

using Part = PairColumn::Part;

struct PairsCut {
  static constexpr bool header = false;

  PairsCut(const RowFormat& /*format*/, const RowPlan& /*plan*/, const FileHeads& heads) {
    places = heads.distinct(&columns);
    for (size_t i = 0; i < columns.size(); ++i) {
      PairColumn column;
      pair_column(columns[i].number, columns[i].name, &column);
      kinds.push_back(column);
      if (column.part == Part::kOne) indices.emplace_back(column.low, i);
    }
    std::sort(indices.begin(), indices.end());
  }

  FileHead head(const FileHeads& /*heads*/, std::string_view /*line*/, const std::string& /*path*/) const {
    return {kinds.size(), false, places};
  }

  bool operator()(std::string_view whole, const FileHead& /*head*/, CutLine* out) const {
    const std::string_view line = whole.substr(0, whole.find('#'));
    out->fields.assign(kinds.size(), {.text = {}, .column = static_cast<int64_t>(line.size()) + 1});
    out->pairs.clear();
    size_t at = 0;
    const std::string_view label = token(line, &at);
    if (label.empty()) return out->refuse(0, BadReason::kLineEnds);
    if (label.find(':') != std::string_view::npos) return out->refuse(0, BadReason::kNotFloat);
    put(Part::kLabel, label, at - label.size(), out);
    for (bool second = true;; second = false) {
      const std::string_view pair = token(line, &at);
      if (pair.empty()) break;
      if (second && pair.starts_with("qid:")) {
        put(Part::kQid, pair.substr(4), at - pair.size() + 4, out);
      } else if (!put_pair(pair, at - pair.size(), out)) {
        return false;
      }
    }
    put_lists(line.size(), out);
    return true;
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  // The next text between blanks, and the place after it; empty at the end of the line.
  static std::string_view token(std::string_view line, size_t* at) {
    size_t begin = *at;
    while (begin < line.size() && is_space(line[begin])) ++begin;
    for (*at = begin; *at < line.size() && !is_space(line[*at]);) ++*at;
    return line.substr(begin, *at - begin);
  }

  void put(Part part, std::string_view text, size_t at, CutLine* out) const {
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i].part != part) continue;
      out->fields[i] = {.text = text, .column = static_cast<int64_t>(at) + 1, .padded = true};
    }
  }

  bool put_pair(std::string_view text, size_t at, CutLine* out) const {
    uint64_t number = 0;
    const char* const digits = text.front() == '0' ? nullptr : fast_id(text.data(), &number);  // a zero may be in front
    const bool plain = digits && digits < text.data() + text.size() && *digits == ':';
    const size_t colon = plain ? static_cast<size_t>(digits - text.data()) : text.find(':');
    if (colon == std::string_view::npos || colon + 1 == text.size()) return out->refuse(at, BadReason::kPair);
    std::string_view index = text.substr(0, colon);
    if (!plain && !read_index(&index, &number)) return out->refuse(at, BadReason::kPair);
    const std::string_view value = text.substr(colon + 1);
    out->pairs.push_back({number, index, value, static_cast<int64_t>(at) + 1});
    const auto found = std::lower_bound(indices.begin(), indices.end(), std::pair{number, size_t{0}});
    if (found == indices.end() || found->first != number) return true;
    Field& field = out->fields[found->second];
    if (!field.text.empty()) return out->refuse(at, BadReason::kIndexTwice);
    field = {.text = value, .column = static_cast<int64_t>(at + colon) + 2, .padded = true};
    return true;
  }

  void put_lists(size_t most_bytes, CutLine* out) const {
    out->own.clear();
    out->own.reserve(kinds.size() * (most_bytes + 1) + kTextPadding);  // its bytes must not move
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (!kinds[i].is_list()) continue;
      const size_t begin = out->own.size();
      Field& field = out->fields[i];
      for (const CutLine::Pair& pair : out->pairs) {
        if (!kinds[i].takes(pair.index)) continue;
        if (out->own.size() > begin) {
          out->own += ' ';
        } else {
          field.column = pair.column;
        }
        out->own += kinds[i].part == Part::kIndices ? pair.text : pair.value;
      }
      field.text = std::string_view(out->own).substr(begin);
      field.padded = true;
      out->own += '\0';  // a digit of the next list would continue the last number
    }
    out->own.append(kTextPadding, '\0');
  }

  std::vector<FileHeads::Column> columns;
  std::vector<size_t> places;                        // of FileHeads::columns among them
  std::vector<PairColumn> kinds;                     // of each
  std::vector<std::pair<uint64_t, size_t>> indices;  // of the columns of one pair, ascending
};

}  // namespace

std::unique_ptr<RowParser> make_pairs_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<FieldsParser<PairsCut>>(schema, format);
}

}  // namespace anabranch::data
