#include "ptx_program.h"

#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "failure.h"

namespace anabranch::cuda {
namespace {

using plugin::said;
using Kind = PtxInstruction::Kind;

constexpr const char* kBlanks = " \t\r\n";

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks), last = text.find_last_not_of(kBlanks);
  return std::string(first == std::string_view::npos ? "" : text.substr(first, last - first + 1));
}

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// "a", "b", "c" of "{a, b}, c": registers of one access to memory stand in braces.
std::vector<std::string> parts(const std::string& text, char between) {
  std::vector<std::string> all;
  std::istringstream from(text);
  for (std::string part; std::getline(from, part, between);) {
    std::erase_if(part, [](char c) { return c == '{' || c == '}'; });
    all.push_back(trimmed(part));
  }
  return all;
}

// Names between { and }.
struct Scope {
  struct Registers {
    size_t first, count;  // count 0: one, whose name has no number
  };
  std::unordered_map<std::string, Registers> registers;
  std::unordered_map<std::string, PtxOperand> memory;
  std::unordered_map<std::string, size_t> labels;
  std::vector<std::pair<size_t, std::string>> jumps;  // whose label is not known yet
};

class Parser {
 public:
  Parser(PtxProgram& program, const std::string& text) : program_(program), scopes_(1) {
    for (const char* name : {"%ctaid.x", "%ntid.x", "%tid.x", "%nctaid.x"}) {
      const size_t number = scopes_[0].registers.size();
      scopes_[0].registers[name] = {number, 0};
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      std::string rest = trimmed(line.substr(0, line.find("//")));
      while (!rest.empty()) rest = trimmed(rest.substr(take(rest)));
    }
    if (scopes_.size() != 1) fail("the end of a block", "the end of the text");
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw std::runtime_error(said("line ", line_, " must be ", expected, ", got ", got));
  }

  // The first statement of a line; how long it is.
  size_t take(const std::string& text) {
    if (text[0] == '{') return scopes_.emplace_back(), 1;
    if (text[0] == '}') return close(), 1;
    const size_t end = text.find(';'), colon = text.find(':');
    if (colon != std::string::npos && text.find_first_of(" \t\"") > colon) {
      scopes_.back().labels[text.substr(0, colon)] = program_.instructions.size();
      return colon + 1;
    }
    if (starts(text, ".version") || starts(text, ".target") || starts(text, ".address_size")) return text.size();
    if (starts(text, ".visible .entry ")) return enter(text), text.size();
    if (end == std::string::npos) fail("a statement that ends with ;", text);
    const std::string statement = text.substr(0, end);
    text[0] == '.' ? declare(statement) : instruct(statement);
    return end + 1;
  }

  // Of ".visible .entry name(.param .align 8 .b8 args[4000])".
  void enter(const std::string& text) {
    const size_t name = strlen(".visible .entry "), open = text.find('('), last = text.find('['),
                 parameter = text.rfind(' ', last) + 1;
    if (open == std::string::npos || last == std::string::npos) fail("an entry with one array of parameters", text);
    program_.entries[text.substr(name, open - name)] = program_.instructions.size();
    scopes_[0].memory[text.substr(parameter, last - parameter)] = {PtxOperand::Kind::kParam, 0};
  }

  void close() {
    if (scopes_.size() == 1) fail("inside a block", "}");
    const Scope inner = std::move(scopes_.back());
    scopes_.pop_back();
    for (const auto& [jump, label] : inner.jumps) {
      const auto found = inner.labels.find(label);
      if (found != inner.labels.end())
        program_.instructions[jump].target = found->second;
      else if (scopes_.size() == 1)
        fail("the end of a block that has the label " + label, "}");
      else
        scopes_.back().jumps.emplace_back(jump, label);
    }
  }

  void declare(const std::string& text) {
    if (starts(text, ".pragma")) return;
    if (starts(text, ".reg ")) return declare_registers(text);
    const size_t open = text.find('['), name = text.find_last_of(" \t", open) + 1;
    if (open == std::string::npos || text.find(".b8") > open) fail("an array of .b8", text);
    const size_t bytes = std::stoul(text.substr(open + 1));
    PtxOperand& memory = scopes_.back().memory[text.substr(name, open - name)];
    if (starts(text, ".local ")) {
      memory = {PtxOperand::Kind::kLocal, program_.local_bytes};
      program_.local_bytes += (bytes + 15) / 16 * 16;
    } else if (starts(text, ".global ") || starts(text, ".const ")) {
      memory = {PtxOperand::Kind::kNumber, constant(text.substr(text.find('=') + 1), bytes)};
    } else {
      fail("a declaration that is known here", text);
    }
  }

  PtxWord constant(const std::string& numbers, size_t bytes) {
    auto& words = program_.constants.emplace_back((bytes + 7) / 8);
    auto* to = reinterpret_cast<uint8_t*>(words.data());
    for (const std::string& number : parts(numbers, ',')) *to++ = static_cast<uint8_t>(std::stoi(number));
    return reinterpret_cast<PtxWord>(words.data());
  }

