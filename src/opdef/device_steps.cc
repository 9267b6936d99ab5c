#include "opdef/device_steps.h"

#include <map>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

std::map<std::string, DeviceStepOf>& makers() {
  static auto& all = *new std::map<std::string, DeviceStepOf>();
  return all;
}

}  // namespace

void add_device_step(OpDef& def, DeviceStepOf make) { makers()[def.type()] = std::move(make); }

const DeviceStepOf* device_step_of(const std::string& type) {
  const auto found = makers().find(type);
  return found == makers().end() ? nullptr : &found->second;
}

}  // namespace anabranch
