#include "ops/math/tiles.h"

#include <algorithm>

#include "opdef/append_op.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::math {
namespace {

constexpr int64_t kRoom = 4096;  // elements of all tiles together: 16 KiB, half of an L1 cache
constexpr int64_t kLongestTile = 2048, kLanes = 16;
constexpr int64_t kLeastGrain = 1024;

// n elements from `at` on of a tensor whose elements are repeated.
void repeat_runs(const float* data, const Spread& form, int64_t at, int64_t n, float* out) {
  for (int64_t i = 0; i < n;) {
    const int64_t run = std::min(form.repeat - (at + i) % form.repeat, n - i);
    std::fill_n(out + i, run, data[(at + i) / form.repeat % form.period]);
    i += run;
  }
}

// n elements from `at` on of a tensor that is repeated as a whole.
void repeat_whole(const float* data, int64_t period, int64_t at, int64_t n, float* out) {
  int64_t from = at % period;
  for (int64_t i = 0; i < n; from = 0) {
    const int64_t run = std::min(period - from, n - i);
    std::copy_n(data + from, run, out + i);
    i += run;
  }
}

}  // namespace

Tiles::Tiles(const TileProgram& program) : inputs_(program.inputs()), outs_(program.outs()), forms_(program) {
  AB_CHECK(program.steps().size() <= fused::kMaxSteps, Internal, "a tile program must have at most {} steps",
           fused::kMaxSteps);
  double work = 0;
  for (size_t i = 0; i < program.steps().size(); ++i) {
    const TileStep& step = program.steps()[i];
    const ir::OpRef op = program.op(static_cast<int>(i));
    const TileOp* tile = find_op(op->type).tile();
    AB_CHECK(tile != nullptr, Unsupported, "{} is not supported: it has no tile loop", op->type);
    check_op(*op);
    const KernelArgs args(find_op(op->type), *op, DType::kFloat32, {});
    Step& made = steps_.emplace_back();
    made.loop = tile->make(args, program.result(static_cast<int>(i)));
    made.count = static_cast<int>(step.args.size());
    std::copy(step.args.begin(), step.args.end(), made.args);
    work += static_cast<double>(kCheapGrain) / static_cast<double>(tile->grain);
  }
  grain_ = std::max(kLeastGrain, static_cast<int64_t>(static_cast<double>(kCheapGrain) / work));
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (int k = 0; k < steps_[i].count; ++k) last_reader_[steps_[i].args[k]] = static_cast<int>(i);
  }
  if (!program.has_base()) put_chain_in_result();
  assign_buffers();
}

// The values on the path to the last output, each read last by the next one, are computed in that output's memory,
// which does not alias an input: it is loaded into the cache once, and less scratch memory is needed.
void Tiles::put_chain_in_result() {
  int step = outs_.back();
  for (bool found = true; found;) {
    found = false;
    const Step& s = steps_[static_cast<size_t>(step)];
    for (int k = 0; k < s.count && !found; ++k) {
      const int before = s.args[k] - inputs_;
      found = before >= 0 && last_reader_[s.args[k]] == step &&
              std::find(outs_.begin(), outs_.end(), before) == outs_.end();
      if (found) in_result_[s.args[k]] = true;
      if (found) step = before;
    }
  }
}

// Results that are not outputs share buffers: one is free again after its last reader.
void Tiles::assign_buffers() {
  std::fill_n(buffer_of_, kOperands, -1);
  const int count = static_cast<int>(steps_.size());
  std::vector<int> unused;
  for (int i = 0; i < count; ++i) {
    const Step& s = steps_[static_cast<size_t>(i)];
    for (int k = 0; k < s.count; ++k) {
      const int a = s.args[k];
      const bool again = std::find(s.args, s.args + k, a) != s.args + k;
      if (buffer_of_[a] >= 0 && last_reader_[a] == i && !again) unused.push_back(buffer_of_[a]);
    }
    if (in_result_[inputs_ + i] || std::find(outs_.begin(), outs_.end(), i) != outs_.end()) continue;
    if (unused.empty()) unused.push_back(buffers_++);
    buffer_of_[inputs_ + i] = unused.back();
    unused.pop_back();
  }
}

bool Tiles::run(const KernelContext& c) {
  const Tensor& first = c.outs[0]->tensor();
  if (!forms_.lay(c)) return false;
  c.parallel_for(first.numel(), grain_, [&](int64_t begin, int64_t end) { run_chunk(c, begin, end); });
  return true;
}

void Tiles::run_chunk(const KernelContext& c, int64_t begin, int64_t end) const {
  alignas(64) float room[kRoom];
  const int count = buffers_ + 2 * forms_.smaller();  // see lay_inputs
  const int64_t size = count == 0 ? kLongestTile : std::min(kLongestTile, kRoom / count / kLanes * kLanes);
  const Chunk chunk{begin, end, size, room + buffers_ * size};
  const float* from[kOperands];
  float* to[kOperands];
  for (int i = inputs_; i < inputs_ + static_cast<int>(steps_.size()); ++i) {
    if (buffer_of_[i] >= 0) from[i] = to[i] = room + buffer_of_[i] * size;
  }
  for (int64_t at = begin; at < end; at += size) {
    const int64_t n = std::min(size, end - at);
    lay_inputs(c, chunk, at, n, from);
    for (size_t k = 0; k < outs_.size(); ++k) {
      const int operand = inputs_ + outs_[k];
      from[operand] = to[operand] = static_cast<float*>(c.outs[k]->as<Tensor>().mutable_raw()) + at;
    }
    const int last = inputs_ + outs_.back();
    for (int i = inputs_; i < last; ++i) {
      if (in_result_[i]) from[i] = to[i] = to[last];
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const float* args[fused::kMaxArgs];
      for (int k = 0; k < s.count; ++k) args[k] = from[s.args[k]];
      s.loop(args, to[static_cast<size_t>(inputs_) + i], n);
    }
  }
}

// Inputs of the full shape are read in place, smaller ones are repeated into buffers of two tiles: a short one once for
// all tiles of the chunk, which then start somewhere in its first period.
void Tiles::lay_inputs(const KernelContext& c, const Chunk& chunk, int64_t at, int64_t n, const float** from) const {
  float* room = chunk.room;
  for (int i = 0; i < inputs_; ++i) {
    const float* data = c.ins[i]->tensor().data<float>();
    const InputForms::Form& in = forms_[i];
    if (!in.smaller) {
      from[i] = data + at;
      continue;
    }
    float* buffer = room;
    room += 2 * chunk.tile;
    const int64_t period = in.spread.period, phase = at % period;
    from[i] = buffer;
    if (in.spread.repeat > 1) {
      repeat_runs(data, in.spread, at, n, buffer);
    } else if (period <= chunk.tile) {
      if (at == chunk.begin) repeat_whole(data, period, 0, std::min(chunk.tile, chunk.end - at) + period, buffer);
      from[i] = buffer + phase;
    } else if (phase + n <= period) {
      from[i] = data + phase;
    } else {
      repeat_whole(data, period, at, n, buffer);
    }
  }
}

}  // namespace anabranch::math
