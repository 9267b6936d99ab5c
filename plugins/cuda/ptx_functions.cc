#include "ptx_functions.h"

#include <charconv>
#include <sstream>

namespace anabranch::cuda {
namespace {

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : line.substr(first, last - first + 1);
}

// "ab_step_Relu" of ".visible .func  (.param .b32 func_retval0) ab_step_Relu(".
std::string name_in(std::string_view declaration) {
  const size_t end = declaration.rfind('('), begin = declaration.find_last_of(" )", end);
  if (end == std::string_view::npos || begin == std::string_view::npos || begin + 1 >= end)
    fail(AB_INTERNAL, "a function of PTX must have a name, got ", declaration);
  return std::string(declaration.substr(begin + 1, end - begin - 1));
}

// The type and the two operands of "ld.param.f32 \t%f1, [...]", where `kind` is "ld.param.".
struct Move {
  std::string_view type, to, from;
};
Move move_in(std::string_view line, std::string_view kind) {
  const size_t type_end = line.find_first_of(" \t"), comma = line.find(','), end = line.rfind(';');
  if (type_end == std::string_view::npos || comma == std::string_view::npos || end == std::string_view::npos)
    fail(AB_INTERNAL, "PTX must be as expected, got ", line);
  return {line.substr(kind.size(), type_end - kind.size()), trimmed(line.substr(type_end, comma - type_end)),
          trimmed(line.substr(comma + 1, end - comma - 1))};
}

// Registers of one width may have other types, and 32-bit registers may hold 16 bits.
std::string moved(std::string_view type, std::string_view to, std::string_view from) {
  const std::string_view width = type.substr(1);
  if (width == "16") return said("cvt.u16.u32 ", to, ", ", from, ";\n");
  return said("mov.", starts(from, "0f") ? "f" : "b", width, " ", to, ", ", from, ";\n");
}

// k of "[ab_step_Relu_param_k]".
size_t parameter_in(std::string_view address) {
  const size_t digits = address.rfind('_') + 1;
  size_t k = 0;
  const auto [end, error] = std::from_chars(address.data() + digits, address.data() + address.size(), k);
  if (error != std::errc() || *end != ']') fail(AB_INTERNAL, "a parameter of PTX must end with its number: ", address);
  return k;
}

}  // namespace

PtxFunctions::PtxFunctions(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<std::string>* body = nullptr;
  bool inside = false;  // of the body, after the parameters
  for (std::string line; std::getline(lines, line);) {
    const std::string_view part = trimmed(line);
    for (const std::string_view of_module : {".version", ".target", ".address_size", ".global", ".const"}) {
      if (!body && starts(part, of_module)) head_ += said(part, '\n');
    }
    if (part.find(".func") != std::string_view::npos) body = &bodies_[name_in(part)];
    if (!body || part.empty()) continue;
    inside = inside || part == "{";
    const bool ends = line[0] == '}';
    if (ends) body->push_back("RETURNED:");
    if (inside) body->emplace_back(part);
    if (!ends) continue;
    inside = false;
    body = nullptr;
  }
  if (head_.empty() || bodies_.empty()) fail(AB_INTERNAL, "the text of PTX holds no functions");
}

const std::vector<std::string>& PtxFunctions::body(const std::string& name) const {
  const auto found = bodies_.find(name);
  if (found == bodies_.end()) fail(AB_INTERNAL, "there is no function ", name, " in PTX");
  return found->second;
}

size_t PtxFunctions::length(const std::string& name) const {
  size_t sum = 0;
  for (const std::string& line : body(name)) sum += line.size() + 1;
  return sum;
}

std::string PtxFunctions::call(const std::string& name, const std::vector<std::string>& operands,
                               const std::string& result) const {
  std::string text;
  for (const std::string& line : body(name)) {
    if (starts(line, "ld.param.")) {
      const Move m = move_in(line, "ld.param.");
      text += moved(m.type, m.to, operands.at(parameter_in(m.from)));
    } else if (starts(line, "st.param.")) {
      const Move m = move_in(line, "st.param.");
      text += moved(m.type, result, m.from);
    } else if (const size_t back = line.find("ret;"); back != std::string::npos) {
      text += line.substr(0, back) + "bra RETURNED;\n";
    } else {
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace anabranch::cuda
