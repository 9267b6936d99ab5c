#include "data/row_format.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "base/error.h"
#include "data/number.h"

namespace anabranch::data {
namespace {

[[noreturn]] void bad_schema(const std::string& line, const char* why) {
  AB_THROW(InvalidArgument, "the schema of the data has a line that cannot be understood: \"{}\": {}", line, why);
}

uint64_t number(const std::string& text, const std::string& line) {
  uint64_t value = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || careful_id(text, &value) != Spelling::kGood) bad_schema(line, "an integer is missing");
  return value;
}

bool is_name(const std::string& part) { return part.find_first_not_of("0123456789-") != std::string::npos; }

std::vector<ColumnRef> column_list(const std::string& text, const std::string& line, bool header) {
  constexpr uint64_t kMost = 100000;
  std::vector<ColumnRef> columns;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (is_name(part)) {
      if (!header) bad_schema(line, "names of columns need \"header\" in the first line; numbers count from 0");
      columns.push_back({-1, part, salt_of(part)});
      continue;
    }
    const size_t dash = part.find('-');
    const uint64_t first = number(part.substr(0, dash), line);
    const uint64_t last = dash == std::string::npos ? first : number(part.substr(dash + 1), line);
    if (last < first || last > kMost) bad_schema(line, "columns are given as 3 or 3-5 or 3,7, up to 100000");
    for (uint64_t c = first; c <= last; ++c) columns.push_back({static_cast<int64_t>(c), "", c});
  }
  if (columns.empty()) bad_schema(line, "there are no columns");
  return columns;
}

void first_line(const std::vector<std::string>& words, const std::string& line, RowFormat* format) {
  static const std::map<std::string, char> kSeparators = {
      {"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"pipe", '|'}, {"space", ' '}};
  if (words[0] == "libsvm" && words.size() == 1) {
    format->lines = Lines::kLibsvm;
    return;
  }
  if (words[0] != "columns" || words.size() < 2) bad_schema(line, "the first line is \"columns tab\" or \"libsvm\"");
  const auto found = kSeparators.find(words[1]);
  if (found == kSeparators.end()) bad_schema(line, "a separator is tab, comma, semicolon, pipe or space");
  format->separator = found->second;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] != "header" && words[i] != "ragged") bad_schema(line, "only \"header\" and \"ragged\" may follow");
    (words[i] == "header" ? format->header : format->ragged) = true;
  }
}

double real(const std::string& text, const std::string& line, const char* why) {
  float value = 0;
  std::string padded = text;
  padded.append(kTextPadding, '\0');
  if (text.empty() || careful_float({padded.data(), text.size()}, &value) != Spelling::kGood) bad_schema(line, why);
  return value;
}

void options(const std::vector<std::string>& words, const std::string& line, ColumnRule* rule) {
  for (size_t i = 3; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    if (word == "log" || word == "required") {
      (word == "log" ? rule->log : rule->required) = true;
      continue;
    }
    if (word == "hash") {
      rule->hash = number(next, line);
      if (rule->hash == 0) bad_schema(line, "hash takes a number above 0");
    } else if (word == "split" && next.size() == 1) {
      rule->split = next[0];
    } else if (word == "salt" && !next.empty()) {
      for (ColumnRef& column : rule->columns) column.salt = salt_of(next);
    } else if (word == "missing") {
      rule->missing = real(next, line, "missing takes a number");
      rule->has_missing = true;
      rule->missing_last = rule->log;
    } else if (word == "range") {
      rule->low = real(next, line, "range takes two numbers");
      rule->high = real(++i + 1 < words.size() ? words[i + 1] : "", line, "range takes two numbers");
      rule->ranged = true;
    } else {
      bad_schema(line, "what follows the columns is hash N, salt NAME, split C, missing V, log, required or range A B");
    }
    ++i;
  }
  if (rule->hash && rule->has_missing) {
    bad_schema(line, "\"missing\" has no effect on a column with \"hash\": an empty text is hashed like any other");
  }
}

// "C*" over several columns is a rule for each.
void add_rules(const ColumnRule& rule, RowFormat* format) {
  const size_t star = rule.slot.find('*');
  if (star == std::string::npos || format->lines == Lines::kLibsvm) {
    format->rules.push_back(rule);
    return;
  }
  for (size_t i = 0; i < rule.columns.size(); ++i) {
    ColumnRule one = rule;
    one.slot.replace(star, 1, std::to_string(i + 1));
    one.columns = {rule.columns[i]};
    format->rules.push_back(one);
  }
}

}  // namespace

RowFormat parse_row_format(const std::string& text) {
  RowFormat format;
  bool named = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) continue;
    if (!named) {
      first_line(words, line, &format);
      named = true;
      continue;
    }
    if (words.size() < 3 || words[1] != "=") bad_schema(line, "a slot is given as NAME = COLUMNS");
    ColumnRule rule;
    rule.slot = words[0];
    if (format.lines == Lines::kLibsvm) {
      rule.part = words[2];
      if (rule.part != "label" && rule.part != "index" && rule.part != "value") {
        bad_schema(line, "libsvm has label, index and value");
      }
    } else {
      rule.columns = column_list(words[2], line, format.header);
    }
    if (format.lines == Lines::kLibsvm && words.size() > 3) bad_schema(line, "libsvm takes no options");
    options(words, line, &rule);
    add_rules(rule, &format);
  }
  AB_CHECK(named, InvalidArgument, "the schema of the data is empty");
  return format;
}

uint64_t salt_of(std::string_view name) {
  constexpr uint64_t kNames = 0x73616c74;  // another seed than any number of a column
  return hash_bytes(name, kNames);
}

uint64_t hash_to_id(uint64_t hash, uint64_t buckets) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * buckets) >> 64);
}

uint64_t hashed_id(std::string_view text, uint64_t salt, uint64_t buckets) {
  return hash_to_id(hash_bytes(text, salt), buckets);
}

namespace {

// The first 1 to 7 bytes of a word whose others are 0, without a loop.
uint64_t last_bytes(std::string_view bytes) {
  const size_t n = bytes.size();
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i); };
  if (n < 4) return byte(0) | byte(n / 2) | byte(n - 1);
  uint32_t begin, end;
  std::memcpy(&begin, bytes.data(), 4);
  std::memcpy(&end, bytes.data() + n - 4, 4);
  return begin | static_cast<uint64_t>(end) << (8 * (n - 4));
}

}  // namespace

// Eight bytes at a time, each folded by a full product.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u, kOther = 0xe7037ed1a0b428dbu;
  const auto fold = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t h = fold(seed ^ kOdd, (bytes.size() + 1) ^ kOther);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    h = fold(h ^ word ^ kOdd, kOther);
  }
  if (!bytes.empty()) h = fold(h ^ last_bytes(bytes) ^ kOdd, kOther);
  return fold(h ^ kOdd, kOther);
}

}  // namespace anabranch::data
