// MultiSlot lines under a schema. The text of a slot is its values, separated by spaces. The features of the schema
// parse the values, so a slot without a feature accepts any text.
#include <emmintrin.h>

#include <bit>

#include "data/fields_parser.h"

namespace anabranch::data {
namespace {

bool is_between(char c) { return c == ' ' || c == '\t'; }

// The tokens of a line.
struct Tokens {
  std::string_view line;
  size_t begin = 0, end = 0;  // of the current one; empty at the end of the line

  std::string_view next() {
    begin = end;
    while (begin < line.size() && is_between(line[begin])) ++begin;
    end = begin;
    while (end < line.size() && !is_between(line[end])) ++end;
    return line.substr(begin, end - begin);
  }
};

struct SlotsCut {
  static constexpr bool header = false;

  SlotsCut(const RowFormat& format, const RowPlan& plan, const FileHeads& heads)
      : names(format.slots), single(names.size(), -1) {
    const FileHead found = head(heads, "", "");
    for (const RowPlan::SlotPlan& one : plan.slots()) mark(one, found.columns);
  }

  // A feature that does not divide the text at spaces needs one value.
  void mark(const RowPlan::SlotPlan& plan, const std::vector<size_t>& places) {
    for (const RowPlan::SlotPlan& part : plan.parts) mark(part, places);
    for (const auto& source : plan.sources) {
      int32_t& slot = single[places[source.place]];
      if (plan.split != ' ' && slot < 0) slot = plan.slot;
    }
  }

  FileHead head(const FileHeads& heads, std::string_view /*line*/, const std::string& path) const {
    return heads.head({names.begin(), names.end()}, path);
  }

  bool operator()(std::string_view line, const FileHead& /*head*/, CutLine* out) const {
    out->own.clear();
    out->own.reserve(line.size());  // its bytes must not move, because fields point to them
    out->fields.resize(names.size());
    Tokens tokens{line};
    for (size_t i = 0; i < names.size(); ++i) {
      int64_t count = 0;
      BadReason reason{};
      if (!small_count(&tokens, &count) && !read_count(tokens.next(), &count, &reason)) {
        return out->refuse(tokens.begin, reason);
      }
      if (single[i] >= 0 && count != 1) return out->refuse(tokens.begin, BadReason::kCountMismatch, single[i]);
      if (!values(&tokens, count, &out->fields[i], out)) return false;
    }
    return tokens.next().empty() || out->refuse(tokens.begin, BadReason::kTextAfter);
  }

  // The count that is next, if it has at most three digits and one space in front of it and after it.
  static bool small_count(Tokens* tokens, int64_t* count) {
    constexpr size_t kMost = 3;
    const std::string_view line = tokens->line;
    const size_t begin = tokens->end + (tokens->end > 0);
    if (begin > 0 && (begin > line.size() || line[begin - 1] != ' ')) return false;
    size_t at = begin;
    *count = 0;
    for (; at < line.size() && at < begin + kMost && line[at] >= '0' && line[at] <= '9'; ++at) {
      *count = *count * 10 + (line[at] - '0');
    }
    if (*count == 0 || at >= line.size() || line[at] != ' ') return false;
    tokens->begin = begin;
    tokens->end = at;
    return true;
  }

  // The end of `count` values with one space between two, which start at `begin`, after another byte; 0: there are
  // other blanks, or fewer values. Sixteen bytes at a time.
  static size_t plain_end(std::string_view line, size_t begin, int64_t count) {
    constexpr size_t kBytes = 16;
    const __m128i space = _mm_set1_epi8(' '), tab = _mm_set1_epi8('\t');
    const auto bits = [](const char* from, __m128i what) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, what)));
    };
    for (size_t at = begin; at < line.size(); at += kBytes) {
      const char* const from = line.data() + at;
      const unsigned here = line.size() - at < kBytes ? (1u << (line.size() - at)) - 1 : (1u << kBytes) - 1;
      unsigned spaces = bits(from, space) & here;
      const unsigned odd = (spaces & bits(from - 1, space)) | (bits(from, tab) & here);
      const auto found = static_cast<int64_t>(std::popcount(spaces));
      if (found < count) {
        if (odd) return 0;
        count -= found;
        continue;
      }
      for (; count > 1; --count) spaces &= spaces - 1;
      const auto end = static_cast<unsigned>(std::countr_zero(spaces));
      return odd & ((2u << end) - 1) ? 0 : at + end;
    }
    return count == 1 && line.back() != ' ' ? line.size() : 0;
  }

  // The text from the first to the last value, or a copy of it if it has other blanks than one space between two.
  static bool values(Tokens* tokens, int64_t count, Field* field, CutLine* out) {
    const size_t begin = tokens->end + 1;
    const bool starts = begin < tokens->line.size() && !is_between(tokens->line[begin]);
    if (const size_t end = starts ? plain_end(tokens->line, begin, count) : 0) {
      *field = {
          .text = tokens->line.substr(begin, end - begin), .column = static_cast<int64_t>(begin) + 1, .padded = true};
      tokens->end = end;
      return true;
    }
    if (tokens->next().empty()) return out->refuse(tokens->begin, BadReason::kFewValues);
    const size_t first = tokens->begin;
    size_t last = tokens->end;
    bool plain = true;
    for (int64_t i = 1; i < count; ++i, last = tokens->end) {
      if (tokens->next().empty()) return out->refuse(tokens->begin, BadReason::kFewValues);
      plain &= tokens->begin == last + 1 && tokens->line[last] == ' ';
    }
    *field = {
        .text = tokens->line.substr(first, last - first), .column = static_cast<int64_t>(first) + 1, .padded = plain};
    if (!plain) field->text = joined(field->text, &out->own);
    return true;
  }

  static std::string_view joined(std::string_view text, std::string* own) {
    const size_t begin = own->size();
    Tokens tokens{text};
    for (std::string_view one = tokens.next(); !one.empty(); one = tokens.next()) {
      if (own->size() > begin) *own += ' ';
      *own += one;
    }
    return std::string_view(*own).substr(begin);
  }

  std::vector<std::string> names;
  std::vector<int32_t> single;  // for each slot: the feature that needs one value of it; -1: none
};

}  // namespace

std::unique_ptr<RowParser> make_slots_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<FieldsParser<SlotsCut>>(schema, format);
}

}  // namespace anabranch::data
