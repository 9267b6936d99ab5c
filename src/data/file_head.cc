#include "data/file_head.h"

#include <algorithm>

#include "base/error.h"
#include "base/near.h"
#include "data/number.h"
#include "data/row_format.h"

namespace anabranch::data {
namespace {

std::string joined(const std::vector<std::string_view>& fields) {
  constexpr size_t kShown = 2000;
  std::string out;
  for (const std::string_view field : fields) {
    if (!out.empty()) out += ", ";
    out += field;
    if (out.size() <= kShown) continue;
    out.resize(kShown);
    return out + "...";
  }
  return out;
}

bool is_number(std::string_view field) {
  std::string padded(field);  // parsing reads a few bytes more
  const size_t size = padded.size();
  padded.append(kTextPadding, '\0');
  float value = 0;
  return size > 0 && careful_float({padded.data(), size}, &value) != Spelling::kNone;
}

}  // namespace

FileHeads::FileHeads(const RowFormat& format)
    : header_(format.header), ragged_(format.ragged), separator_(format.separator) {}

// A header of one field may be that of another format; empty if nothing points to one.
std::string FileHeads::other_format(const std::vector<std::string_view>& fields) const {
  if (fields.size() != 1) return "";
  const size_t colon = fields[0].find(':'), blank = fields[0].rfind(' ', colon);
  if (colon != std::string_view::npos && blank != std::string_view::npos && colon > blank + 1 &&
      fields[0].substr(blank + 1, colon - blank - 1).find_first_not_of("0123456789") == std::string_view::npos) {
    return "; it looks like a line of libsvm, which anabranch.Schema.libsvm() describes";
  }
  const std::pair<char, const char*> known[] = {{',', "','"}, {';', "';'"}, {'\t', "a tab"}, {'|', "'|'"}};
  const char* own = "another character";
  for (const auto& [separator, name] : known) own = separator == separator_ ? name : own;
  for (const auto& [separator, name] : known) {
    if (separator != separator_ && fields[0].find(separator) != std::string_view::npos) {
      return fmt::format("; the separator of the file seems to be {}, but that of the format is {}", name, own);
    }
  }
  return "";
}

size_t FileHeads::add(const std::vector<ColumnRef>& columns, bool numbers) {
  const size_t first = columns_.size();
  for (const ColumnRef& column : columns) columns_.push_back({column.number, column.name, numbers});
  return first;
}

std::vector<size_t> FileHeads::distinct(std::vector<Column>* columns) const {
  std::vector<size_t> places;
  for (const Column& added : columns_) {
    auto at = std::find_if(columns->begin(), columns->end(),
                           [&](const Column& c) { return c.number == added.number && c.name == added.name; });
    if (at == columns->end()) at = columns->insert(at, added);
    places.push_back(static_cast<size_t>(at - columns->begin()));
  }
  return places;
}

size_t FileHeads::position(const Column& column, const std::vector<std::string_view>& fields,
                           const std::string& path) const {
  if (column.number >= 0) return static_cast<size_t>(column.number);
  const auto found = std::find(fields.begin(), fields.end(), column.name);
  AB_CHECK(
      found != fields.end(), InvalidArgument, "{}: the header has no column {}: {}{}", path, column.name,
      joined(fields),
      other_format(fields).empty() ? near_name(column.name, {fields.begin(), fields.end()}) : other_format(fields));
  AB_CHECK(std::find(found + 1, fields.end(), column.name) == fields.end(), InvalidArgument,
           "{}: the header has the column {} more than once: {}", path, column.name, joined(fields));
  return static_cast<size_t>(found - fields.begin());
}

// A file without a header would lose its first row.
void FileHeads::check_names(const std::vector<std::string_view>& fields, const std::string& path) const {
  size_t numbers = 0, names = 0;
  for (const Column& column : columns_) {
    if (!column.is_number || column.number < 0 || static_cast<size_t>(column.number) >= fields.size()) continue;
    ++(is_number(fields[static_cast<size_t>(column.number)]) ? numbers : names);
  }
  AB_CHECK(numbers == 0 || names > 0, InvalidArgument,
           "{}: the first line must contain the names of the columns, because the schema says \"header\"; got: {}",
           path, joined(fields));
}

void FileHeads::compare(const std::string& names, const std::string& path) const {
  const std::lock_guard lock(mutex_);
  if (first_path_.empty()) {
    first_names_ = names;
    first_path_ = path;
  }
  AB_CHECK(names == first_names_, InvalidArgument,
           "{}: the header must be that of {}, because the schema numbers the columns\n  header of {}: {}\n  header of "
           "{}: {}",
           path, first_path_, path, names, first_path_, first_names_);
}

FileHead FileHeads::head(const std::vector<std::string_view>& fields, const std::string& path) const {
  FileHead head;
  size_t needed = 0;
  bool numbered = false;
  for (const Column& column : columns_) {
    head.columns.push_back(position(column, fields, path));
    needed = std::max(needed, head.columns.back() + 1);
    numbered |= column.number >= 0;
  }
  if (header_) {
    AB_CHECK(needed <= fields.size(), InvalidArgument, "{}: the schema uses column {}, but the header has {}: {}", path,
             needed - 1, fields.size(), joined(fields));
    check_names(fields, path);
    if (numbered) compare(joined(fields), path);
  }
  head.at_least = ragged_ || needed > fields.size();  // a first line that is too short is a bad row itself
  head.fields = head.at_least ? needed : fields.size();
  return head;
}

}  // namespace anabranch::data
