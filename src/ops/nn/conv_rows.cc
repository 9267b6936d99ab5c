#include "ops/nn/conv_rows.h"

#include <algorithm>
#include <map>

#include "ops/kernels/workspace.h"
#include "ops/nn/blocked.h"
#include "ops/nn/conv_ways.h"

namespace anabranch::nn {
namespace {

constexpr int64_t kBlockElems = 1 << 18;  // of the images of a task: they stay in the second-level cache
constexpr int64_t kLeastRows = 64;        // of a task
constexpr int64_t kFirstCache = 1 << 13;  // elements
constexpr int64_t kShortRow = 16;         // pixels
constexpr int64_t kTile = 8;              // samples, so that groups of one pixel fill the tiles of the loops
constexpr int64_t kCopyGrain = 16384;     // elements

int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

Extents place_of(int64_t index, const Extents& e) { return {index / (e[1] * e[2]), index / e[2] % e[1], index % e[2]}; }
int64_t index_of(const Extents& at, const Extents& e) { return (at[0] * e[1] + at[1]) * e[2] + at[2]; }
bool inside(const Extents& at, const Extents& e) {
  for (size_t k = 0; k < 3; ++k) {
    if (at[k] < 0 || at[k] >= e[k]) return false;
  }
  return true;
}

// The input pixel that an output reads with a tap, or the output that an input is read by; -1 for none.
int64_t source(const Window& w, bool forward, int64_t pixel, int64_t tap) {
  const Extents at = place_of(pixel, forward ? w.out : w.in), t = place_of(tap, w.kernel);
  Extents other{};
  for (size_t k = 0; k < 3; ++k) {
    const int64_t shift = t[k] * w.dilation[k] - w.before[k];
    other[k] = forward ? at[k] * w.stride[k] + shift : at[k] - shift;
    if (forward) continue;
    if (other[k] < 0 || other[k] % w.stride[k] != 0) return -1;
    other[k] /= w.stride[k];
  }
  const Extents& e = forward ? w.in : w.out;
  return inside(other, e) ? index_of(other, e) : -1;
}

}  // namespace

RowConv::RowConv(ConvPass pass, const ConvDims& d)
    : dims(d), pass_(pass), sizes_(rows::sizes()), taps_(volume(d.window.kernel)) {
  if (pass == ConvPass::kBackwardFilter) {
    plan_filter();
    return;
  }
  const bool forward = pass == ConvPass::kForward;
  in_ = images(forward, false);
  out_ = images(!forward, true);
  depth_ = in_.channels;
  vectors_ = rounded_up(out_.channels, sizes_.floats) / sizes_.floats;
  block_ = std::max<int64_t>(kBlockElems / in_.elems(), 1);
  if (block_ > kTile) block_ = std::max(kTile, std::min(block_, d.batch / 8) / kTile * kTile);
  block_ = std::min(std::max(block_, kLeastRows / out_.pixels), d.batch);
  packed_.resize(static_cast<size_t>(rounded_up(vectors_ * sizes_.floats * taps_ * depth_, 16) / 16));
  make_groups();
}

// Copies of plain images have all channels of a pixel next to each other, or in blocks if they fill these.
RowConv::Images RowConv::images(bool input, bool written) const {
  Images made;
  made.pixels = volume(input ? dims.window.in : dims.window.out);
  made.channels = input ? dims.in_channels : dims.out_channels;
  made.blocked = input ? dims.blocked_input : dims.blocked_output;
  const int64_t block = channel_block();
  const bool whole = made.channels % sizes_.floats == 0;
  made.copied = !made.blocked && !(dims.channels_last && whole);
  const bool blocks = made.blocked || (made.copied && made.channels % block == 0);
  const int64_t width = blocks                   ? block
                        : made.copied && written ? rounded_up(made.channels, sizes_.floats)
                                                 : made.channels;
  made.form = {.width = width, .blocks = blocks ? made.channels / block : 1, .stride = made.pixels * width};
  return made;
}

void RowConv::make_groups() {
  std::map<std::vector<std::pair<int64_t, int64_t>>, size_t> known;
  const bool forward = pass_ == ConvPass::kForward;
  for (int64_t pixel = 0; pixel < out_.pixels; ++pixel) {
    std::vector<std::pair<int64_t, int64_t>> key;
    int64_t base = 0;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t from = source(dims.window, forward, pixel, tap);
      if (from < 0) continue;
      if (key.empty()) base = from;
      key.emplace_back(tap, from - base);
    }
    const auto [it, added] = known.emplace(key, groups_.size());
    if (added) {
      groups_.emplace_back();
      for (const auto& [tap, shift] : key) groups_.back().taps.push_back({shift * in_.form.width, tap * depth_});
    }
    Group& group = groups_[it->second];
    group.from.push_back(static_cast<int32_t>(base * in_.form.width));
    group.to.push_back(static_cast<int32_t>(pixel * out_.form.width));
    ++group.per_sample;
  }
  for (Group& group : groups_) {
    const auto count = static_cast<size_t>(group.per_sample);
    for (int64_t n = 1; n < block_; ++n) {
      for (size_t k = 0; k < count; ++k) {
        group.from.push_back(static_cast<int32_t>(group.from[k] + n * in_.elems()));
        group.to.push_back(static_cast<int32_t>(group.to[k] + n * out_.elems()));
      }
    }
  }
}

