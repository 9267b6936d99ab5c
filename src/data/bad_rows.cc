#include "data/bad_rows.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace anabranch::data {

void BadRows::admit(const Block& block, const std::string& file, int64_t* rows) {
  for (const BadRow& row : block.bad) {
    *rows = row.rows;
    const std::string message = bad_row_message(row, schema_, file, block.first_line + row.line);
    const int64_t count = policy_.before + ++count_;
    if (policy_.kind == BadRowPolicy::Kind::kRaise) {
      const char* const hint = bad_row_hint(row);
      throw Error(ErrorKind::kInvalidArgument, message)
          .with_hint(fmt::format("{}{}set_bad_rows(\"skip\") lets a pass continue without such lines", hint,
                                 *hint ? "; " : ""));
    }
    if (policy_.kind == BadRowPolicy::Kind::kQuarantine) quarantine(row, message);
    AB_CHECK(policy_.max_rows < 0 || count <= policy_.max_rows, InvalidArgument,
             "more than {} bad lines; the last one: {}", policy_.max_rows, message);
  }
  *rows = block.rows();
}

void BadRows::quarantine(const BadRow& row, const std::string& message) {
  if (!quarantine_) {
    quarantine_.reset(std::fopen(policy_.quarantine.c_str(), policy_.before ? "ae" : "we"));
    AB_CHECK(quarantine_ != nullptr, Unavailable, "cannot write bad lines to {}: {}", policy_.quarantine,
             std::strerror(errno));
  }
  const bool written = std::fprintf(quarantine_.get(), "# %s\n", message.c_str()) >= 0 &&
                       std::fwrite(row.text.data(), 1, row.text.size(), quarantine_.get()) == row.text.size() &&
                       std::fputc('\n', quarantine_.get()) != EOF && std::fflush(quarantine_.get()) == 0;
  AB_CHECK(written, Unavailable, "cannot write bad lines to {}: {}", policy_.quarantine, std::strerror(errno));
}

}  // namespace anabranch::data
