#include "data/row_parser.h"

#include <algorithm>

#include "base/error.h"
#include "data/input.h"

namespace anabranch::data {

void RowWriter::grow(size_t words) { out_->reserve(std::max(out_->word_count + words, 2 * out_->word_capacity)); }

std::unique_ptr<RowParser> make_parser(const Settings& settings) { return make_multi_slot_parser(settings.schema); }

std::unique_ptr<Input> open_input(const Settings& settings, const std::string& path,
                                  std::shared_ptr<const RowParser> parser, const std::atomic<bool>* stop) {
  return text_input(open_source(settings, path, stop), std::move(parser), settings.max_line_bytes);
}

}  // namespace anabranch::data