void RowConv::plan_filter() {
  in_ = images(true, false);
  out_ = images(false, false);
  sizes_.vectors = sizes_.filter_vectors;
  turned_ = filter_rows_are_inputs(dims);
  vectors_ = rounded_up(turned_ ? out_.channels : in_.channels, sizes_.floats) / sizes_.floats;
  // Short rows of images: samples lie next to each other, so that the loops are longer.
  const int64_t used = sizes_.floats * (sizes_.vectors * in_.pixels + out_.pixels);
  const int64_t fits = std::clamp<int64_t>(kFirstCache / used, 1, dims.batch);
  const int64_t run = dims.window.stride[2] == 1 ? dims.window.out[2] : 1;
  if (run < kShortRow) {
    int64_t together = std::min(std::max(fits, kShortRow / run), dims.batch);
    while (dims.batch % together != 0) --together;
    for (Images* images : {&in_, &out_}) {
      images->together = together;
      images->copied |= together > 1;
      images->form.stride *= together;
    }
  }
  block_ = std::max<int64_t>(fits / in_.together, 1) * in_.together;
  runs_.resize(static_cast<size_t>(taps_));
  for (int64_t tap = 0; tap < taps_; ++tap) add_runs(tap);
}

void RowConv::add_runs(int64_t tap) {
  auto& runs = runs_[static_cast<size_t>(tap)];
  const int64_t together = in_.together, step = together > 1 ? 1 : dims.window.stride[2];
  for (int64_t pixel = 0; pixel < out_.pixels; ++pixel) {
    const int64_t from = source(dims.window, true, pixel, tap);
    if (from < 0) continue;
    const rows::Run run{from * together * in_.form.width, pixel * together * out_.form.width, together};
    if (!runs.empty()) {
      rows::Run& last = runs.back();
      if (last.image + last.count * step * in_.form.width == run.image &&
          last.dout + last.count * out_.form.width == run.dout) {
        last.count += together;
        continue;
      }
    }
    runs.push_back(run);
  }
}

void RowConv::run(const KernelContext& c, const float* a, const float* b, float* out, const ConvExtras& extras) {
  if (pass_ == ConvPass::kBackwardFilter) return run_filter(c, a, b, out);
  run_images(c, a, b, out, extras);
}

// ---- images

// The filter is [output channel, input channel, tap]; a panel [tap, channel that is added up, channel of the panel].
void RowConv::pack_panel(const float* filter, int64_t number) {
  const int64_t width = panel_vectors(number) * sizes_.floats, first = first_vector(number) * sizes_.floats;
  const int64_t taken = std::min(width, out_.channels - first), in = dims.in_channels;
  float* to = panel(number);
  if (taken < width) std::fill_n(to, width * taps_ * depth_, 0.0f);
  if (pass_ == ConvPass::kBackwardData) {
    for (int64_t o = 0; o < depth_; ++o) {
      for (int64_t t = 0; t < taps_; ++t) {
        const float* from = filter + (o * in + first) * taps_ + t;
        float* row = to + (t * depth_ + o) * width;
        for (int64_t j = 0; j < taken; ++j) row[j] = from[j * taps_];
      }
    }
    return;
  }
  constexpr int64_t kElems = 2048;  // at a time: they stay in the first cache
  float part[kElems];
  const int64_t columns = in * taps_, most = kElems / width;
  for (int64_t begin = 0; begin < columns; begin += most) {
    const int64_t count = std::min(most, columns - begin);
    rows::transpose(filter + first * columns + begin, columns, taken, count, part, width);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = (begin + k) / taps_, t = (begin + k) % taps_;
      std::copy_n(part + k * width, taken, to + (t * depth_ + i) * width);
    }
  }
}

