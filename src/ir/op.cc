#include "ir/op.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/var.h"

namespace anabranch::ir {
namespace {

std::vector<std::string> all_args(const std::vector<Slot>& slots) {
  std::vector<std::string> args;
  for (const auto& slot : slots) {
    for (const auto& arg : slot.args) {
      if (arg != kEmptyVar) args.push_back(arg);
    }
  }
  return args;
}

void rename(std::vector<Slot>* slots, const std::string& from, const std::string& to) {
  for (auto& slot : *slots) std::replace(slot.args.begin(), slot.args.end(), from, to);
}

std::string role_str(int role) {
  std::string text;
  const auto add = [&](const char* part) { text.append(text.empty() ? "" : "+").append(part); };
  if ((role & 0xff) == role::kForward && role != role::kNotSpecified) add("forward");
  if (role & role::kBackward) add("backward");
  if (role & role::kOptimize) add("optimize");
  if (role & role::kRpc) add("rpc");
  if (role & role::kDist) add("dist");
  if (role & role::kLrSched) add("lr_sched");
  if (role & role::kLoss) add("loss");
  return text.empty() ? "no role" : text;
}

}  // namespace

const std::vector<std::string>& Op::find(const std::vector<Slot>& slots, std::string_view name) {
  static const std::vector<std::string> none;
  for (const auto& slot : slots) {
    if (slot.name == name) return slot.args;
  }
  return none;
}

void Op::set(std::vector<Slot>* slots, const std::string& name, std::vector<std::string> args) {
  for (auto& slot : *slots) {
    if (slot.name == name) {
      slot.args = std::move(args);
      return;
    }
  }
  slots->push_back({name, std::move(args)});
}

std::vector<std::string> Op::input_args() const { return all_args(inputs); }
std::vector<std::string> Op::output_args() const { return all_args(outputs); }
void Op::rename_input(const std::string& from, const std::string& to) { rename(&inputs, from, to); }
void Op::rename_output(const std::string& from, const std::string& to) { rename(&outputs, from, to); }

bool Op::has_attr(std::string_view name) const { return attrs.find(name) != attrs.end(); }

template <class T> const T& Op::attr(std::string_view name) const {
  auto it = attrs.find(name);
  AB_CHECK(it != attrs.end(), NotFound, "op {} has no attribute {}", type, name);
  return attr_as<T>(name, it->second);
}
#define AB_INSTANTIATE(T) template const T& Op::attr<T>(std::string_view name) const
AB_EACH_ATTR_TYPE(AB_INSTANTIATE);
#undef AB_INSTANTIATE

int Op::role() const {
  const auto it = attrs.find("op_role");
  return it == attrs.end() ? role::kForward : attr_as<int32_t>(it->first, it->second);
}

std::vector<std::pair<std::string, std::string>> Op::role_vars() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!has_attr("op_role_var")) return pairs;
  const auto& names = attr<std::vector<std::string>>("op_role_var");
  AB_CHECK(names.size() % 2 == 0, InvalidArgument, "op {}: op_role_var must hold pairs of names, got {} names", type,
           names.size());
  for (size_t i = 0; i < names.size(); i += 2) pairs.emplace_back(names[i], names[i + 1]);
  return pairs;
}

std::vector<int> Op::sub_blocks() const {
  std::vector<int> blocks;
  for (const auto& [name, value] : attrs) {
    if (const auto* one = std::get_if<BlockRef>(&value)) blocks.push_back(one->idx);
    if (const auto* list = std::get_if<std::vector<BlockRef>>(&value)) {
      for (const auto& ref : *list) blocks.push_back(ref.idx);
    }
  }
  return blocks;
}

std::string Op::describe(int index, int block) const {
  std::string text = index < 0 ? type : fmt::format("#{} {}", index, type);
  const auto outs = output_args();
  if (!outs.empty()) text += " -> " + outs[0];
  if (outs.size() > 1) text += fmt::format(" and {} more", outs.size() - 1);
  text += fmt::format(" ({}, block {})", role_str(role()), block);
  if (made_at.known()) text += "  made at " + made_at.str();
  return text;
}

}  // namespace anabranch::ir
