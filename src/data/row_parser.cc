#include "data/row_parser.h"

#include <algorithm>

#include "base/error.h"
#include "data/cache.h"
#include "data/input.h"
#include "data/row_format.h"
#include "data/schema_text.h"
#include "data/table_input.h"

namespace anabranch::data {

void RowWriter::grow(size_t words) {
  AB_CHECK(out_->word_count + words <= UINT32_MAX, ResourceExhausted,
           "a chunk of text has more than {} values: max_line_bytes must be smaller", UINT32_MAX / 2);
  out_->reserve(std::max(out_->word_count + words, 2 * out_->word_capacity));
}

namespace {

std::unique_ptr<RowParser> parser_of(const Schema& schema, const RowFormat& format) {
  switch (format.lines) {
    case Lines::kColumns: return make_columns_parser(schema, format);
    case Lines::kLibsvm:
      return format.is_schema ? make_pairs_parser(schema, format) : make_libsvm_parser(schema, format);
    case Lines::kMultiSlot: return make_slots_parser(schema, format);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<RowParser> make_parser(const Settings& settings) {
  settings.schema.check();
  const Settings::Share& share = settings.share;
  if (settings.format.empty()) {
    RowFormat format;
    format.lines = Lines::kMultiSlot;
    return share_of(make_multi_slot_parser(settings.schema), share, format);
  }
  AB_CHECK(!settings.schema.ins_id && !settings.schema.content, InvalidArgument,
           "instance ids and contents are parts of MultiSlot text; the schema of the data has none");
  const RowFormat format =
      is_schema_text(settings.format) ? parse_schema_text(settings.format) : parse_row_format(settings.format);
  return share_of(parser_of(settings.schema, format), share, format);
}

std::unique_ptr<Input> open_input(const Settings& settings, const std::string& path,
                                  std::shared_ptr<const RowParser> parser, const std::atomic<bool>* stop) {
  if (const char* const kind = settings.pipe_command == "cat" ? table_kind(path) : nullptr)
    return table_input(settings, path, kind);
  CachePlace place;
  if (!settings.cache_folder.empty()) {
    place = cache_place(settings, path);
    if (auto cached = open_cache(place, settings.schema)) return cached;
  }
  auto text = text_input(open_source(settings, path, stop), std::move(parser), path, settings.max_line_bytes, stop);
  return settings.cache_folder.empty() ? std::move(text) : caching_input(std::move(text), place, stop);
}

}  // namespace anabranch::data
