#include "ir/versions.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace anabranch::ir {
namespace {

bool writes(const Op& op, const std::string& name) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const Slot& slot) {
    return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
  });
}

template <class T> bool read_number(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

VersionRead parse(const Op& op, const std::string& text) {
  const size_t first = text.find(' '), second = text.find(' ', first == text.npos ? first : first + 1);
  VersionRead read;
  const bool good = second != text.npos &&
                    read_number(std::string_view(text).substr(first + 1, second - first - 1), &read.arg) &&
                    read_number(std::string_view(text).substr(second + 1), &read.version) && read.version >= 0;
  AB_CHECK(good, InvalidArgument, "{}: {} must hold strings \"SLOT INDEX VERSION\", got \"{}\"", op.type, kReadVersions,
           text);
  read.slot = text.substr(0, first);
  AB_CHECK(read.arg < op.input(read.slot).size(), InvalidArgument,
           "{}: {} must name inputs of the op, got argument {} of slot {}", op.type, kReadVersions, read.arg,
           read.slot);
  return read;
}

}  // namespace

std::vector<VersionRead> version_reads(const Op& op) {
  std::vector<VersionRead> reads;
  if (!op.has_attr(kReadVersions)) return reads;
  for (const auto& text : op.attr<std::vector<std::string>>(kReadVersions)) reads.push_back(parse(op, text));
  return reads;
}

void set_version_reads(Op& op, const std::vector<VersionRead>& reads) {
  std::vector<std::string> texts;
  for (const auto& r : reads) texts.push_back(fmt::format("{} {} {}", r.slot, r.arg, r.version));
  op.attrs[kReadVersions] = std::move(texts);
}

std::optional<int> version_read(const Op& op, std::string_view slot, size_t arg) {
  for (const auto& read : version_reads(op)) {
    if (read.slot == slot && read.arg == arg) return read.version;
  }
  return std::nullopt;
}

int writes_before(const Block& block, const std::string& name, size_t end) {
  const auto& ops = block.ops();
  return static_cast<int>(std::count_if(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(end),
                                        [&](const OpRef& op) { return writes(*op, name); }));
}

void shift_version_reads(Block& block, const Op& op, size_t index, size_t first, int by) {
  const auto written = op.output_args();
  const std::set<std::string> names(written.begin(), written.end());
  for (size_t i = first; i < block.ops().size(); ++i) {
    Op& reader = *block.ops()[i];
    auto reads = version_reads(reader);
    bool moved = false;
    for (auto& read : reads) {
      const std::string& name = reader.input(read.slot)[read.arg];
      if (!names.count(name) || read.version <= writes_before(block, name, index)) continue;
      read.version += by;
      moved = true;
    }
    if (moved) set_version_reads(reader, reads);
  }
}

}  // namespace anabranch::ir
