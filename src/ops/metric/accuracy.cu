// The fraction of samples whose label is among their k largest classes, on devices: "accuracy/<index>/<label>".
#include "ops/device/args_fold.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {

struct Accuracy {
  using Args = AccuracyArgs;
  template <class Index, class Label> struct Body {
    using Wide = int32_t;
    const Index* indices;
    const Label* label;
    int64_t samples, k;
    float* accuracy;
    int32_t *correct, *total;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t, int64_t i) const {
      for (int64_t j = 0; j < k; ++j) {
        if (indices[i * k + j] == label[i]) return 1;
      }
      return 0;
    }
    AB_HD void put(int64_t, Wide hits) const {
      if (accuracy) *accuracy = samples ? static_cast<float>(hits) / static_cast<float>(samples) : 0.0f;
      if (correct) *correct = hits;
      if (total) *total = static_cast<int32_t>(samples);
    }
  };
  template <class Index, class Label> static size_t room(const Args& a) {
    return fold_room<int32_t>(1, a.samples, Neighbors::kElements);
  }
  template <class Index, class Label> static int run(const Launch& launch, const Args& a) {
    const Body<Index, Label> body{
        a.indices.get<Index>(),   a.label.get<Label>(),  a.samples, a.k, a.accuracy.get<float>(),
        a.correct.get<int32_t>(), a.total.get<int32_t>()};
    return fold_rows(launch, 1, a.samples, Neighbors::kElements, body, launch.workspace.get<int32_t>());
  }
};

AB_KERNEL("accuracy", Accuracy, Types<int32_t, int32_t>, Types<int32_t, int64_t>, Types<int64_t, int32_t>,
          Types<int64_t, int64_t>);

}  // namespace anabranch::device
