#include "open_cudnn.h"

#include "open_library.h"

namespace anabranch::cuda {
namespace {

Cudnn opened() {
  Cudnn t{};
  open_library({"cuDNN", "libcudnn.so.9", "nvidia/cudnn/lib", 90000}, [&t](Symbols& symbols) {
    symbols.AB_TAKE(t, cudnnGetVersion)
        .AB_TAKE(t, cudnnGetErrorString)
        .AB_TAKE(t, cudnnCreate)
        .AB_TAKE(t, cudnnDestroy)
        .AB_TAKE(t, cudnnSetStream);
    return [&t] { return static_cast<int>(t.cudnnGetVersion()); };
  });
  return t;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn table = opened();
  return table;
}

}  // namespace anabranch::cuda
