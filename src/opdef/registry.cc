#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>

#include "opdef/only_computes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Declarations run before main(), in any order; the table is frozen and checked as a whole at first use.
class Registry {
 public:
  OpDef& declare(const char* type, const char* file) {
    AB_CHECK(!frozen_, Internal, "op {} is declared in {} after the registry was used", type, file);
    auto [it, fresh] = files_.emplace(type, file);
    AB_CHECK(fresh, Internal, "op {} is declared in {} and in {}", type, it->second, file);
    return all_.emplace_back(type);
  }

  const char* file_of(const std::string& type) const {
    const auto it = files_.find(type);
    return it == files_.end() ? nullptr : it->second;
  }

  const std::map<std::string, const OpDef*>& table() {
    std::call_once(once_, [&] {
      frozen_ = true;
      std::map<std::string, OpDef*> types;
      for (OpDef& def : all_) types[def.type()] = &def;
      for (auto& [type, def] : types) complete(types, *def);
      for (const OpDef& def : all_) {
        def.check_complete();
        by_type_[def.type()] = &def;
      }
    });
    return by_type_;
  }

 private:
  // A gradient op is completed from its forward op, which may itself be a gradient.
  static void complete(const std::map<std::string, OpDef*>& types, OpDef& def) {
    if (def.forward()) return;
    const std::string& type = def.type();
    if (type.ends_with(kGradOp)) {
      const auto forward = types.find(type.substr(0, type.size() - kGradOp.size()));
      AB_CHECK(forward != types.end() || !def.follows(), Internal, "there is no op that {} is the gradient of", type);
      if (forward != types.end()) {
        complete(types, *forward->second);
        def.follow(*forward->second);
      }
    }
    AB_CHECK(!def.has_grad_reads() || types.count(type + std::string(kGradOp)), Internal,
             "op {} has grad_reads, but there is no AB_GRAD({})", type, type);
    def.finish_reads();
  }

  static constexpr std::string_view kGradOp = "_grad";

  std::deque<OpDef> all_;
  std::map<std::string, const OpDef*> by_type_;
  std::map<std::string, const char*> files_;
  std::once_flag once_;
  bool frozen_ = false;
};

Registry& registry() {
  static Registry r;
  return r;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest_types(const std::string& type) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const auto& [name, def] : registry().table()) {
    const size_t d = edit_distance(type, name);
    if (d <= 2 + type.size() / 4) near.emplace_back(d, name);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
  return names;
}

}  // namespace

const char* op_file(const std::string& type) { return registry().file_of(type); }

OpDef& declare_op(const char* type, const char* file) { return registry().declare(type, file); }

OpDef& declare_gradient(const char* forward, const char* file) {
  OpDef& def = registry().declare((std::string(forward) + "_grad").c_str(), file);
  def.follows_ = true;
  return def;
}

const OpDef* find_op_or_null(const std::string& type) {
  const auto& table = registry().table();
  auto it = table.find(type);
  return it == table.end() ? nullptr : it->second;
}

const OpDef& find_op(const std::string& type) {
  if (const OpDef* def = find_op_or_null(type)) return *def;
  Error error(ErrorKind::kUnsupported, fmt::format("there is no op {}", type));
  const auto near = nearest_types(type);
  if (!near.empty()) error.with_hint(fmt::format("the nearest names are {}", fmt::join(near, ", ")));
  throw error;
}

std::vector<std::string> op_types() {
  std::vector<std::string> types;
  for (const auto& [name, def] : registry().table()) types.push_back(name);
  return types;
}

}  // namespace anabranch
