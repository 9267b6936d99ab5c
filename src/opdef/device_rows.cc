#include "opdef/device_rows.h"

#include <set>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

std::set<std::string>& types() {
  static auto& all = *new std::set<std::string>();
  return all;
}

}  // namespace

void rows_on_devices(OpDef& def) { types().insert(def.type()); }
bool takes_rows_on_devices(const std::string& type) { return types().count(type) != 0; }

}  // namespace anabranch