  // ".reg .f32 %f<9>", ".reg .b64 %i, %n".
  void declare_registers(const std::string& text) {
    const std::string names = text.substr(text.find('%'));
    for (const std::string& name : parts(names, ',')) {
      const size_t several = name.find('<');
      const size_t count = several == std::string::npos ? 0 : std::stoul(name.substr(several + 1));
      scopes_.back().registers[name.substr(0, several)] = {program_.registers, count};
      program_.registers += std::max<size_t>(count, 1);
    }
  }

  size_t register_of(const std::string& name) const {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto& known = scope->registers;
      if (const auto one = known.find(name); one != known.end() && one->second.count == 0) return one->second.first;
      const auto several = known.find(name.substr(0, digits));
      if (several == known.end() || digits == name.size()) continue;
      const size_t number = std::stoul(name.substr(digits));
      if (number < several->second.count) return several->second.first + number;
    }
    fail("about registers that are declared", name);
  }

  PtxOperand operand(const std::string& text) const {
    if (text.empty()) fail("an instruction whose operands are there", "none");
    if (text[0] == '[') return address(text);
    if (text[0] == '%') return {PtxOperand::Kind::kRegister, register_of(text)};
    if (starts(text, "0f") || starts(text, "0d"))
      return {PtxOperand::Kind::kNumber, std::stoull(text.substr(2), nullptr, 16)};
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      return {PtxOperand::Kind::kNumber, static_cast<PtxWord>(std::stoll(text))};
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->memory.find(text);
      if (found != scope->memory.end()) return found->second;
    }
    fail("about memory that is declared", text);
  }

  // "[%rd1+-4]".
  PtxOperand address(const std::string& text) const {
    const size_t plus = text.find('+'), end = text.find(']');
    PtxOperand at = operand(trimmed(text.substr(1, std::min(plus, end) - 1)));
    if (plus != std::string::npos) at.offset = static_cast<PtxWord>(std::stoll(text.substr(plus + 1)));
    return at;
  }

  void instruct(std::string text) {
    PtxInstruction made{Kind::kCompute, line_, "", -1, true, nullptr, {}, 0, {}, 0};
    if (text[0] == '@') {
      const size_t end = text.find_first_of(kBlanks);
      made.guard_is = text[1] != '!';
      made.guard = static_cast<int>(register_of(text.substr(made.guard_is ? 1 : 2, end - (made.guard_is ? 1 : 2))));
      text = trimmed(text.substr(end));
    }
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    made.name = text.substr(0, end);
    const std::string operands = trimmed(text.substr(end));
    if (made.name == "bra" || made.name == "bra.uni") {
      made.kind = Kind::kJump;
      scopes_.back().jumps.emplace_back(program_.instructions.size(), operands);
    } else {
      for (const std::string& part : parts(operands, ',')) made.operands.push_back(operand(part));
      recognize(made);
    }
    program_.instructions.push_back(std::move(made));
  }

  void recognize(PtxInstruction& made) const {
    const std::vector<std::string> words = parts(made.name, '.');
    made.op = find_ptx_op(made.name);
    if (made.op && made.operands.size() == static_cast<size_t>(made.op->operands) + 1) return;
    if (made.name == "ret") {
      made.kind = Kind::kReturn;
    } else if (!made.op && (words[0] == "ld" || words[0] == "st")) {
      reach(made, words);
    } else {
      fail("an instruction that is known here", said(made.name, " of ", made.operands.size(), " operands"));
    }
  }

  // "ld.global.nc.v4.f32".
  void reach(PtxInstruction& made, std::vector<std::string> words) const {
    static const std::map<std::string, PtxSpace> spaces{
        {"param", PtxSpace::kParam}, {"local", PtxSpace::kLocal}, {"global", PtxSpace::kGlobal}};
    static const std::map<std::string, uint32_t> sizes{{"u16", 2}, {"b16", 2}, {"u32", 4}, {"b32", 4},
                                                       {"f32", 4}, {"s64", 8}, {"u64", 8}, {"b64", 8}};
    made.kind = words[0] == "ld" ? Kind::kLoad : Kind::kStore;
    std::erase(words, "nc");
    const bool many = words.size() == 4 && (words[2] == "v2" || words[2] == "v4");
    const size_t count = !many ? 1 : words[2] == "v2" ? 2 : 4;
    if (many) words.erase(words.begin() + 2);
    if (words.size() != 3 || !spaces.count(words[1]) || !sizes.count(words[2]) || made.operands.size() != count + 1)
      fail("an access to memory that is known here", said(made.name, " of ", made.operands.size(), " operands"));
    made.space = spaces.at(words[1]);
    made.bytes = sizes.at(words[2]);
  }

  PtxProgram& program_;
  std::vector<Scope> scopes_;
  int line_ = 0;
};

}  // namespace

PtxProgram::PtxProgram(const std::string& text) { Parser(*this, text); }

}  // namespace anabranch::cuda