void RowConv::pack(const KernelContext& c, const float* filter, uint64_t version) {
  if (version != 0 && version == version_ && filter == filter_) return;
  version_ = version;
  filter_ = filter;
  c.parallel_each(panels(), 1, [&](int64_t number) { pack_panel(filter, number); });
}

const float* RowConv::read(const KernelContext& c, const Images& form, const float* images, float* room) const {
  if (!form.copied) return images;
  const int64_t width = form.form.width, size = width * form.pixels, blocks = form.form.blocks;
  const int64_t together = form.together, step = together * width;
  c.parallel_each(dims.batch * blocks, kCopyGrain / size + 1, [&](int64_t i) {
    const int64_t sample = i / blocks, block = i % blocks;
    const float* from = images + i * size;
    float* to = room + (sample / together * blocks + block) * together * size + sample % together * width;
    if (!form.blocked && !dims.channels_last) {
      return rows::transpose(from, form.pixels, width, form.pixels, to, step);
    }
    for (int64_t p = 0; p < form.pixels; ++p) std::copy_n(from + p * width, width, to + p * step);
  });
  return room;
}

void RowConv::write(const KernelContext& c, const Images& form, const float* room, float* images,
                    const ConvEpilogue* epilogue) const {
  if (!form.copied && !epilogue) return;
  const int64_t width = form.form.width, blocks = form.form.blocks, sample = form.channels * form.pixels;
  c.parallel_each(dims.batch, kCopyGrain / sample + 1, [&](int64_t n) {
    for (int64_t b = 0; b < blocks && form.copied; ++b) {
      const float* from = room + (n * blocks + b) * width * form.pixels;
      const int64_t channels = blocks > 1 ? width : form.channels;
      float* to = images + n * sample + b * channels * form.pixels;
      if (dims.channels_last) {
        for (int64_t p = 0; p < form.pixels; ++p) std::copy_n(from + p * width, channels, to + p * channels);
      } else {
        rows::transpose(from, width, form.pixels, channels, to, form.pixels);
      }
    }
    if (epilogue) epilogue->finish(n * sample, (n + 1) * sample);
  });
}

void RowConv::multiply(int64_t number, int64_t sample, const float* in, float* out, const ConvEpilogue* epilogue) {
  const int64_t first = first_vector(number) * sizes_.floats, count = panel_vectors(number);
  const float* weights = panel(number);
  const int64_t width = count * sizes_.floats, samples = std::min(block_, dims.batch - sample);
  for (const Group& g : groups_) {
    rows::ImageJob job{.in = in + sample * in_.elems(),
                       .from = g.from.data(),
                       .to = g.to.data(),
                       .rows = g.per_sample * samples,
                       .taps = g.taps.data(),
                       .tap_count = std::ssize(g.taps),
                       .form = in_.form,
                       .weights = weights,
                       .vectors = count,
                       .place = {},
                       .out = out + sample * out_.elems()};
    for (int64_t v = 0; v < count; ++v) job.place[v] = out_.form.channel(first + v * sizes_.floats);
    rows::run(job);
  }
  for (int64_t n = sample; epilogue && n < sample + samples; ++n) {
    const int64_t begin = n * out_.elems() + first * out_.pixels;
    epilogue->finish(begin, begin + width * out_.pixels);
  }
}

