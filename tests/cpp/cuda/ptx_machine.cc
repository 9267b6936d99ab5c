#include "ptx_machine.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "failure.h"

namespace anabranch::cuda {
namespace {

using plugin::said;
using Kind = PtxInstruction::Kind;

constexpr int64_t kMostInstructions = 30'000'000;  // of a lane: more than any kernel here has
constexpr PtxWord kLeft = 0x5eed5eed7fd5eed5;      // what is in registers that nothing has written: a NaN

// 16-byte words of memory that start at a multiple of 16.
struct alignas(16) Chunk {
  std::byte bytes[16];
};

class Lane {
 public:
  Lane(const PtxProgram& program, std::span<const std::byte> args, std::span<const PtxRange> memory)
      : program_(program), memory_(memory), args_((args.size() + 15) / 16), local_(program.local_bytes / 16) {
    memcpy(args_.data(), args.data(), args.size());
  }

  void run(size_t entry, PtxGrid grid, uint32_t block, uint32_t lane) {
    registers_.assign(program_.registers, kLeft);
    const PtxWord specials[PtxProgram::kSpecials] = {block, grid.lanes, lane, grid.blocks};
    std::copy(std::begin(specials), std::end(specials), registers_.begin());
    size_t at = entry;
    for (int64_t count = 0;; ++count) {
      const PtxInstruction& i = program_.instructions.at(at++);
      if (count == kMostInstructions) fail(i, "an instruction of a lane that ends", said(count, " instructions"));
      if (i.guard >= 0 && (registers_[static_cast<size_t>(i.guard)] != 0) != i.guard_is) continue;
      if (i.kind == Kind::kReturn) return;
      if (i.kind == Kind::kJump)
        at = i.target;
      else
        step(i);
    }
  }

 private:
  [[noreturn]] static void fail(const PtxInstruction& i, const std::string& expected, const std::string& got) {
    throw std::runtime_error(said("line ", i.line, " (", i.name, ") must be ", expected, ", got ", got));
  }

  void step(const PtxInstruction& i) {
    if (i.kind == Kind::kLoad) return load(i);
    if (i.kind == Kind::kStore) return store(i);
    PtxWord in[4];
    for (size_t k = 1; k < i.operands.size(); ++k) in[k - 1] = value(i.operands[k]);
    result(i, 0) = i.op->of(in);
  }

  PtxWord& result(const PtxInstruction& i, size_t k) {
    if (i.operands[k].kind != PtxOperand::Kind::kRegister) fail(i, "an instruction that writes registers", "another");
    return registers_[i.operands[k].value];
  }

  PtxWord value(const PtxOperand& o) const {
    if (o.kind == PtxOperand::Kind::kRegister) return registers_[o.value] + o.offset;
    PtxWord base = 0;
    if (o.kind == PtxOperand::Kind::kParam) base = reinterpret_cast<PtxWord>(args_.data());
    if (o.kind == PtxOperand::Kind::kLocal) base = reinterpret_cast<PtxWord>(local_.data());
    return base + o.value + o.offset;
  }

  void load(const PtxInstruction& i) {
    const size_t count = i.operands.size() - 1;
    const std::byte* from = reached(i, value(i.operands[count]), count);
    for (size_t k = 0; k < count; ++k) {
      PtxWord& to = result(i, k) = 0;
      memcpy(&to, from + k * i.bytes, i.bytes);
    }
  }

  void store(const PtxInstruction& i) {
    const size_t count = i.operands.size() - 1;
    std::byte* to = reached(i, value(i.operands[0]), count);
    for (size_t k = 0; k < count; ++k) {
      const PtxWord from = value(i.operands[k + 1]);
      memcpy(to + k * i.bytes, &from, i.bytes);
    }
  }

  static bool lies_in(const PtxRange& range, PtxWord address, uint64_t bytes) {
    const auto begin = reinterpret_cast<PtxWord>(range.begin);
    return address >= begin && address + bytes <= begin + range.bytes;
  }

  std::byte* reached(const PtxInstruction& i, PtxWord address, size_t count) const {
    const uint64_t bytes = count * i.bytes;
    const bool writes = i.kind == Kind::kStore;
    if (address % bytes) fail(i, said("at a multiple of ", bytes, " bytes"), said(address));
    const auto fits = [&](const PtxRange& range) {
      return (range.written || !writes) && lies_in(range, address, bytes);
    };
    bool found = false;
    if (i.space == PtxSpace::kParam) {
      found = fits({args_.data(), args_.size() * sizeof(Chunk), false});
    } else if (i.space == PtxSpace::kLocal) {
      found = fits({local_.data(), local_.size() * sizeof(Chunk), true});
    } else {
      found = std::any_of(memory_.begin(), memory_.end(), fits) ||
              std::any_of(program_.constants.begin(), program_.constants.end(), [&](const auto& words) {
                return fits({words.data(), words.size() * sizeof(PtxWord), false});
              });
    }
    if (!found) fail(i, said("within memory that the kernel has, to ", writes ? "write" : "read"), said(address));
    return reinterpret_cast<std::byte*>(address);
  }

  const PtxProgram& program_;
  const std::span<const PtxRange> memory_;
  std::vector<PtxWord> registers_;
  std::vector<Chunk> args_, local_;
};

}  // namespace

void PtxMachine::run(const std::string& entry, PtxGrid grid, std::span<const std::byte> args,
                     std::span<const PtxRange> memory) const {
  const auto found = program_.entries.find(entry);
  if (found == program_.entries.end()) throw std::runtime_error(said("an entry must be one of the text, got ", entry));
  Lane lane(program_, args, memory);
  for (uint32_t block = grid.first; block < grid.blocks; ++block) {
    for (uint32_t k = 0; k < grid.lanes; ++k) lane.run(found->second, grid, block, k);
  }
}

}  // namespace anabranch::cuda
