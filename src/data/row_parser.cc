#include "data/row_parser.h"

#include <algorithm>

#include "base/error.h"
#include "data/cache.h"
#include "data/input.h"
#include "data/row_format.h"

namespace anabranch::data {

void RowWriter::grow(size_t words) {
  AB_CHECK(out_->word_count + words <= UINT32_MAX, ResourceExhausted,
           "a chunk of text has more than {} values: max_line_bytes must be smaller", UINT32_MAX / 2);
  out_->reserve(std::max(out_->word_count + words, 2 * out_->word_capacity));
}

std::unique_ptr<RowParser> make_parser(const Settings& settings) {
  settings.schema.check();
  if (settings.format.empty()) return make_multi_slot_parser(settings.schema);
  AB_CHECK(!settings.schema.ins_id && !settings.schema.content, InvalidArgument,
           "instance ids and contents are parts of MultiSlot text; the schema of the data has none");
  const RowFormat format = parse_row_format(settings.format);
  return format.libsvm ? make_libsvm_parser(settings.schema, format) : make_columns_parser(settings.schema, format);
}

std::unique_ptr<Input> open_input(const Settings& settings, const std::string& path,
                                  std::shared_ptr<const RowParser> parser, const std::atomic<bool>* stop) {
  CachePlace place;
  if (!settings.cache_folder.empty()) {
    place = cache_place(settings, path);
    if (auto cached = open_cache(place, settings.schema)) return cached;
  }
  auto text = text_input(open_source(settings, path, stop), std::move(parser), path, settings.max_line_bytes, stop);
  return settings.cache_folder.empty() ? std::move(text) : caching_input(std::move(text), place, stop);
}

}  // namespace anabranch::data