void RowConv::run_images(const KernelContext& c, const float* a, const float* filter, float* out,
                         const ConvExtras& extras) {
  pack(c, filter, extras.filter_version);
  Workspace room;
  const float* from = read(c, in_, a, in_.copied ? room.get<float>(dims.batch * in_.elems()) : nullptr);
  float* to = out_.copied ? room.get<float>(dims.batch * out_.elems()) : out;
  const int64_t blocks = (dims.batch + block_ - 1) / block_;
  // Read again for each of the others: the images for each panel, or the filter for each block of samples.
  const double images = static_cast<double>(dims.batch * in_.elems()),
               weights = 16 * static_cast<double>(packed_.size());
  const bool by_panel =
      weights + images * static_cast<double>(panels()) < images + weights * static_cast<double>(blocks);
  const ConvEpilogue* of_blocks = out_.blocked ? extras.epilogue : nullptr;
  c.parallel_each(panels() * blocks, 1, [&](int64_t task) {
    const int64_t number = by_panel ? task / blocks : task % panels();
    const int64_t block = by_panel ? task % blocks : task / panels();
    multiply(number, block * block_, from, to, of_blocks);
  });
  if (!out_.blocked) write(c, out_, to, out, extras.epilogue);
}

// ---- filters

// Sums [tap, row of a tile, channel of a panel] become the filter's [output channel, input channel, tap].
void RowConv::filter_tile(int64_t tile, int64_t number, int64_t first_tap, int64_t last_tap, const float* down,
                          const float* across, float* out) const {
  const Images &rows_of = turned_ ? in_ : out_, &columns_of = turned_ ? out_ : in_;
  const int64_t row = tile * sizes_.channels, first = first_vector(number) * sizes_.floats;
  const int64_t count = panel_vectors(number), width = count * sizes_.floats;
  const int64_t rows = std::min(sizes_.channels, rows_of.channels - row), part = rows * width;
  Workspace room;
  float* sums = room.get<float>((last_tap - first_tap) * part);
  const int64_t step = (in_.together > 1 ? 1 : dims.window.stride[2]) * in_.form.width;
  rows::FilterJob job{.down = nullptr,
                      .across = nullptr,
                      .samples = 0,
                      .down_sample = in_.together * rows_of.elems(),
                      .across_sample = in_.together * columns_of.elems(),
                      .runs = nullptr,
                      .run_count = 0,
                      .turned = turned_,
                      .down_step = turned_ ? step : out_.form.width,
                      .across_step = turned_ ? out_.form.width : step,
                      .rows = rows,
                      .vectors = count,
                      .place = {},
                      .first = true,
                      .sums = nullptr};
  for (int64_t v = 0; v < count; ++v) job.place[v] = columns_of.form.channel(first + v * sizes_.floats);
  for (int64_t sample = 0; sample < dims.batch; sample += block_) {
    job.down = down + sample * rows_of.elems() + rows_of.form.channel(row);
    job.across = across + sample * columns_of.elems();
    job.samples = std::min(block_, dims.batch - sample) / in_.together;
    job.first = sample == 0;
    for (int64_t t = first_tap; t < last_tap; ++t) {
      job.runs = runs_[static_cast<size_t>(t)].data();
      job.run_count = std::ssize(runs_[static_cast<size_t>(t)]);
      job.sums = sums + (t - first_tap) * part;
      rows::run(job);
    }
  }
  const int64_t in = dims.in_channels, taken = std::min(width, columns_of.channels - first);
  const int64_t row_step = turned_ ? taps_ : in * taps_, column_step = turned_ ? in * taps_ : taps_;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < taken; ++k) {
      float* to = out + (row + r) * row_step + (first + k) * column_step;
      for (int64_t t = first_tap; t < last_tap; ++t) to[t] = sums[(t - first_tap) * part + r * width + k];
    }
  }
}

void RowConv::run_filter(const KernelContext& c, const float* image, const float* dout, float* out) {
  constexpr int64_t kFewTasks = 8;
  Workspace room;
  const int64_t spare = sizes_.floats * sizes_.vectors;  // elements that are read, but not used
  const float* x = read(c, in_, image, in_.copied ? room.get<float>(dims.batch * in_.elems() + spare) : nullptr);
  const float* g = read(c, out_, dout, out_.copied ? room.get<float>(dims.batch * out_.elems() + spare) : nullptr);
  const int64_t tiles = ((turned_ ? in_ : out_).channels + sizes_.channels - 1) / sizes_.channels;
  const int64_t sums = tiles * panels(), parts = std::min(taps_, (kFewTasks + sums - 1) / sums);
  c.parallel_each(parts * sums, 1, [&](int64_t task) {
    const int64_t part = task / sums, at = task % sums;
    filter_tile(at % tiles, at / tiles, part * taps_ / parts, (part + 1) * taps_ / parts, turned_ ? x : g,
                turned_ ? g : x, out);
  });
}

}  // namespace anabranch::nn
