// Convolutions as products of rows: a row is the channels of one pixel, and the product over all taps and channels is
// one sum in registers. Pixels that have the same taps in the image, of all samples, are multiplied together, and no
// tap is multiplied with padding. For images of few pixels and many channels, where the kernel library streams the
// whole filter for each sample, and for channels that do not fill its blocks.
#pragma once
#include <vector>

#include "ops/nn/conv.h"
#include "ops/nn/conv_rows_loops.h"

namespace anabranch::nn {

// One pass for one shape. Every result is one sum in the order (tap, channel), or (sample, pixel) for filters, and
// depends neither on the batch nor on the number of threads.
class RowConv {
 public:
  RowConv(ConvPass pass, const ConvDims& d);
  // Like Conv<float>::run.
  void run(const KernelContext& c, const float* a, const float* b, float* out, const ConvExtras& extras);

  ConvDims dims;

 private:
  // Images as the loops read and write them: those of the caller, or a copy with another order of elements.
  struct Images {
    rows::Form form;
    int64_t pixels = 0, channels = 0;
    int64_t together = 1;  // samples whose rows of a pixel lie next to each other
    bool blocked = false, copied = false;
    int64_t elems() const { return form.blocks * form.width * pixels; }  // of a sample
  };
  // Rows with the same taps.
  struct Group {
    std::vector<rows::Tap> taps;
    std::vector<int32_t> from, to;  // of a block of samples, sample after sample
    int64_t per_sample = 0;
  };

  Images images(bool input, bool written) const;
  void make_groups();
  void plan_filter();
  void add_runs(int64_t tap);
  int64_t panels() const { return (vectors_ + sizes_.vectors - 1) / sizes_.vectors; }
  int64_t first_vector(int64_t panel) const { return panel * vectors_ / panels(); }
  int64_t panel_vectors(int64_t panel) const { return first_vector(panel + 1) - first_vector(panel); }

  float* panel(int64_t number) { return packed_[0].elems + first_vector(number) * sizes_.floats * taps_ * depth_; }
  void pack_panel(const float* filter, int64_t number);
  void pack(const KernelContext& c, const float* filter, uint64_t version);
  void run_images(const KernelContext& c, const float* a, const float* filter, float* out, const ConvExtras& extras);
  void multiply(int64_t number, int64_t sample, const float* in, float* out, const ConvEpilogue* epilogue);
  void run_filter(const KernelContext& c, const float* image, const float* dout, float* out);
  void filter_tile(int64_t tile, int64_t panel, int64_t first_tap, int64_t last_tap, const float* down,
                   const float* across, float* out) const;
  const float* read(const KernelContext& c, const Images& form, const float* images, float* room) const;
  void write(const KernelContext& c, const Images& form, const float* room, float* images,
             const ConvEpilogue* epilogue) const;

  ConvPass pass_;
  rows::Sizes sizes_;
  Images in_, out_;           // of the result: of the inputs in kBackwardData; for kBackwardFilter the image, dout
  int64_t taps_, depth_ = 0;  // depth: channels that a product adds up
  int64_t vectors_ = 0;       // of output channels, or of image channels for filters
  int64_t block_ = 1;         // samples of a task
  bool turned_ = false;       // sums of filters: a row per input channel instead of one per output channel
  std::vector<Group> groups_;
  std::vector<std::vector<rows::Run>> runs_;  // per tap
  struct alignas(64) Line {
    float elems[16];
  };
  std::vector<Line> packed_;  // the panels
  const float* filter_ = nullptr;
  uint64_t version_ = 0;
};

}  // namespace anabranch::nn
